"""What a client did to its own history, and what was decided before that still applies.

Clients trim texts, put a clock into the system prompt, delete or compact messages. The prefix is lost with the first
message that differs; message by message most of it is still there.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

Change = Literal["appended", "branched", "system_changed", "edited", "truncated", "compacted"]
CHANGES: tuple[Change, ...] = get_args(Change)

LEAST_COMPACTED = 4  # messages that fewer stand for: below that a client has edited


class Region(NamedTuple):
    """A stretch without a common message: `old` and `new` say how many messages each side has there, `at` where it
    begins in the old; `last` that nothing common follows."""

    at: int
    old: int
    new: int
    last: bool


def recovered(old: Mapping[int, bytes], new: Sequence[bytes]) -> dict[int, int]:
    """New index → old index of the messages that are still the same, by canonical hash, in the order of both.

    `old` should hold every message of the old request, not only those that something was decided for: two messages
    with the same text are told apart by their neighbours. Each index stands at most once. What begins both is paired
    first, then what is unique in the rest of both (where the client moved messages, the longest run in order), then
    what stands between these. Time is linear where the client kept the order.
    """
    pairs = _beginning(old, new)
    rest = sorted(index for index in old if index >= len(pairs))
    pairs |= _anchors(rest, old, new, len(pairs))
    return _filled(rest, old, new, pairs)


def change(old: Sequence[bytes], new: Sequence[bytes], pairs: Mapping[int, int]) -> Change:
    """What the client did to get from the old messages to the new ones, given what `recovered` found.

    appended: the old ones are all there, in front. system_changed: only what begins the request differs. compacted: one
    stretch became at most half as many messages, and fewer than were there. truncated: messages are missing, nothing
    stands for them. branched: it left an earlier point for another end. edited: all else.
    """
    regions = list(_regions(len(old), len(new), pairs))
    lost = [region for region in regions if region.old]
    inside = [region for region in regions if not region.last]
    if not lost and not inside:
        return "appended"
    if any(_compacted(region, len(old)) for region in lost):
        return "compacted"
    if not inside:
        return "branched"
    if len(inside) == 1 and lost == inside and inside[0].at == 0 and inside[0].new:
        return "system_changed"
    return "truncated" if not any(region.new for region in inside) else "edited"


def _beginning(old: Mapping[int, bytes], new: Sequence[bytes]) -> dict[int, int]:
    pairs: dict[int, int] = {}
    for index, one in enumerate(new):
        if old.get(index) != one:
            break
        pairs[index] = index
    return pairs


def _anchors(rest: Sequence[int], old: Mapping[int, bytes], new: Sequence[bytes], start: int) -> dict[int, int]:
    """Pairs of messages that stand once in the rest of both, as many as can be in one order."""
    theirs = Counter(new[start:])
    ours = Counter([old[index] for index in rest])
    place = {old[index]: index for index in rest if ours[old[index]] == theirs[old[index]] == 1}
    shared = [(at, place[new[at]]) for at in range(start, len(new)) if new[at] in place]
    return dict(_longest_rising(shared))


def _longest_rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of the pairs, given by rising first number, whose second numbers rise too."""
    ends: list[int] = []  # the smallest second number that a run of this length can end with
    heads: list[int] = []  # and the pair that it belongs to
    before: list[int] = []  # for each pair the one before it in its run, or -1
    for index, (_, place) in enumerate(pairs):
        if not ends or place > ends[-1]:  # the order was kept: nothing to look for
            before.append(heads[-1] if heads else -1)
            ends.append(place)
            heads.append(index)
            continue
        at = bisect_left(ends, place)
        before.append(heads[at - 1] if at else -1)
        ends[at], heads[at] = place, index
    run: list[tuple[int, int]] = []
    index = heads[-1] if heads else -1
    while index >= 0:
        run.append(pairs[index])
        index = before[index]
    return run[::-1]


def _filled(
    rest: Sequence[int], old: Mapping[int, bytes], new: Sequence[bytes], pairs: Mapping[int, int]
) -> dict[int, int]:
    """The pairs, and between two of them each message with the next of the same hash."""
    waiting: dict[bytes, list[int]] = {}
    for index in reversed(rest):
        waiting.setdefault(old[index], []).append(index)  # the next one last, to be popped
    limits = _limits(len(new), pairs)
    found: dict[int, int] = {}
    last = -1
    for at, one in enumerate(new):
        if at in pairs:
            last = found[at] = pairs[at]
            continue
        places = waiting.get(one, [])
        while places and places[-1] <= last:
            places.pop()
        if places and places[-1] < limits[at]:
            last = found[at] = places.pop()
    return found


def _limits(count: int, pairs: Mapping[int, int]) -> list[float]:
    """For each new message the old index of the next pair, which it has to stay below."""
    limits = [float("inf")] * count
    for at in range(count - 2, -1, -1):
        limits[at] = pairs.get(at + 1, limits[at + 1])
    return limits


def _regions(old: int, new: int, pairs: Mapping[int, int]) -> Iterator[Region]:
    ours = theirs = 0
    for at, place in [*sorted(pairs.items()), (new, old)]:
        if at > theirs or place > ours:
            yield Region(ours, place - ours, at - theirs, at == new)
        theirs, ours = at + 1, place + 1


def _compacted(region: Region, total: int) -> bool:
    """The end of a request counts when it is most of it: a client that kept less has not gone back to a point."""
    if region.old < LEAST_COMPACTED or not 0 < region.new <= region.old // 2:
        return False
    return not region.last or region.old * 2 > total
