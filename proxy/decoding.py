"""An upstream's answer, decompressed as it comes: some servers compress what they were asked for as it is."""

import sys
import zlib
from collections.abc import Callable, Sequence
from typing import Protocol

import brotli

from proxy.bodies import MAX_CODINGS
from proxy.errors import BrokenOff, Malformed
from proxy.headers import Header
from proxy.sse import MAX_BUFFER
from proxy.upstream import Put, Reply

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

DESCRIBES_CODED = frozenset({b"content-encoding", b"content-length"})


class Coding(Protocol):
    """One content coding, undone piece by piece."""

    @property
    def more(self) -> bool:
        """There is more to take of what was given."""
        ...

    @property
    def is_whole(self) -> bool:
        """What was given may end here."""
        ...

    def take(self, data: bytes) -> bytes:
        """At most `MAX_BUFFER` bytes, of brotli twice that, of what was given so far and not taken yet; b"" for `data`
        where there is `more`. Raises ValueError, zlib.error, ZstdError, brotli.error."""
        ...


class _Opened(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _Members:
    """gzip, deflate and zstd allow whole streams one after another. `open_one` is given how one begins, and opens none
    where that does not tell enough."""

    def __init__(self, open_one: Callable[[bytes], _Opened | None]) -> None:
        self._open_one = open_one
        self._opened: _Opened | None = None
        self._left = b""
        self.more = False

    @property
    def is_whole(self) -> bool:
        return not self._left and (self._opened is None or self._opened.eof)

    def take(self, data: bytes) -> bytes:
        data, self._left, self.more = self._left + data, b"", False
        if data and (self._opened is None or self._opened.eof):
            self._opened = self._open_one(data)
        if self._opened is None or self._opened.eof:
            self._left = data
            return b""
        taken = self._opened.decompress(data, MAX_BUFFER)
        self._left = self._opened.unused_data or getattr(self._opened, "unconsumed_tail", b"")  # zstd keeps it itself
        self.more = bool(self._left) or len(taken) >= MAX_BUFFER
        return taken


class _Brotli:
    """What follows a whole stream is none of it."""

    def __init__(self) -> None:
        self._opened = brotli.Decompressor()
        self._is_begun = False
        self.more = False

    @property
    def is_whole(self) -> bool:
        return not self._is_begun or self._opened.is_finished()

    def take(self, data: bytes) -> bytes:
        opened, self._is_begun = self._opened, True
        taken = b"" if opened.is_finished() else opened.process(data, output_buffer_limit=MAX_BUFFER)
        is_full = len(taken) >= MAX_BUFFER or not opened.can_accept_more_data()
        self.more = is_full and not opened.is_finished()
        return taken


def _gzip(head: bytes) -> _Opened:  # noqa: ARG001 - there is only one kind
    return zlib.decompressobj(31)


def _deflate(head: bytes) -> _Opened | None:
    # "deflate" is the zlib format; senders that leave its two-byte header out are common (RFC 9110 8.4.1.2)
    if len(head) < 2:
        return None
    is_zlib = head[0] & 0x0F == 8 and (head[0] << 8 | head[1]) % 31 == 0
    return zlib.decompressobj(15 if is_zlib else -15)


def _zstd(head: bytes) -> _Opened:  # noqa: ARG001 - there is only one kind
    return zstd.ZstdDecompressor()


CODINGS: dict[bytes, Callable[[], Coding]] = {
    b"br": _Brotli,
    b"deflate": lambda: _Members(_deflate),
    b"gzip": lambda: _Members(_gzip),
    b"x-gzip": lambda: _Members(_gzip),
    b"zstd": lambda: _Members(_zstd),
}


def decoded(reply: Reply) -> Reply:
    """The reply as it was before it was compressed, and without the headers that speak of that; itself where it was
    not. Raises Malformed, and closes it, where nobody knows its coding."""
    named = b",".join([value for name, value in reply.headers if name.lower() == b"content-encoding"])
    codings = [name for part in named.split(b",") if (name := part.strip().lower()) not in (b"", b"identity")]
    if len(codings) > MAX_CODINGS or any(name not in CODINGS for name in codings):
        reply.close()
        raise Malformed("the upstream compressed an answer that it was asked for as it is, in a way not known here")
    for name in reversed(codings):
        reply = _Decoded(reply, CODINGS[name]())
    return reply


class _Decoded:
    """See `Reply`."""

    def __init__(self, reply: Reply, coding: Coding) -> None:
        self.status = reply.status
        self.headers: Sequence[Header] = [one for one in reply.headers if one[0].lower() not in DESCRIBES_CODED]
        self._reply, self._coding = reply, coding

    @property
    def ended(self) -> bool:
        return self._reply.ended and self._coding.is_whole and not self._coding.more

    async def read(self) -> bytes:
        """Raises BrokenOff as well for what is damaged, or ends inside."""
        while True:
            chunk = b"" if self._coding.more else await self._reply.read()
            if not chunk and not self._coding.more:
                if not self._coding.is_whole:
                    raise BrokenOff("inside a compressed answer")
                return b""
            try:
                piece = self._coding.take(chunk)
            except (ValueError, EOFError, zlib.error, zstd.ZstdError, brotli.error) as error:
                raise BrokenOff("a compressed answer is damaged") from error
            if piece:
                return piece

    async def pour(self, put: Put) -> None:  # noqa: ARG002 - the protocol's signature; `read` has to decode each piece
        return None

    def close(self) -> None:
        self._reply.close()
