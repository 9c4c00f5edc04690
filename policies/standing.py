"""What a request of a conversation came to, left for the next one, where that may only go on from it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from policies.budget import Budget, fixed_tokens
from policies.counting import Bill, Counter
from policies.grown import Run, Trail, leave
from policies.plan import Action, Decision, Plan
from policies.policy import Policy
from policies.recorded import Recorded
from policies.refs import Refs
from policies.request import ChatRequest, Item, Prompt
from policies.spans import Bucket, Span
from policies.split import Split

KEY = "standing"


class By(NamedTuple):
    """What a request is planned by, beside its messages."""

    policy: Policy
    counter: Counter
    budget: Budget
    prompt: Prompt  # without messages


class Standing(msgspec.Struct, frozen=True):
    """What a request came to. `received` is its `Split.older`, `sent` what stands for these, `items` all messages that
    were sent, of `count` that were received. `places` are those in `sent` of the ones that were newest by index of the
    received; `fixed` tokens of `sent` that no step may take."""

    by: By
    recorded: Recorded
    received: Run[Span]
    sent: Run[Span]
    items: tuple[Item, ...]
    trail: Trail
    count: int
    tools: tuple[Span, ...]
    decisions: tuple[Decision, ...]
    places: Mapping[int, int]
    fixed: int


class Asked(NamedTuple):
    """A request as far as it was looked at. `bill` is that of what was received."""

    request: ChatRequest
    policy: Policy
    counter: Counter
    budget: Budget
    bill: Bill
    received: Sequence[Span]
    recorded: Recorded | None
    refs: Refs | None

    @property
    def limit(self) -> int:
        """Of the budget; 0 where the window is not known."""
        return self.budget.limit or 0

    @property
    def by(self) -> By:
        bare = msgspec.structs.replace(self.request.prompt, messages=())
        return By(self.policy, self.counter, self.budget, bare)


def settle(asked: Asked, made: Plan) -> Plan:
    """The plan, which is left for the next request where that may only go on from it."""
    received, recorded = asked.received, asked.recorded
    if not isinstance(received, Split) or recorded is None or not _is_settled(asked, recorded, made):
        return made
    tools = tuple([span for span in made.sent if span.bucket is Bucket.TOOLS])
    messages = made.sent[: len(made.sent) - len(tools)]
    older, new = received.older, received.tail[: len(received.messages) - len(received.older)]
    cut = len(messages) - len(new)
    if not _as_received(messages[cut:], new):
        return made
    sent = list(messages[:cut])
    at = {span.id: place for place, span in enumerate(sent)}
    places = {index: at[f"m{index}"] for index in received.patched if f"m{index}" in at}
    for index, place in places.items():
        sent[place] = classed(sent[place], older[index])
    left = Standing(
        by=asked.by,
        recorded=recorded,
        received=older,
        sent=Run(sent),
        items=made.prompt.messages,
        trail={},
        count=len(received.messages),
        tools=tools,
        decisions=made.decisions,
        places=places,
        fixed=fixed_tokens(sent, 0, 0),
    )
    leave(received.messages, KEY, left)
    return made


def _is_settled(asked: Asked, recorded: Recorded, made: Plan) -> bool:
    """The next request begins with just what this one decided, which is what earlier ones had decided."""
    if made.record is not None or made.refusal is not None or made.failed_steps or made.budget.limit is None:
        return False
    if recorded.moved or made.opened or made.epoch is not recorded.epoch or not asked.policy.waits:
        return False
    if not made.decisions:
        return made.prompt is asked.request.prompt
    return all([one.action is Action.REPLAY for one in made.decisions])


def _as_received(sent: Sequence[Span], received: Sequence[Span]) -> bool:
    pairs = zip(sent, received, strict=False)
    same = all([a.id == b.id and a.item is b.item and a.tokens == b.tokens for a, b in pairs])
    return same and len(sent) == len(received)


def classed(span: Span, like: Span) -> Span:
    return msgspec.structs.replace(span, bucket=like.bucket, tier=like.tier, evict=like.evict)
