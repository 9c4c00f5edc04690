"""A prompt → spans: what each message is, which round and turn it belongs to, and which bucket pays for it."""

from collections.abc import Sequence

from policies.counting import Bill
from policies.facts import Facts
from policies.request import Prompt
from policies.spans import Bucket, Evict, Span, Tier
from policies.tools import Tool, allowed, forced, name_of

INSTRUCTING = ("system", "developer")
ANSWERING = ("tool", "function")


def split(prompt: Prompt, facts: Sequence[Facts], bill: Bill) -> tuple[Span, ...]:
    """Messages first, then tools, each with its tokens of `bill`. Shapes: len(prompt.messages) + len(prompt.tools)."""
    rounds = _rounds(facts)
    roles = [fact.role for fact in facts]
    newest = _newest(roles, rounds)
    classes = [_OLDER.get(role, _SAID) for role in roles]
    for index in newest:
        classes[index] = _NEWEST.get(roles[index], _ASKED)
    ids = _IDS[: len(roles)] if len(roles) <= len(_IDS) else [f"m{index}" for index in range(len(roles))]
    columns = (
        ids,
        prompt.messages,
        *zip(*classes, strict=True),
        bill.messages,
        roles,
        _names(facts),
        _turns(roles),
        rounds,
    )
    spans = list(map(Span, *columns)) if roles else []
    return tuple(spans + _tools(prompt, bill) if prompt.tools else spans)


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


def _turns(roles: Sequence[str]) -> list[int]:
    turn, turns = -1, []
    for role in roles:
        if role == "user":
            turn += 1
        turns.append(-1 if role in INSTRUCTING else turn if turn > 0 else 0)
    return turns


def _rounds(facts: Sequence[Facts]) -> list[int]:
    """An assistant message opens a round; the answers that follow belong to it. Everything else: -1."""
    current, rounds = -1, []
    inside = False
    for fact in facts:
        if fact.role == "assistant":
            current, inside = current + 1, True
        elif fact.role not in ANSWERING:
            inside = False
        rounds.append(current if inside else -1)
    return rounds


def _names(facts: Sequence[Facts]) -> list[str]:
    """The name of each message; of a tool result, the name of the function whose call it answers."""
    called: dict[str, str] = {}
    names = []
    for fact in facts:
        if len(fact.call_ids) == 1:
            called[fact.call_ids[0]] = fact.call_names[0]
        elif fact.call_ids:
            called.update(zip(fact.call_ids, fact.call_names, strict=True))
        names.append(fact.name or (called.get(fact.call_id, "") if fact.call_id else ""))
    return names


def _newest(roles: Sequence[str], rounds: Sequence[int]) -> set[int]:
    """Indexes of the newest user message, and of the newest round where it stands after that message."""
    if not roles:
        return set()
    user = len(roles) - 1 - roles[::-1].index("user") if "user" in roles else -1
    newest = {user, len(roles) - 1} if user >= 0 else {len(roles) - 1}
    last = max(rounds[user + 1 :], default=-1)
    if last >= 0:
        newest |= {index for index in range(rounds.index(last, user + 1), len(roles)) if rounds[index] == last}
    return newest
