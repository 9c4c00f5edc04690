"""Shapes of the context API, for its documentation: what `objects` writes has these members."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

LevelName = Literal["unknown", "none", "tool_results", "history", "topics", "emergency"]
ByBucket = dict[str, int]


class Shape(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Span(Shape):
    """One message or tool."""

    id: str = Field(description="`m12` for messages[12], `t3` for tools[3], `n0` for a message that Edgewise added.")
    bucket: str = Field(description="Who pays for it.")
    tier: str = Field(description="L0 (never touched) to L3 (compressible).")
    evict: str
    role: str
    name: str
    turn: int = Field(description="Counts user messages; -1 where it does not apply.")
    round: int = Field(description="Counts assistant messages with what answers them; -1 where it does not apply.")
    tokens: int = Field(description="As received.")
    received: int
    sent: int = Field(description="0: it was removed.")
    what: str = Field(description="What was done to it, empty for nothing.")


class Decision(Shape):
    """An edit that a step proposed, and what became of it."""

    step: str
    action: Literal["rewrite", "elide", "drop", "inject", "repair", "pass", "refuse"]
    outcome: Literal["applied", "undone", "refused"]
    spans: list[str]
    before: int = Field(description="Tokens of the spans it touched.")
    after: int
    because: str
    level: LevelName
    leaf: Literal["none", "chunk", "turns", "results", "instructions", "refuse"] = Field(
        description="Branch of the triage tree."
    )
    check: str = Field(description="What made sure that the trim was safe, empty where nothing had to.")


class Counted(Shape):
    """What a request costs, in tokens of its model."""

    total: int
    limit: int | None = Field(description="What a prompt may cost; null where the window is not known.")
    window: int | None
    reserve: int = Field(description="Kept for the answer.")
    exact: bool = Field(description="False: a part of it is an estimate.")
    counter: str = Field(description="Whose rules were used.")
    buckets: ByBucket = Field(description="Adds up to `total`.")
    spans: list[Span]


class Planned(Counted):
    """What would be done with a request."""

    level: LevelName
    policy: str
    received_total: int
    received: ByBucket
    sent_total: int
    sent: ByBucket
    side_tokens: int = Field(description="What the side model cost.")
    saved: int = Field(description="`received_total` - `sent_total` - `side_tokens`.")
    edited: bool
    decisions: list[Decision]
    failed_steps: list[str]
    over_cap: dict[str, int] = Field(description="Buckets that cost more than their cap, and the cap: a warning.")
    high_floor: bool = Field(description="What no step may take leaves little that could be freed: a warning.")
    request: dict[str, Any] | None = Field(None, description="What would be forwarded.")
    error: dict[str, Any] | None = Field(None, description="What would be answered where it cannot fit.")


class Summary(Shape):
    """A past request in a few lines."""

    id: str
    time: str
    tenant: str = Field(description="The first digits of the caller's hash, as `[[route]]` of a policy may name it.")
    model: str
    upstream: str
    policy: str
    mode: Literal["observe", "enforce"]
    outcome: Literal["observed", "refused", "edited", "untouched"]
    level: LevelName
    window: int | None
    limit: int | None
    counter: str
    exact: bool
    received: int
    sent: int
    buckets: dict[str, ByBucket] = Field(description="By stage.")
    done: dict[str, int] = Field(description="Edits that stand, by kind.")
    epoch: int | None = Field(None, description="Of the conversation, from 1, once something was decided.")
    opened: Literal["pressure", "forced", "client", "refs"] | None = Field(None, description="Why it opened its epoch.")
    planned: int | None = Field(None, description="What enforcing would have sent, where it was only observed.")
    side: int | None = Field(None, description="Tokens that the side model cost, where it was asked.")
    floor: int | None = Field(None, description="The least that a refused request needs.")
    failed_steps: list[str] = []
    over_cap: dict[str, int] | None = Field(None, description="Buckets that cost more than their cap, and the cap.")
    high_floor: bool = Field(False, description="What no step may take leaves little that could be freed: a warning.")
    session: str | None = None


class Requests(Shape):
    requests: list[Summary]


class Refused(Shape):
    floor: int
    reason: str
    units: list[dict[str, Any]]


class PastRequest(Summary):
    """A past request, span by span."""

    stream: bool
    reserve: int
    spans: list[Span]
    decisions: list[Decision]
    refusal: Refused | None


class ToolUse(Shape):
    """A tool over the caller's last requests."""

    name: str
    tokens: int = Field(description="Of its definition, as last received.")
    spent: int = Field(description="Tokens on it in all that was forwarded.")
    offered: int = Field(description="Requests that offered it.")
    forwarded: int = Field(description="Requests that were forwarded with it.")
    called: int
    never_called: bool


class UnknownTool(Shape):
    """A name that was called and that no tool had."""

    name: str
    called: int
    nearest: str | None = Field(description="The tool that was probably meant.")


class ToolsUsed(Shape):
    requests: int = Field(description="How many were looked at.")
    tools: list[ToolUse]
    unknown: list[UnknownTool]


class ErrorObject(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class Error(Shape):
    """OpenAI's error shape."""

    error: ErrorObject
