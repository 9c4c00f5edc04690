"""Opening a conversation again: what was opened before is known by one digest of it, and only what is new is read.

To find the messages of a long body, and to digest each, costs three times as much as to digest it in one piece
(DESIGN 1.8). The messages that were opened last are kept, within bounds, and with them what was worked out for them
(`policies.grown`); only a request that begins with the very same bytes finds them again.
"""

import zlib
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import msgspec

from policies.grown import Grown, Trail
from policies.jsonraw import Member, NotJSON, RawObject, elements
from policies.request import JUDGED, ChatRequest, Item

SHORT = 16_384  # bytes of a body that is opened sooner than looked up
REMEMBERED = 128  # conversations
REMEMBERED_MESSAGES = 40_000  # of all of them together: about 30 MB of what was worked out for them
REMEMBERED_BYTES = 64 << 20  # of all their messages
TAIL = 64  # bytes whose checksum tells most conversations apart


class Opening(msgspec.Struct, frozen=True):
    """The beginning of a body, up to the end of its last message. Places are bytes from its beginning."""

    digest: bytes
    checksum: int  # of the last `TAIL` bytes
    start: int  # of the first message
    end: int  # of the last one
    items: tuple[Item, ...]
    trail: Trail

    @property
    def size(self) -> int:
        """Bytes of its messages, about."""
        return self.end - self.start


class Opener:
    """`parse` is `ChatRequest.parse`, faster for a conversation that grew or comes again.

    Each access to what is remembered is one operation of a dict, so threads need no lock: the worst that a race costs
    is that something is read in full.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, Opening] = {}

    def parse(self, body: bytes) -> ChatRequest:
        """Raises BadRequest."""
        if len(body) < SHORT:
            return ChatRequest.parse(body)
        known, state = self._find(body)
        request = None if known is None else _continued(body, known)
        if known is None or request is None:
            known, state, request = None, sha256(), _traced(ChatRequest.parse(body))
        self._remember(request, known, state)
        return request

    def _find(self, body: bytes) -> "tuple[Opening | None, Any]":
        """What is known of the beginning of `body`, and the state of the digest that has taken it in."""
        view = memoryview(body)
        for known in reversed(list(self._known.values())):
            end = known.end
            if end <= len(body) and zlib.crc32(view[end - TAIL : end]) == known.checksum:
                state = sha256(view[:end])
                if state.digest() == known.digest:
                    return known, state
        return None, None

    def _remember(self, request: ChatRequest, known: Opening | None, state: Any) -> None:
        """`known` is what was found of it, whose bytes the digest's `state` has taken in."""
        items = request.prompt.messages
        if not isinstance(items, Grown) or not items:
            return
        start, end = _place(request, known)
        view = memoryview(request.body)
        state.update(view[known.end if known else 0 : end])
        checksum = zlib.crc32(view[end - TAIL : end])
        opened = Opening(state.digest(), checksum, start, end, items, items.trail)
        for digest in (known.digest if known else b"", opened.digest):
            self._known.pop(digest, None)
        self._known[opened.digest] = opened
        self._forget()

    def _forget(self) -> None:
        kept = list(self._known.values())
        messages, size = sum([len(one.items) for one in kept]), sum([one.size for one in kept])
        while len(kept) > REMEMBERED or ((messages > REMEMBERED_MESSAGES or size > REMEMBERED_BYTES) and len(kept) > 1):
            oldest = kept.pop(0)
            messages, size = messages - len(oldest.items), size - oldest.size
            self._known.pop(oldest.digest, None)


def _traced(request: ChatRequest) -> ChatRequest:
    """The request with a trail that later ones go on from."""
    messages = Grown.of(request.prompt.messages, {}, {}, 0)
    return msgspec.structs.replace(request, prompt=msgspec.structs.replace(request.prompt, messages=messages))


def _place(request: ChatRequest, known: Opening | None) -> tuple[int, int]:
    """Where the first message starts and the last one ends."""
    if known is not None:
        start, at, new = known.start, known.end, request.prompt.messages[len(known.items) :]
    else:
        at = next(one.start for one in request.object.members if one.name == "messages")
        start, new = request.body.index(b"{", at), request.prompt.messages
    for item in new:  # between two messages stand a comma and white space
        at = request.body.index(b"{", at) + len(item.raw)
    return start, at


def _continued(body: bytes, known: Opening) -> ChatRequest | None:
    """The request, its known messages taken as they were; None where it has to be read in full.

    What is read is the body with a zero in place of the known messages.
    """
    start, end = known.start, known.end
    try:
        short = RawObject.parse(body[:start] + b"0" + body[end:])
        if short.repeated(JUDGED):
            return None
        values = short.values()
        new = elements(values["messages"])[1:]
    except NotJSON:  # its places would be wrong in the message
        return None
    if any([raw[:1] != b"{" for raw in new]):
        return None
    fields = RawObject(body, _moved(short.members, start, end - start - 1))
    trail = {} if new else known.trail
    messages = Grown.of((*known.items, *Item.all(new)), trail, known.trail, len(known.items))
    return ChatRequest.of(fields, values, messages)


def _moved(members: Sequence[Member], behind: int, by: int) -> tuple[Member, ...]:
    """The members, those places that are `behind` moved on `by` bytes."""

    def moved(place: int) -> int:
        return place + by if place > behind else place

    return tuple([Member(one.name, moved(one.at), moved(one.start), moved(one.end)) for one in members])
