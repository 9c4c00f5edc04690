"""The chain of a request's messages: its place in its conversation (`policies.identity`)."""

import asyncio
from collections.abc import Sequence

import msgspec

from policies.grown import Run, before, leave
from policies.identity import CanonicalHashes, chain, model_family, root
from policies.request import ChatRequest, Item
from proxy.planner import Call
from proxy.sessions import named

_Runs = tuple[Run[bytes], Run[bytes]]

_NONE = Run[bytes]()

HASHED_INLINE = 256 * 1024  # bytes of messages; hashing more for the first time is work


class Head(msgspec.Struct, frozen=True, array_like=True):
    """The last request of a conversation that was written down: the canonical hash of each message."""

    hashes: bytes  # 16 bytes each

    @classmethod
    def decode(cls, value: bytes) -> "Head":
        """Raises msgspec.DecodeError."""
        return msgspec.msgpack.decode(value, type=cls)

    def each(self) -> list[bytes]:
        return [self.hashes[at : at + 16] for at in range(0, len(self.hashes), 16)]


class Chained:
    """Nothing of it is computed before it is placed: until then `links` and `hashes` are empty."""

    def __init__(self, known: CanonicalHashes, call: Call, request: ChatRequest) -> None:
        self._known, self._call, self._request = known, call, request
        self.root = b""
        self.links = self.hashes = _NONE  # a chain key, and a canonical hash, of each message

    @property
    def id(self) -> str:
        """Of the conversation in the ledger: how it begins, up to its first message that instructs nobody."""
        return self.links[min(1, len(self.links) - 1)].hex() if self.links else ""

    @property
    def head_key(self) -> str:
        """By the name that the client gave, else by its first message behind the instructions."""
        label = named(self._request, self._call).encode("utf-8", "surrogatepass") or b"".join(self.hashes[1:2])
        return chain(self.root, [label])[0].hex()

    @property
    def head(self) -> Head:
        return Head(b"".join(self.hashes))

    async def place(self) -> None:
        """The chain, which goes on from that of the request before."""
        if not self.place_at_once(HASHED_INLINE):
            begun, new = self._begun()
            self._go_on(begun, await asyncio.to_thread(self._known.of, new))

    def place_at_once(self, most: int) -> bool:
        """The same; False where that takes to hash more than `most` bytes."""
        if not self.links:
            begun, new = self._begun()
            if sum(len(item.raw) for item in new) > most:
                return False
            self._go_on(begun, self._known.of(new))
        return True

    def _begun(self) -> tuple[_Runs, Sequence[Item]]:
        """Hashes and links of the request before, and the messages behind them."""
        if not self.root:
            self.root = root(self._call.tenant, self._call.upstream.name, model_family(self._request.model))
        messages = self._request.prompt.messages
        known, left = before(messages, self.root)
        return left or (_NONE, _NONE), messages[known:]

    def _go_on(self, begun: _Runs, added: list[bytes]) -> None:
        hashes, links = begun
        self.hashes = hashes.and_then(added)
        self.links = links.and_then(chain(links[-1] if links else self.root, added))
        leave(self._request.prompt.messages, self.root, (self.hashes, self.links))
