"""The way to an upstream, as the proxy sees it: a seam of three methods. `pool.AiohttpTransport` stands behind it."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

import msgspec

from proxy.headers import Header, find

Body = bytes | AsyncIterator[bytes] | None
Put = Callable[[bytes], bool]  # takes a piece at once; False: no more for now, the way is full


class Outgoing(msgspec.Struct, frozen=True):
    """A request as it leaves. `target` is appended to `base` byte for byte. A body that is an iterator can be sent only
    once, so it never rides on a pooled connection; `length` is its size in bytes where the client declared one."""

    method: str
    base: str
    target: bytes
    headers: Sequence[Header]
    body: Body = None
    length: int | None = None
    first_byte_timeout: float | None = None  # seconds; None is the transport's own


class Reply(Protocol):
    """A response whose status and headers are known."""

    status: int
    headers: Sequence[Header]  # names as the upstream spelt them

    @property
    def ended(self) -> bool:
        """Nothing follows what was read. Where that is not known yet, False, and the next read tells."""
        ...

    async def read(self) -> bytes:
        """What the upstream sent since the last call, as soon as there is any; b"" at the end. Raises BrokenOff."""
        ...

    async def pour(self, put: Put) -> None:
        """Hand to `put` what comes, in the turn of the loop in which it comes, as long as `put` wants more. May return
        at any time: `read` tells how it goes on. Never raises."""
        ...

    def close(self) -> None:
        """Give the connection back if the response was read to its end, else cut it. May be called twice."""
        ...


class Transport(Protocol):
    """The seam: what the proxy needs of the network."""

    async def open(self) -> None:
        """Called once, on the event loop that will be used."""
        ...

    async def send(self, outgoing: Outgoing) -> Reply:
        """Raises UpstreamError. Cancelled, it leaves no connection behind."""
        ...

    async def close(self) -> None: ...


class Timeouts(msgspec.Struct, frozen=True):
    """Seconds."""

    connect: float = 5.0
    first_byte: float = 600.0
    idle: float = 300.0
    pool_idle: float = 30.0


MAX_CLIENT_TIMEOUT = 3600.0  # seconds


def first_byte_timeout(headers: Sequence[Header]) -> float | None:
    """What the client's SDK says it will wait (`x-stainless-timeout`, seconds), or None."""
    try:
        seconds = float(find(headers, b"x-stainless-timeout") or 0)
    except ValueError:
        return None
    return min(seconds, MAX_CLIENT_TIMEOUT) if seconds > 0 else None
