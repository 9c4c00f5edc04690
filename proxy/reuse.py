"""How much of what one request sent the next one of its conversation sends again: what a provider's cache can hold.

Measured on what left, by digests of tools and messages, and not on what was decided: an epoch that nobody declared
shows too.
"""

from array import array
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from policies.grown import before, leave
from policies.request import Item, Prompt
from policies.spans import Span
from proxy.bounded import Bounded
from proxy.observe import About
from proxy.recall import Conversation

CACHED = 1_024  # tokens: of less no provider keeps a prefix (FACTS 5)
PLACED = 64 * 1024  # bytes of messages at most that are hashed for this alone
MOST = 512  # requests that others may go on from, beside those in trails
MOST_BYTES = 8 << 20
SIZE = 16  # bytes of a digest

Place = tuple[str, str, str]


class Sending(NamedTuple):
    """A request on its way: what was received, what is sent in its place, and the spans of that."""

    about: About
    conversation: Conversation
    received: Prompt
    sent: Prompt
    spans: Sequence[Span]

    @property
    def place(self) -> Place:
        """Whose caches hold it."""
        return self.about.tenant, self.about.upstream, self.received.model

    @property
    def lasting(self) -> int:
        """Messages of what is sent, without repairs at its end, which are put in anew each time."""
        count = len(self.sent.messages)
        while count and self.spans[count - 1].id[0] == "n" and self.spans[count - 1].is_result:
            count -= 1
        return count


class Forwarded(msgspec.Struct, frozen=True):
    """What was sent for a request of `asked` messages: `tools`, a number, and behind them the messages."""

    asked: int
    tools: int = 0
    digests: bytes = b""  # 16 bytes each
    costs: bytes = b""  # their tokens, 8 bytes each

    def and_then(self, items: Sequence[Item], spans: Iterable[Span]) -> "Forwarded":
        """Each item has its span."""
        return Forwarded(self.asked, self.tools, self.digests + _joined(items), self.costs + _costs(spans))

    def reused(self, later: "Forwarded") -> float:
        """Tokens that `later` begins with / tokens of all of this."""
        ours, theirs = self.digests, later.digests
        if theirs.startswith(ours):
            return 1.0
        torn = next(at for at in range(0, len(ours), SIZE) if ours[at : at + SIZE] != theirs[at : at + SIZE])
        costs = array("q", self.costs)
        return sum(costs[: torn // SIZE]) / max(1, sum(costs))


class Reuse:
    """What was sent lately. A request finds the one before by the messages that it begins with: in their trail, where
    it has their very bytes (`policies.opener`), else by its chain."""

    def __init__(self) -> None:
        self._sent: Bounded[bytes, Forwarded] = Bounded(MOST, MOST_BYTES)

    def over(self, sending: Sending) -> float | None:
        """The share of the request before that was sent again, from 0 to 1. None where this one was not taken by the
        upstream, goes on from none that is known, or is the same again."""
        messages = sending.received.messages
        if not messages:
            return None
        key = "before", *sending.place
        earlier = self._earlier(sending, key)
        if not sending.conversation.taken:
            if earlier is not None:  # who goes on from this one goes on from that
                leave(sending.received.messages, key, earlier)
            return None
        made = _forwarded(sending)
        self._hold(sending, made)
        leave(sending.received.messages, key, made)
        if earlier is None or (earlier.asked >= made.asked and not sending.conversation.head):
            return None
        return earlier.reused(made)

    def _earlier(self, sending: Sending, key: Hashable) -> Forwarded | None:
        messages, chained = sending.received.messages, sending.conversation.chained
        left: Forwarded | None = before(messages, key)[1]
        if left is not None:
            return left
        if sending.conversation.head:
            return self._sent.get(sending.conversation.head)
        links = reversed(chained.links) if chained.place_at_once(PLACED) else ()
        return next((found for link in links if (found := self._sent.get(link)) is not None), None)

    def _hold(self, sending: Sending, made: Forwarded) -> None:
        links = sending.conversation.links
        if links:
            self._sent.hold(links[-1], made, len(made.digests) + len(made.costs))


def _forwarded(sending: Sending) -> Forwarded:
    """Worked out for what is new alone, where the rest was sent before and that is known by its trail."""
    _, _, received, sent, spans = sending
    key, asked = ("sent", *sending.place), len(received.messages)
    found: tuple[int, Forwarded | None] = before(sent.messages, key)
    (shared, begun), end = found, sending.lasting
    if begun is None or not _is_begun(begun, sent, shared):
        items, costing = (*sent.tools, *sent.messages[:end]), (*spans[len(sent.messages) :], *spans[:end])
        made = Forwarded(asked, len(sent.tools), _joined(items), _costs(costing))
    else:
        begun = msgspec.structs.replace(begun, asked=asked)
        made = begun.and_then(sent.messages[shared:end], spans[shared:end])
    leave(sent.messages, key, made)
    return made


def _is_begun(begun: Forwarded, sent: Prompt, shared: int) -> bool:
    """Just these tools, and the `shared` messages, were sent then."""
    tools = begun.digests[: begun.tools * SIZE]
    return len(begun.digests) == len(tools) + shared * SIZE and tools == _joined(sent.tools)


def _costs(spans: Iterable[Span]) -> bytes:
    return array("q", [span.tokens for span in spans]).tobytes()


def _joined(items: Sequence[Item]) -> bytes:
    return b"".join([item.key for item in items])
