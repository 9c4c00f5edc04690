"""Opening a conversation again: what was opened before is known by one digest of it, and only what is new is read.

To find the messages of a long body, and to digest each, costs three times as much as to digest it in one piece
(DESIGN 1.8). No text is remembered: places, digests and a checksum.
"""

import zlib
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import msgspec

from policies.jsonraw import Member, NotJSON, RawObject, elements
from policies.request import JUDGED, ChatRequest, Item

SHORT = 16_384  # bytes of a body that is opened sooner than looked up
REMEMBERED = 128  # conversations
REMEMBERED_MESSAGES = 40_000  # of all of them together: about 5 MB
TAIL = 64  # bytes whose checksum tells most conversations apart


class Opening(msgspec.Struct, frozen=True, gc=False):
    """The beginning of a body, up to the end of its last message. Places are bytes from its beginning."""

    digest: bytes
    checksum: int  # of the last `TAIL` bytes
    starts: tuple[int, ...]  # of the messages
    ends: tuple[int, ...]
    keys: tuple[bytes, ...]  # of the items


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
            known, state, request = None, sha256(), ChatRequest.parse(body)
        self._remember(request, known, state)
        return request

    def _find(self, body: bytes) -> "tuple[Opening | None, Any]":
        """What is known of the beginning of `body`, and the state of the digest that has taken it in."""
        view = memoryview(body)
        for known in reversed(list(self._known.values())):
            end = known.ends[-1]
            if end <= len(body) and zlib.crc32(view[end - TAIL : end]) == known.checksum:
                state = sha256(view[:end])
                if state.digest() == known.digest:
                    return known, state
        return None, None

    def _remember(self, request: ChatRequest, known: Opening | None, state: Any) -> None:
        """`known` is what was found of it, whose bytes the digest's `state` has taken in."""
        items = request.prompt.messages
        starts, ends = _places(request, known)
        if not ends:
            return
        view = memoryview(request.body)
        state.update(view[known.ends[-1] if known else 0 : ends[-1]])
        opened = Opening(
            state.digest(),
            zlib.crc32(view[ends[-1] - TAIL : ends[-1]]),
            tuple(starts),
            tuple(ends),
            tuple([item.key for item in items]),
        )
        for digest in (known.digest if known else b"", opened.digest):
            self._known.pop(digest, None)
        self._known[opened.digest] = opened
        kept = list(self._known.values())
        messages = sum([len(one.keys) for one in kept])
        while len(kept) > REMEMBERED or (messages > REMEMBERED_MESSAGES and len(kept) > 1):
            oldest = kept.pop(0)
            messages -= len(oldest.keys)
            self._known.pop(oldest.digest, None)


def _places(request: ChatRequest, known: Opening | None) -> tuple[list[int], list[int]]:
    """Where each message starts and ends."""
    starts, ends = (list(known.starts), list(known.ends)) if known else ([], [])
    at = ends[-1] if ends else next(one.start for one in request.object.members if one.name == "messages")
    for item in request.prompt.messages[len(starts) :]:
        start = request.body.index(b"{", at)  # between two messages stand a comma and white space
        at = start + len(item.raw)
        starts.append(start)
        ends.append(at)
    return starts, ends


def _continued(body: bytes, known: Opening) -> ChatRequest | None:
    """The request, its known messages taken as they were; None where it has to be read in full.

    What is read is the body with a zero in place of the known messages.
    """
    start, end = known.starts[0], known.ends[-1]
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
    items = [Item(body[a:b], key) for a, b, key in zip(known.starts, known.ends, known.keys, strict=True)]
    fields = RawObject(body, _moved(short.members, start, end - start - 1))
    return ChatRequest.of(fields, values, (*items, *Item.all(new)))


def _moved(members: Sequence[Member], behind: int, by: int) -> tuple[Member, ...]:
    """The members, those places that are `behind` moved on `by` bytes."""

    def moved(place: int) -> int:
        return place + by if place > behind else place

    return tuple([Member(one.name, moved(one.at), moved(one.start), moved(one.end)) for one in members])
