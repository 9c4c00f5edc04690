"""A prompt → spans: what each message is, which round and turn it belongs to, and which bucket pays for it."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from policies.counting import Bill, Costs
from policies.facts import Facts, closed
from policies.grown import Grown, Pieced, Run, before, leave
from policies.request import Item, Prompt
from policies.spans import Bucket, Evict, Span, Tier
from policies.tools import Tool, allowed, forced, name_of

INSTRUCTING = ("system", "developer")
ANSWERING = ("tool", "function")


_Class = tuple[Bucket, Tier, Evict]


class Split(Pieced[Span]):
    """The spans of `messages`, which go on from an earlier request's, and of tools behind them. `older` are as they
    stand once nothing of them is newest any more; those that still are stand in `patched`. `begun` is the `older` of
    the split that this one goes on from. `tokens` are those of all spans."""

    __slots__ = ("begun", "messages", "tokens")

    def __init__(self, pieces: Pieced[Span], messages: Grown[Item], begun: Run[Span], tokens: int) -> None:
        super().__init__(pieces.older, pieces.tail, pieces.patched)
        self.messages, self.begun, self.tokens = messages, begun, tokens


class _Begun(NamedTuple):
    """A split up to some message, to go on from: `Split.older`, its tokens, names of functions by id of call, turn and
    round, whether the round may still go on, and the indexes of the newest user message and answer."""

    called: dict[str, str]
    spans: Run[Span] = Run()
    tokens: Sequence[int] = ()
    turn: int = -1
    round: int = -1
    inside: bool = False
    user: int = -1
    answer: int = -1

    def after(self, spans: Run[Span], roles: Sequence[str], rounds: Sequence[int], bill: Bill) -> "_Begun":
        """What stands once messages of these roles and rounds are split too."""
        start, costs = len(self.spans), bill.messages
        return _Begun(
            called=self.called,
            spans=spans,
            tokens=costs.older if isinstance(costs, Costs) else costs[: len(spans)],
            turn=self.turn + roles.count("user"),
            round=self.round + roles.count("assistant"),
            inside=rounds[-1] >= 0 if rounds else self.inside,
            user=_last(roles, "user", start, self.user),
            answer=_last(roles, "assistant", start, self.answer),
        )


_Place = tuple[str, str, int, int]  # role, name, turn and round of a message; a round of -1 is none

_KEY = "split"


def split(prompt: Prompt, facts: Sequence[Facts], bill: Bill) -> Sequence[Span]:
    """Messages first, then tools, each with its tokens of `bill`. Shapes: len(prompt.messages) + len(prompt.tools)."""
    tools = _tools(prompt, bill) if prompt.tools else []
    messages = prompt.messages
    if isinstance(messages, Grown):
        return _grown(messages, facts, bill, tools)
    begun = _Begun(called={})
    places = _places(facts, begun)
    roles = [fact.role for fact in facts]
    classes = [_OLDER.get(role, _SAID) for role in roles]
    for index in _newest(begun, roles, [place[3] for place in places]):
        classes[index] = _NEWEST.get(roles[index], _ASKED)
    return (*_spans(0, messages, bill.messages, places, classes), *tools)


def _spans(
    start: int, items: Sequence[Item], tokens: Sequence[int], places: Sequence[_Place], classes: Sequence[_Class]
) -> list[Span]:
    """Spans of the messages from index `start` on."""
    if not classes:
        return []
    end = start + len(classes)
    ids = _IDS[start:end] if end <= len(_IDS) else [f"m{index}" for index in range(start, end)]
    return list(map(Span, ids, items, *zip(*classes, strict=True), tokens, *zip(*places, strict=True)))


def _grown(messages: Grown[Item], facts: Sequence[Facts], bill: Bill, tools: Sequence[Span]) -> Split:
    begun = _begun(messages, bill)
    start, end = len(begun.spans), closed(facts)
    places = _places(facts[start:], begun)
    roles, rounds = [fact.role for fact in facts[start:]], [place[3] for place in places]
    classes = [_OLDER.get(role, _SAID) for role in roles]
    new = _spans(start, messages[start:], bill.messages[start:], places, classes)
    newest: dict[int, Span] = {}
    for index in _newest(begun, roles, rounds):
        span = new[index - start] if index >= start else begun.spans[index]
        bucket, tier, evict = _NEWEST.get(span.role, _ASKED)
        newest[index] = msgspec.structs.replace(span, bucket=bucket, tier=tier, evict=evict)
    done = end - start
    older = begun.spans.and_then(new[:done])
    leave(messages, _KEY, begun.after(older, roles[:done], rounds[:done], bill))
    tail = [newest.get(end + at, span) for at, span in enumerate(new[done:])]
    patched = {index: span for index, span in newest.items() if index < end}
    return Split(Pieced(older, (*tail, *tools), patched), messages, begun.spans, bill.total - bill.overhead)


def _begun(messages: Grown[Item], bill: Bill) -> _Begun:
    """What an earlier request left, if it was billed as now; its names may be added to."""
    found: _Begun | None = before(messages, _KEY)[1]
    costs = bill.messages
    if found is not None:
        same = costs.begun is found.tokens if isinstance(costs, Costs) else costs[: len(found.tokens)] == found.tokens
        if same:
            return found._replace(called=dict(found.called))
    return _Begun(called={})


_IDS = tuple([f"m{index}" for index in range(1_000)])  # of most conversations: made, and kept in reports, once

_SAID: _Class = (Bucket.HISTORY, Tier.L3, Evict.RECONSTRUCTIBLE)
_ASKED: _Class = (Bucket.CURRENT_TURN, Tier.L1, Evict.PINNED)
_INSTRUCTED: dict[str, _Class] = dict.fromkeys(INSTRUCTING, (Bucket.SYSTEM, Tier.L0, Evict.PINNED))
_OLDER = _INSTRUCTED | dict.fromkeys(ANSWERING, (Bucket.TOOL_RESULTS, Tier.L3, Evict.RECONSTRUCTIBLE))
_NEWEST = _INSTRUCTED | dict.fromkeys(ANSWERING, (Bucket.TOOL_RESULTS, Tier.L1, Evict.RECONSTRUCTIBLE))
_PIN = {True: Evict.PINNED, False: Evict.RECOVERABLE}


def _tools(prompt: Prompt, bill: Bill) -> list[Span]:
    names = bill.names or [Tool.of(item.raw).name for item in prompt.tools]
    pinned = _pinned_tools(prompt, bill, names)
    return [
        Span(f"t{index}", item, Bucket.TOOLS, Tier.L2, _PIN[index in pinned], bill.tools[index], "", names[index])
        for index, item in enumerate(prompt.tools)
    ]


def _pinned_tools(prompt: Prompt, bill: Bill, names: Sequence[str]) -> set[int]:
    """The tool that `tool_choice` forces; where one of several has to be called, the cheapest of them."""
    if prompt.tool_choice is None or not prompt.tools:
        return set()
    wanted = forced(prompt.tool_choice)
    if wanted:
        return {index for index, name in enumerate(names) if name in wanted}
    choice = allowed(prompt.tool_choice)
    among = {name_of(tool) for tool in choice[0]} if choice else set(names)
    required = choice[1] if choice else prompt.tool_choice == b'"required"'
    candidates = [index for index, name in enumerate(names) if name in among] if required else []
    return {min(candidates, key=lambda index: bill.tools[index])} if candidates else set()


def _places(facts: Sequence[Facts], begun: _Begun) -> list[_Place]:
    """An assistant message opens a round; the answers that follow belong to it. A user message opens a turn.

    A tool result has the name of the function whose call it answers; calls are added to `begun.called`.
    """
    turn, current, inside, called = begun.turn, begun.round, begun.inside, begun.called
    places: list[_Place] = []
    for fact in facts:
        role = fact.role
        if role == "assistant":
            current, inside = current + 1, True
        elif role not in ANSWERING:
            turn, inside = turn + (role == "user"), False
        if fact.call_ids:
            called.update(zip(fact.call_ids, fact.call_names, strict=True))
        name = fact.name or (called.get(fact.call_id, "") if fact.call_id else "")
        places.append((role, name, -1 if role in INSTRUCTING else max(0, turn), current if inside else -1))
    return places


def _newest(begun: _Begun, roles: Sequence[str], rounds: Sequence[int]) -> set[int]:
    """Indexes of the newest user message, and of the newest round where it stands after that message."""
    start, end = len(begun.spans), len(begun.spans) + len(roles)
    if not end:
        return set()
    user, answer = _last(roles, "user", start, begun.user), _last(roles, "assistant", start, begun.answer)
    newest = {user, end - 1} if user >= 0 else {end - 1}
    if answer > user:
        number = [span.round for span in begun.spans[answer:]] + list(rounds[max(0, answer - start) :])
        newest |= {answer + at for at, one in enumerate(number) if one == number[0]}
    return newest


def _last(roles: Sequence[str], role: str, start: int, known: int) -> int:
    """Index of the last message in the role; `roles` begin with message `start`, before which `known` is the last."""
    for at in range(len(roles) - 1, -1, -1):
        if roles[at] == role:
            return start + at
    return known
