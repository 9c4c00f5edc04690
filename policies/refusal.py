"""What is said when a prompt cannot fit: the floor, and a way to split the job into parts that do (DESIGN 1.1)."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from policies.draft import Draft
from policies.jsonraw import dumps, loads
from policies.messages import with_text
from policies.plan import Refusal
from policies.request import Item, Prompt
from policies.spans import Span, Tier
from policies.texts.boundaries import cut_before

INLINE_BYTES = 256 * 1024  # bodies of all units together; beyond that they are named by ranges
LEAST_ROOM = 200  # tokens: parts smaller than this say too little to be worked on
LARGEST = 9999  # number of a part, for the room that its sentence takes
PART = "\n\n[Part {number} of {count} of a longer message. Work on this part only; the answers are combined later.]"
COMBINE = "A task was worked on in {count} parts. Combine these answers into one.\n\n{answers}"


class _Split(msgspec.Struct, frozen=True):
    """The text that is cut, the messages that every part carries, and the tokens left for a part."""

    user: Span
    text: str
    base: tuple[Span, ...]
    room: int


def refuse(prompt: Prompt, draft: Draft) -> Refusal:
    """`draft` is what is left when every licensed step was asked; its total is the floor, above its limit."""
    split = _splittable(draft)
    if isinstance(split, str):
        return Refusal(draft.total, draft.limit, (), None, split)
    ranges = list(_ranges(draft, split))
    units = [_unit(prompt, draft, split, (number, len(ranges), *place)) for number, place in enumerate(ranges, 1)]
    if any(unit["tokens"] > draft.limit for unit in units):
        return Refusal(draft.total, draft.limit, (), None, "no part of the newest user message fits beside the rest")
    if sum(len(dumps(unit["request"])) for unit in units) > INLINE_BYTES:
        units = [{key: value for key, value in unit.items() if key != "request"} for unit in units]
    return Refusal(draft.total, draft.limit, tuple(units), _aggregate(prompt, split, len(ranges)), "")


def _splittable(draft: Draft) -> _Split | str:
    """What can be cut, or the reason why nothing can."""
    users = [span for span in draft.messages if span.is_user and span.tier is Tier.L1]
    if not users:
        return "there is no user message that could be split"
    user = users[-1]
    base = tuple(span for span in draft.messages if span.tier is Tier.L0)
    frame = _cost(draft, base, user, "")
    room = draft.limit - frame
    if room < LEAST_ROOM:
        return f"system messages and overhead alone take {frame} of {draft.limit} tokens"
    text = draft.message(user).text
    if draft.measure(text) <= room:
        return "the newest round is over the budget, and only a user message can be split"
    return _Split(user, text, base, room)


def _ranges(draft: Draft, split: _Split) -> Iterator[tuple[int, int]]:
    """Start and end (characters) of the parts, cut where the text breaks, each within the room."""
    text, start = split.text, 0
    density = len(text) / max(1, draft.measure(text))
    while start < len(text):
        size = max(1, int(split.room * density))
        end = len(text)
        while True:
            end = min(end, start + size)
            end = end if end == len(text) else max(start + 1, cut_before(text, end) if end > start + 1 else end)
            if _cost(draft, split.base, split.user, text[start:end]) <= draft.limit or size == 1:
                break
            size = max(1, size * 4 // 5)
        yield start, end
        start = end


def _cost(draft: Draft, base: Sequence[Span], user: Span, text: str) -> int:
    """Tokens of a request for the part `text`."""
    said = _said(user, text + PART.format(number=LARGEST, count=LARGEST))
    return draft.counter.bill(_prompt(draft.prompt, [*(span.item for span in base), said])).total


def _unit(prompt: Prompt, draft: Draft, split: _Split, place: tuple[int, int, int, int]) -> dict[str, Any]:
    number, count, start, end = place
    said = split.text[start:end] + PART.format(number=number, count=count)
    items = [*(span.item for span in split.base), _said(split.user, said)]
    return {
        "name": f"part-{number}",
        "spans": [*(span.id for span in split.base), split.user.id],
        "chars": [start, end],
        "tokens": draft.counter.bill(_prompt(prompt, items)).total,
        "request": _request(prompt, items),
    }


def _aggregate(prompt: Prompt, split: _Split, count: int) -> dict[str, Any]:
    answers = "\n\n".join(f"{{{{part-{number}}}}}" for number in range(1, count + 1))
    said = _said(split.user, COMBINE.format(count=count, answers=answers))
    return {"request": _request(prompt, [*(span.item for span in split.base), said])}


def _said(user: Span, text: str) -> Item:
    return Item.of(with_text(user.item.raw, text))


def _prompt(prompt: Prompt, items: list[Item]) -> Prompt:
    return Prompt(prompt.model, tuple(items))


def _request(prompt: Prompt, items: list[Item]) -> dict[str, Any]:
    return {"model": prompt.model, "messages": [loads(item.raw) for item in items]}
