"""Edits that steps propose, decisions that the pipeline takes, and the plan that reports are made from."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal

import msgspec

from policies.budget import Budget
from policies.levels import ORDER, Level
from policies.recorded import Epoch, Node
from policies.request import Prompt
from policies.spans import Bucket, Span
from policies.split import Split

__all__ = [
    "ORDER",
    "Action",
    "Decision",
    "Drop",
    "Edit",
    "Elide",
    "Inject",
    "Leaf",
    "Level",
    "Pass",
    "Plan",
    "Refusal",
    "Rewrite",
    "changed",
    "untouched",
]


class Leaf(StrEnum):
    """Which branch of the triage tree an edit belongs to (DESIGN 5)."""

    NONE = "none"  # placed, repaired, or bound by a cap
    CHUNK = "chunk"  # 1: one pinned span over the budget
    TURNS = "turns"  # 2: older turns and rounds
    RESULTS = "results"  # 3: tool output
    INSTRUCTIONS = "instructions"  # 4
    REFUSE = "refuse"  # 5: nothing is left


class Rewrite(msgspec.Struct, frozen=True):
    """Put other bytes in a span's place; the same message or tool, said shorter."""

    span: str
    raw: bytes
    because: str
    check: str = ""  # what the step made sure of before it proposed this


class Elide(msgspec.Struct, frozen=True):
    """Replace a span's content by a stub that says what it was."""

    span: str
    raw: bytes
    because: str
    check: str = ""


class Drop(msgspec.Struct, frozen=True):
    """Remove spans; rounds only whole."""

    spans: tuple[str, ...]
    because: str


class Inject(msgspec.Struct, frozen=True):
    """Add text of the operator or a note of ours: merged into the system message (`head`), put before the first
    user text that is kept (`note`), or merged into the newest user message or tool result (`tail`)."""

    text: str
    place: Literal["head", "note", "tail"]
    bucket: Bucket
    because: str
    check: str = ""
    every: int = 0  # tokens: where it stands already, it is put anew once so many stand behind it; 0: each request


class Pass(msgspec.Struct, frozen=True):
    """Leave a span as it is, and say why: what was configured for it does not apply."""

    span: str
    because: str


Edit = Rewrite | Elide | Drop | Inject | Pass


class Action(StrEnum):
    REWRITE = "rewrite"
    ELIDE = "elide"
    DROP = "drop"
    INJECT = "inject"
    REPAIR = "repair"
    REPLAY = "replay"  # decided for an earlier request of the conversation, and sent again
    PASS = "pass"  # noqa: S105 - a word, no password
    REFUSE = "refuse"


class Decision(msgspec.Struct, frozen=True):
    """What became of one edit. `before` and `after` are tokens of the spans it touched."""

    step: str
    action: Action
    outcome: Literal["applied", "undone", "refused"]
    spans: tuple[str, ...]
    before: int
    after: int
    because: str
    level: Level
    leaf: Leaf = Leaf.NONE
    check: str = ""  # what shows that the trim was safe


class Refusal(msgspec.Struct, frozen=True):
    """What cannot fit, and how the job could be split (DESIGN 1.1)."""

    floor: int
    limit: int
    units: tuple[dict[str, Any], ...]
    aggregate: dict[str, Any] | None
    reason: str


class Plan(msgspec.Struct, frozen=True):
    """One request, before and after. Spans in prompt order; overheads in tokens; `exact` False: counts are estimates.

    `prompt` is what is to be forwarded; it is the received prompt itself when nothing was edited.
    """

    budget: Budget
    level: Level
    received: Sequence[Span]
    sent: Sequence[Span]
    received_overhead: int
    sent_overhead: int
    decisions: tuple[Decision, ...]
    prompt: Prompt
    counter: str
    exact: bool
    policy: str
    refusal: Refusal | None = None
    failed_steps: tuple[str, ...] = ()
    caps: Mapping[Bucket, int] = {}  # tokens, of the policy for this window
    side_tokens: int = 0  # what the side model cost while this was planned
    epoch: Epoch | None = None  # of the conversation, where something was decided for it
    opened: bool = False  # this request opened it
    high_floor: bool = False  # it is pressed, and what no step may take leaves little that could be freed
    record: Node | None = None  # what has to be remembered before the request is sent
    originals: Mapping[str, bytes] = {}  # by ref, what has to be stored before that: texts that were taken out

    @property
    def received_total(self) -> int:
        return self.received_overhead + _tokens(self.received)

    @property
    def sent_total(self) -> int:
        return self.sent_overhead + _tokens(self.sent)


def _tokens(spans: Sequence[Span]) -> int:
    return spans.tokens if isinstance(spans, Split) else sum([span.tokens for span in spans])


def untouched(made: Plan, received: Prompt) -> Plan:
    """The plan that leaves the received prompt as it is."""
    return msgspec.structs.replace(
        made,
        level=Level.NONE,
        sent=made.received,
        sent_overhead=made.received_overhead,
        decisions=(),
        prompt=received,
        refusal=None,
        epoch=None,
        opened=False,
        record=None,
        originals={},
    )


def changed(decisions: Sequence[Decision]) -> bool:
    return any(decision.outcome == "applied" for decision in decisions)
