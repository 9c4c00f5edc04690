"""A prompt → spans: what each message is, which round and turn it belongs to, and which bucket pays for it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from policies.counting import BILLED, Bill, Billed
from policies.facts import Facts, closed
from policies.grown import Grown, before, leave, now
from policies.request import Item, Prompt
from policies.spans import Bucket, Evict, Span, Tier
from policies.tools import Tool, allowed, forced, name_of

INSTRUCTING = ("system", "developer")
ANSWERING = ("tool", "function")


class Split(tuple[Span, ...]):
    """The spans of `messages`, and of tools behind them. `older` are the first of them as they stand once nothing
    of them is newest any more, `newest` the indexes of those among them that still are. `begun` is the `older` of the
    earlier split, with which this one's begins; () where it does not."""

    messages: Grown[Item]
    older: tuple[Span, ...]
    begun: tuple[Span, ...]
    newest: tuple[int, ...]
    tokens: int  # of all of them

    @classmethod
    def of(
        cls,
        spans: Iterable[Span],
        messages: Grown[Item],
        older: tuple[Span, ...],
        begun: tuple[Span, ...],
        newest: tuple[int, ...],
        tokens: int,
    ) -> "Split":
        made = cls(spans)
        made.tokens = tokens
        made.messages, made.older, made.begun, made.newest = messages, older, begun, newest
        return made


class _Begun(NamedTuple):
    """A split up to some message, to go on from: `Split.older`, its tokens, names of functions by id of call, turn and
    round, whether the round may still go on, and the indexes of the newest user message and answer."""

    spans: tuple[Span, ...] = ()
    tokens: tuple[int, ...] = ()
    called: Mapping[str, str] = {}
    turn: int = -1
    round: int = -1
    inside: bool = False
    user: int = -1
    answer: int = -1


_KEY = "split"
_FIRST = _Begun()


def split(prompt: Prompt, facts: Sequence[Facts], bill: Bill) -> tuple[Span, ...]:
    """Messages first, then tools, each with its tokens of `bill`. Shapes: len(prompt.messages) + len(prompt.tools)."""
    begun = _begun(prompt, bill)
    start, end = len(begun.spans), len(prompt.messages)
    facts = facts[start:]
    roles, called = [fact.role for fact in facts], dict(begun.called)
    rounds, classes = _rounds(facts, begun), [_OLDER.get(role, _SAID) for role in roles]
    columns = (
        _IDS[start:end] if end <= len(_IDS) else [f"m{index}" for index in range(start, end)],
        prompt.messages[start:],
        *zip(*classes, strict=True),
        bill.messages[start:],
        roles,
        _names(facts, called),
        _turns(roles, begun.turn),
        rounds,
    )
    new = [*map(Span, *columns)] if roles else []
    spans, newest = [*begun.spans, *new], _newest(begun, roles, rounds)
    for index in newest:
        bucket, tier, evict = _NEWEST.get(spans[index].role, _ASKED)
        spans[index] = msgspec.structs.replace(spans[index], bucket=bucket, tier=tier, evict=evict)
    if prompt.tools:
        spans += _tools(prompt, bill)
    if not isinstance(prompt.messages, Grown):
        return tuple(spans)
    done = closed(facts)
    settled = roles[:done]
    ended = _Begun(
        spans=(*begun.spans, *new[:done]),
        tokens=_settled(prompt, bill, start + done),
        called=called,
        turn=begun.turn + settled.count("user"),
        round=begun.round + settled.count("assistant"),
        inside=rounds[done - 1] >= 0 if done else begun.inside,
        user=_last(settled, "user", start, begun.user),
        answer=_last(settled, "assistant", start, begun.answer),
    )
    leave(prompt.messages, _KEY, ended)
    still = tuple([index for index in newest if index < len(ended.spans)])
    return Split.of(spans, prompt.messages, ended.spans, begun.spans, still, bill.total - bill.overhead)


def _begun(prompt: Prompt, bill: Bill) -> _Begun:
    """What an earlier request left, if it was billed as now."""
    found: _Begun | None = before(prompt.messages, _KEY)[1]
    if found is None:
        return _FIRST
    left: Billed | None = now(prompt.messages, BILLED)
    if left is not None and left.messages is bill.messages and left.begun is found.tokens:
        return found  # to compare them would take longer than to split what is new
    return found if bill.messages[: len(found.tokens)] == found.tokens else _FIRST


def _settled(prompt: Prompt, bill: Bill, end: int) -> tuple[int, ...]:
    """The first tokens of the bill."""
    left: Billed | None = now(prompt.messages, BILLED)
    if left is not None and left.messages is bill.messages and len(left.settled) == end:
        return left.settled
    return bill.messages[:end]


_IDS = tuple([f"m{index}" for index in range(1_000)])  # of most conversations: made, and kept in reports, once

_SAID = (Bucket.HISTORY, Tier.L3, Evict.RECONSTRUCTIBLE)
_ASKED = (Bucket.CURRENT_TURN, Tier.L1, Evict.PINNED)
_INSTRUCTED: dict[str, tuple[Bucket, Tier, Evict]] = dict.fromkeys(INSTRUCTING, (Bucket.SYSTEM, Tier.L0, Evict.PINNED))
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


def _turns(roles: Sequence[str], turn: int) -> list[int]:
    turns = []
    for role in roles:
        if role == "user":
            turn += 1
        turns.append(-1 if role in INSTRUCTING else turn if turn > 0 else 0)
    return turns


def _rounds(facts: Sequence[Facts], begun: _Begun) -> list[int]:
    """An assistant message opens a round; the answers that follow belong to it. Everything else: -1."""
    current, inside, rounds = begun.round, begun.inside, list[int]()
    for fact in facts:
        if fact.role == "assistant":
            current, inside = current + 1, True
        elif fact.role not in ANSWERING:
            inside = False
        rounds.append(current if inside else -1)
    return rounds


def _names(facts: Sequence[Facts], called: dict[str, str]) -> list[str]:
    """The name of each message; of a tool result, the name of the function whose call it answers. Calls are added to
    `called`."""
    names = []
    for fact in facts:
        if len(fact.call_ids) == 1:
            called[fact.call_ids[0]] = fact.call_names[0]
        elif fact.call_ids:
            called.update(zip(fact.call_ids, fact.call_names, strict=True))
        names.append(fact.name or (called.get(fact.call_id, "") if fact.call_id else ""))
    return names


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
    at = next((at for at in range(len(roles) - 1, -1, -1) if roles[at] == role), None)
    return known if at is None else start + at
