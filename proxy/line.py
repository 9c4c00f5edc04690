"""A connection to an upstream: one request at a time, its response as it comes.

aiohttp's connector opens and pools it; llhttp parses. aiohttp's own protocol does the same through a payload reader, a
queue and timers for every read, and costs three times as much.
"""

import asyncio
from collections import deque
from enum import Enum
from typing import cast

import httptools
from aiohttp.client_exceptions import ClientOSError, ClientPayloadError, ServerDisconnectedError, SocketTimeoutError
from aiohttp.http import HttpProcessingError

from proxy.headers import Header
from proxy.upstream import Put

MAX_FIELD = 64 * 1024  # bytes of a name and its value: the 8,190 of many parsers refuse what providers really send
MAX_FIELDS = 512
MAX_HEAD = 1024 * 1024  # bytes of a head that does not end
READ_BUFFER = 128 * 1024  # bytes read ahead of a slow client, before the upstream is paused


class Part(Enum):
    """What of a response comes next. Its members are module names too: asking an enum is slow."""

    HEAD = 1
    BODY = 2
    NOTHING = 3


HEAD, BODY, NOTHING = Part


class Line(asyncio.Protocol):
    """`requests` counts those it carried; `heard` says whether the present response has begun.

    What an upstream sends while the line is `idle` must not be taken for the answer to the next request, which may be
    another client's: the line is closed.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.transport: asyncio.Transport | None = None
        self.requests = 0
        self.heard = self.idle = False
        self.status = 0
        self.headers: list[Header] = []
        self._loop = loop
        self._parser: httptools.HttpResponseParser
        self._next = NOTHING
        self._keep = self._until_close = self._bodiless = self._paused = False
        self._pieces: deque[bytes] = deque()
        self._size = 0  # bytes of the head while it comes, then of the pieces that wait
        self._fault: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._put: Put | None = None  # takes pieces as they come, where somebody waits in `pour`
        self._patience = 0.0  # seconds
        self._due: float | None = None  # when silence becomes a timeout, in the loop's time
        self._alarm: asyncio.TimerHandle | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._lost = False
        self._closed: asyncio.Future[None] | None = None

    # -- what the connector asks

    @property
    def should_close(self) -> bool:
        return self._next is not NOTHING or not self._keep or self._fault is not None

    @property
    def closed(self) -> "asyncio.Future[None] | None":
        """Done when the connection is; None when it was before anybody asked."""
        if self._closed is None and not self._lost:
            self._closed = self._loop.create_future()
        return self._closed

    def is_connected(self) -> bool:
        return self.transport is not None and not self.transport.is_closing()

    def close(self) -> None:
        self._due = None
        if self.transport is not None:
            self.transport.close()
            self.transport = None

    def abort(self) -> None:
        self._due = None
        if self.transport is not None:
            self.transport.abort()
            self.transport = None

    # -- what a request asks

    def expect(self, method: str, patience: float) -> None:
        """A request leaves now; `patience` seconds without a byte are a timeout."""
        self._parser = httptools.HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self.requests += 1
        self.heard = self.idle = False
        self.status, self.headers = 0, []
        self._next, self._bodiless = HEAD, method == "HEAD"
        self._pieces.clear()
        self._size = 0
        self._fault = None if self.transport is not None else ServerDisconnectedError()
        self.wait_at_most(patience)

    def wait_at_most(self, patience: float) -> None:
        """From here on, `patience` seconds without a byte break the response off."""
        if self._next is NOTHING:
            return
        self._patience = patience
        self._due = self._loop.time() + patience
        if self._alarm is not None and self._alarm.when() > self._due:
            self._alarm.cancel()
            self._alarm = None
        if self._alarm is None:
            self._alarm = self._loop.call_at(self._due, self._ring)

    def wait_again(self) -> None:
        """Silence counts from now: a body is still on its way there."""
        self.wait_at_most(self._patience)

    async def head(self) -> None:
        """Returns when `status` and `headers` are known. Raises HttpProcessingError, ClientError, OSError."""
        while not self.status:
            if self._fault is not None:
                raise self._fault
            self._waiter = self._loop.create_future()
            await self._waiter

    async def read(self) -> bytes:
        """What came since the last call; b"" at the end. Raises HttpProcessingError, ClientError, OSError."""
        while not self._pieces:
            if self._fault is not None:
                raise self._fault
            if self._next is NOTHING:
                return b""
            self._waiter = self._loop.create_future()
            await self._waiter
        return self._taken()

    async def pour(self, put: Put) -> None:
        """Pieces go to `put` as they come, until it wants no more or none comes; what waits is left to `read`."""
        if self._next is not BODY or self._pieces or self._fault is not None:
            return
        self._put, self._waiter = put, self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._put = None

    @property
    def complete(self) -> bool:
        """The response arrived to its end, whether it was read or not."""
        return self._next is NOTHING and self._fault is None

    @property
    def ended(self) -> bool:
        return self._next is NOTHING and self._fault is None and not self._pieces

    async def drain(self) -> None:
        await self._writable.wait()

    # -- what the transport tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name

    def data_received(self, data: bytes) -> None:
        if self.idle:
            self.close()
            return
        self.heard = True
        if self._next is NOTHING:
            self._keep = False  # bytes behind the end: nobody can say whose they are
            return
        self._due = self._loop.time() + self._patience
        if self._next is HEAD:
            self._size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(HttpProcessingError(code=101, message="a protocol that nobody asked for"))
        except httptools.HttpParserError as error:
            self._fail(HttpProcessingError(code=502, message=str(error)))
        if self._next is HEAD and self._size > MAX_HEAD:
            self._fail(HttpProcessingError(code=502, message="a head that does not end"))
        if self._waiter is not None and (self._put is None or not self._pour_on(self._put)):
            self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost, self.transport = True, None
        if self._alarm is not None:
            self._alarm.cancel()
        if self._next is BODY and self._until_close and exc is None:
            self._next = NOTHING
        elif self._next is not NOTHING:
            cut = ServerDisconnectedError() if self._next is HEAD else ClientPayloadError("cut short")
            self._fault = self._fault or (ClientOSError(*exc.args) if isinstance(exc, OSError) else cut)
        self._writable.set()
        self._wake()
        if self._closed is not None and not self._closed.done():
            self._closed.set_result(None)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # -- what the parser tells

    def on_message_begin(self) -> None:
        if self._next is NOTHING:
            self._keep = False
        else:
            self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._next is not HEAD:
            return  # trailers
        if len(name) + len(value) > MAX_FIELD or len(self.headers) >= MAX_FIELDS:
            raise ValueError("a header over the limit")
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._next is not HEAD or 100 <= status < 200:
            return
        self.status, self._size = status, 0
        self._keep, self._until_close = self._parser.should_keep_alive(), not _is_delimited(self.headers)
        self._next = BODY
        if self._bodiless:
            self.on_message_complete()

    def on_body(self, body: bytes) -> None:
        if self._next is not BODY:
            return
        self._pieces.append(body)
        self._size += len(body)
        if self._size > READ_BUFFER and not self._paused and self.transport is not None:
            self._paused, self._due = True, None
            self.transport.pause_reading()

    def on_message_complete(self) -> None:
        if self.status:
            self._next, self._due = NOTHING, None

    # -- waiting

    def _pour_on(self, put: Put) -> bool:
        """Whether more is to be poured."""
        return (not self._pieces or put(self._taken())) and self._next is BODY and self._fault is None

    def _taken(self) -> bytes:
        data = self._pieces.popleft() if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        if self._paused and self.transport is not None:
            self._paused = False
            self.transport.resume_reading()
            self.wait_again()
        return data

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _fail(self, fault: Exception) -> None:
        self._fault = self._fault or fault
        self.close()
        self._wake()

    def _ring(self) -> None:
        self._alarm = None
        if self._due is None:
            return
        if self._due > self._loop.time():
            self._alarm = self._loop.call_at(self._due, self._ring)
        else:
            self._fail(SocketTimeoutError("Timeout on reading data from socket"))


def _is_delimited(headers: list[Header]) -> bool:
    """Whether the response says where its body ends, other than by the end of the connection."""
    for name, value in headers:
        lowered = name.lower()
        if lowered == b"content-length" or (lowered == b"transfer-encoding" and b"chunked" in value.lower()):
            return True
    return False
