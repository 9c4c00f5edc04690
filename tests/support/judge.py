"""Bars 2 and 3 of issue 2, checked on one request and what became of it. Nothing here is shared with the pipeline.

A tool of ours may stand behind those that the client offers, and has to where a new ref stands.

Every finding reads `kind: what`. The kinds: `shape`, `over budget`, `report`, `edited needlessly`, `invalid`,
`unrepaired`, `bytes`, `lost`, `thin`, `refused wrongly`, `emergency`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from support.floor import Count, encoded, floor, gentlest, newest_round, newest_user, text_of, unfilled, units
from support.grammar import introduced, mistral_introduced, tool_name, unrepaired
from support.opened import Opened

FIRST_THRESHOLD = 0.5  # of the limit; with nothing incompressible, pressure is at most this, and never less touched
ENOUGH = 0.6  # of the limit: what must be sent when something had to go
LEVELS = {"none", "tool_results", "history", "topics", "emergency", "unknown"}
SILENT = {"system", "developer", "tool", "function"}  # roles that neither ask nor call
Cost = Callable[[Mapping[str, Any]], int]  # tokens of a message or tool, or of fields of a request
OURS = "read_tool_result"
REF = re.compile(r"tr_[0-9a-f]{16,}")
NOTE = 96  # tokens for a note that says what went, and for the differences of adding up


@dataclass(frozen=True)
class Outcome:
    """What became of a request. All figures are tokens.

    `sent` is the forwarded body (the received object itself when nothing was edited), `refusal` the body of the 400.
    `edited` and `edited_tools` are indexes of *received* messages and tools that applied decisions rewrote, replaced
    or dropped; `injected` is the number of messages added.
    """

    sent: bytes | None
    refusal: Mapping[str, Any] | None
    level: str
    limit: int
    received_tokens: int
    sent_tokens: int
    edited: frozenset[int] = frozenset()
    edited_tools: frozenset[int] = frozenset()
    injected: int = 0


def judge(body: bytes, outcome: Outcome, count: Count) -> list[str]:
    """Everything that is wrong with the outcome of a request; `count` counts a whole body anew."""
    received = Opened.of(body)
    total = count(body)
    found = [*_shape(outcome), *_report(outcome, "received", outcome.received_tokens, total)]
    if outcome.sent is None:
        return found + _refusal(received, outcome, count)
    if outcome.sent is body:
        return found + ([f"over budget: {total} of {outcome.limit} tokens, untouched"] if total > outcome.limit else [])
    sent = Opened.of(outcome.sent)
    tokens = count(outcome.sent)
    found += _report(outcome, "sent", outcome.sent_tokens, tokens)
    if tokens > outcome.limit:
        found.append(f"over budget: {tokens} of {outcome.limit} tokens sent")
    if total <= FIRST_THRESHOLD * outcome.limit:
        found.append(f"edited needlessly: {total} tokens received, {outcome.limit} allowed")
    found += _validity(received, sent)
    found += _bytes(received, sent, outcome)
    found += _unreadable(received, sent)
    found += _lost(received, sent)
    if total > outcome.limit and tokens < ENOUGH * outcome.limit:
        found += _thin(received, sent, outcome.limit, tokens, count)
    return found + _emergency(received, outcome, count)


def _shape(outcome: Outcome) -> list[str]:
    found = []
    if (outcome.sent is None) == (outcome.refusal is None):
        found.append("shape: a request is either sent or refused")
    if outcome.level not in LEVELS:
        found.append(f"shape: no level is called {outcome.level!r}")
    return found


def _report(outcome: Outcome, stage: str, said: int, counted: int) -> list[str]:
    if said == counted:
        return []
    return [f"report: {said} tokens {stage} by the report, {counted} counted, limit {outcome.limit}"]


def _refusal(received: Opened, outcome: Outcome, count: Count) -> list[str]:
    """The floor must be over budget; the error is OpenAI's, with a way to split the job whose parts all fit."""
    found = []
    least = count(encoded(floor(received.body)))
    if least <= outcome.limit:
        found.append(f"refused wrongly: the floor is {least} of {outcome.limit} tokens")
    error = (outcome.refusal or {}).get("error") or {}
    if error.get("code") != "context_length_exceeded" or not error.get("message"):
        found.append(f"shape: the refusal's error has code {error.get('code')!r}")
    edgewise = error.get("edgewise")
    if not isinstance(edgewise, Mapping) or not isinstance(edgewise.get("units"), list):
        return [*found, "shape: the refusal has no error.edgewise.units"]
    for unit in edgewise["units"]:
        request = unit.get("request")
        if isinstance(request, Mapping) and (tokens := count(encoded(request))) > outcome.limit:
            found.append(
                f"over budget: unit {unit.get('name')!r} of the refusal has {tokens} of {outcome.limit} tokens"
            )
    return found


def _validity(received: Opened, sent: Opened) -> list[str]:
    before, after = dict(received.body), dict(sent.body)
    new = [*introduced(before, after), *mistral_introduced(before, after)]
    left = [fault for fault in unrepaired(after) if fault not in new] if _repairable(before) else []
    return [f"invalid: {fault}" for fault in new] + [f"unrepaired: {fault}" for fault in left]


def _repairable(body: Mapping[str, Any]) -> bool:
    """Whether a conversation is left when the results that answer no call are taken away. Instructions alone are none,
    and the call that would make sense of a result would be invented: such a request keeps the faults it came with."""
    return any(message.get("role") not in SILENT for message in body["messages"])


def _bytes(received: Opened, sent: Opened, outcome: Outcome) -> list[str]:
    """What no decision names stands in its own bytes and order; what is new is paid for by a decision."""
    found = []
    paid = len(outcome.edited) + outcome.injected
    for what, before, after, edited, allowance in (
        ("message", received.messages, sent.messages, outcome.edited, paid),
        ("tool", received.tools, _foreign(received, sent), outcome.edited_tools, len(outcome.edited_tools)),
    ):
        kept = [(index, text) for index, text in enumerate(before) if index not in edited]
        missing, foreign = _aligned([text for _, text in kept], after)
        found += [f"bytes: {what}s[{kept[at][0]}] was changed or moved, and no decision says so" for at in missing]
        if foreign > allowance:
            found.append(f"bytes: {foreign} {what}s sent are new, {allowance} were declared")
    return found + _fields(received, sent)


def _foreign(received: Opened, sent: Opened) -> Sequence[str]:
    """Tools sent, without ours: the last one, of a name that the client does not use itself."""
    return sent.tools[:-1] if OURS not in _names(received) and _names(sent)[-1:] == [OURS] else sent.tools


def _names(opened: Opened) -> list[str]:
    return [tool_name(tool) for tool in opened.body.get("tools") or []]


def _unreadable(received: Opened, sent: Opened) -> list[str]:
    """Refs that the client did not send stand only beside the tool that reads them."""
    new = set(REF.findall("".join(sent.messages))) - set(REF.findall("".join(received.messages)))
    return [f"invalid: a ref without {OURS}"] if new and OURS not in _names(sent) else []


def _aligned(kept: Sequence[str], sent: Sequence[str]) -> tuple[list[int], int]:
    """Which of `kept` do not stand in `sent` in order, and how many of `sent` are none of them."""
    missing, at, matched = [], 0, 0
    for index, text in enumerate(kept):
        try:
            at = sent.index(text, at) + 1
        except ValueError:
            missing.append(index)
        else:
            matched += 1
    return missing, len(sent) - matched


def _fields(received: Opened, sent: Opened) -> list[str]:
    """Other fields keep their bytes and order; tool_choice and parallel_tool_calls go with the last tool, and a choice
    among tools is narrowed to those that are left (`grammar` judges that it names no other)."""
    gone = {"tool_choice", "parallel_tool_calls"} if not sent.tools else set()
    if len(sent.tools) < len(received.tools) and "allowed_tools" in str(received.body.get("tool_choice")):
        gone = {*gone, "tool_choice"}
    wanted = [spelled for name, spelled in received.fields if name not in gone]
    had = [spelled for name, spelled in sent.fields if name not in gone]
    return [] if wanted == had else [f"bytes: fields {_brief(set(wanted) ^ set(had))} differ"]


def _brief(texts: set[str]) -> str:
    return ", ".join(sorted(text[:40] for text in texts)) or "(their order)"


def _lost(received: Opened, sent: Opened) -> list[str]:
    """The system's texts and the newest user's text are contained word for word in messages of their role.

    In a loop under one user message that text is the task's."""
    messages = received.body["messages"]
    user = newest_user(messages)
    found = []
    for index, message in enumerate(messages):
        roles = ("system", "developer") if message.get("role") in ("system", "developer") else ("user",)
        if message.get("role") not in roles or ("user" in roles and index != user):
            continue
        after = [text_of(other) for other in sent.body["messages"] if other.get("role") in roles]
        if not any(text_of(message) in text for text in after):
            found.append(f"lost: the text of messages[{index}], role {message.get('role')}")
    return found


def _thin(received: Opened, sent: Opened, limit: int, tokens: int, count: Count) -> list[str]:
    """Less than `ENOUGH` was sent although the pieces that went could have filled it.

    Proof by filling: the pieces that went (whole units, old results that were shortened, tools), largest first, are
    added back while they fit; a shortened result of the newest round can be given any length. No fault is claimed
    unless that reaches `ENOUGH`. Units that are not valid by themselves were repairs, and are not added back.
    """
    model = received.body.get("model")
    pieces, elastic = _pieces(received, sent, lambda fields: count(encoded({"model": model, "messages": [], **fields})))
    reached = tokens
    for saved in sorted(pieces, reverse=True):
        if reached + saved + NOTE <= limit:
            reached += saved
    reached = min(limit, reached + elastic)
    if reached < ENOUGH * limit + NOTE:
        return []
    return [f"thin: {tokens} of {limit} tokens sent, {reached} were possible"]


def _pieces(received: Opened, sent: Opened, cost: Cost) -> tuple[list[int], int]:
    """Tokens saved by each whole piece that went, and by shortened results of the newest round together."""
    base = cost({})
    messages, after = received.body["messages"], sent.body["messages"]
    saved = _savings(received.messages, messages, sent.messages, after, lambda m: cost({"messages": [m]}) - base)
    newest = newest_round(messages)
    left = {message.get("tool_call_id") for message in after if message.get("role") == "tool"}  # not: repaired away
    answered = {messages[index].get("tool_call_id"): index for index in reversed(newest)}  # of several the first
    loose = [index for call, index in answered.items() if call in left]
    elastic = sum(saved.get(index, 0) for index in loose)
    pieces = [
        sum(saved.get(index, 0) for index in unit)
        for unit in units(messages)
        if unit != newest and not unrepaired({"messages": [messages[index] for index in unit]})
    ]
    tools = _savings(received.tools, received.body.get("tools") or [], sent.tools, sent.body.get("tools") or [],
                     lambda tool: cost({"tools": [tool]}) - base)  # fmt: skip
    return [piece for piece in [*pieces, *tools.values()] if piece > 0], elastic


def _savings(
    spelled: Sequence[str], before: Sequence[Any], spelled_after: Sequence[str], after: Sequence[Any], cost: Cost
) -> dict[int, int]:
    """Tokens that each changed or dropped element of `before` had more than what stands for it in `after`."""
    known, same = set(spelled), set(spelled_after)
    new: dict[str, list[Any]] = {}
    others = [item for text, item in zip(spelled_after, after, strict=True) if text not in known]
    for item in others:
        new.setdefault(_identity(item), []).append(item)
    found = {}
    for index, (text, item) in enumerate(zip(spelled, before, strict=True)):
        if text not in same:
            stubs = new.get(_identity(item)) or [one for one in others if _is_merged(item, one)]
            found[index] = cost(item) - (cost(stubs.pop(0)) if stubs else 0)
    return found


def _is_merged(item: Mapping[str, Any], into: Mapping[str, Any]) -> bool:
    """Whether the whole text of a message stands in another of its role: a note was merged into it, nothing went."""
    return bool(text_of(item)) and item.get("role") == into.get("role") and text_of(item) in text_of(into)


def _identity(item: Mapping[str, Any]) -> str:
    """What a message or tool keeps when it is shortened: a result its call's id, others the start of their text."""
    if item.get("role") == "tool":
        return f"tool {item.get('tool_call_id')}"
    calls = [call.get("id") for call in item.get("tool_calls") or [] if isinstance(call, dict)]
    return f"{item.get('role')} {calls} {tool_name(item)} {text_of(item)[:20]}"


def _emergency(received: Opened, outcome: Outcome, count: Count) -> list[str]:
    """`emergency` was declared though the gentlest other form fits, with room for a note and for tools up to their
    cap, an eighth of the limit."""
    if outcome.level != "emergency":
        return []
    form = gentlest(received.body, outcome.limit)
    least = count(encoded(form)) + unfilled(received.body, form, outcome.limit) + NOTE
    if least > outcome.limit:
        return []
    return [f"emergency: a gentler form of {least} tokens exists, limit {outcome.limit}"]
