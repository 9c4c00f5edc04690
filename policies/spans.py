"""Spans: the pieces of a prompt that can be kept, shrunk or removed by themselves."""

from enum import StrEnum
from typing import Literal

import msgspec

from policies.request import Item


class Bucket(StrEnum):
    """Who pays for a token. The buckets partition the total."""

    SYSTEM = "system"
    REMINDER = "reminder"
    STATE = "state"
    MEMORY = "memory"
    SUMMARY = "summary"
    TOOLS = "tools"
    HISTORY = "history"
    TOOL_RESULTS = "tool_results"
    CURRENT_TURN = "current_turn"
    OVERHEAD = "overhead"


class Tier(StrEnum):
    """How close to the heart of the request a span stands."""

    L0 = "L0"  # system and constraints: never touched
    L1 = "L1"  # newest user message, newest round: kept; results of the newest round may be folded
    L2 = "L2"  # tools, memory: capped
    L3 = "L3"  # older messages and results: compressible


class Evict(StrEnum):
    """What may become of a span under pressure."""

    PINNED = "pinned"
    RECONSTRUCTIBLE = "reconstructible"  # a stub or a summary can stand for it
    RECOVERABLE = "recoverable"  # it can be fetched again


class Span(msgspec.Struct, frozen=True, gc=False):
    """One message or tool of a prompt, with what it costs in tokens of the target model.

    `turn` counts user messages, `round` counts assistant messages with what answers them; -1 where neither applies.
    `merged` are tokens inside the message that Edgewise put there, with the bucket that pays for them.
    """

    id: str  # "m12" for messages[12], "t3" for tools[3], "n0" for a message that Edgewise added
    item: Item
    bucket: Bucket
    tier: Tier
    evict: Evict
    tokens: int
    role: str = ""
    name: str = ""
    turn: int = -1
    round: int = -1
    priority: int = 0  # higher is kept longer among equals
    merged: tuple[tuple[Bucket, int], ...] = ()
    bare: Item | None = None  # what it was before text of ours was merged into it
    elided: bool = False  # a stub stands for it
    shortened: bool = False  # its text was rewritten

    @property
    def kind(self) -> Literal["message", "tool"]:
        return "tool" if self.bucket is Bucket.TOOLS else "message"

    @property
    def is_result(self) -> bool:
        return self.role in ("tool", "function")

    @property
    def is_user(self) -> bool:
        return self.role == "user"
