"""The transport over real sockets: aiohttp's connector, and lines of our own on it.

aiohttp's session is left out: it follows redirects, keeps cookies and repeats GET and PUT by itself, even after part of
a response (FACTS 3). Its connector finds, opens and pools connections; the request is written here, as the bytes that
came in, and `line` reads the response.
"""

import asyncio
import functools
from collections.abc import AsyncIterator, Sequence
from typing import cast

import msgspec
from aiohttp import ClientRequest, ClientTimeout, TCPConnector, client_exceptions
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError
from yarl import URL

from proxy.bodies import ClientGone
from proxy.errors import BrokenOff, Disconnected, Malformed, TimedOut, Unreachable, UpstreamError
from proxy.headers import Header
from proxy.line import Line
from proxy.upstream import Outgoing, Put, Reply, Timeouts


class AiohttpReply:
    """See `Reply`."""

    __slots__ = ("_connection", "_line", "_pump", "headers", "status")

    def __init__(self, connection: Connection, line: Line, pump: "asyncio.Task[None] | None") -> None:
        self._connection = connection
        self._line = line
        self._pump = pump
        self.status = 0
        self.headers: Sequence[Header] = ()

    async def begin(self) -> None:
        """Wait for the head of the response. Raises what the line raises."""
        await self._line.head()
        if self._line.status > 599:
            raise HttpProcessingError(code=self._line.status, message="a status that cannot be handed on")
        self.status, self.headers = self._line.status, self._line.headers

    @property
    def ended(self) -> bool:
        return self._line.ended

    async def read(self) -> bytes:
        try:
            return await self._line.read()
        except (client_exceptions.ClientError, HttpProcessingError, OSError) as error:
            raise BrokenOff(_name(error)) from error

    async def pour(self, put: Put) -> None:
        await self._line.pour(put)

    def close(self) -> None:
        if self._pump is not None and not self._pump.done():
            self._pump.cancel()
            self._connection.close()
        elif self._line.complete:
            self._line.idle = True
            self._connection.release()
        else:
            self._connection.close()


class AiohttpTransport:
    """See `Transport`. A pooled connection that dies before any byte of a response is replaced once by a fresh one."""

    def __init__(self, timeouts: Timeouts, max_connections: int = 0) -> None:
        self._timeouts = timeouts
        self._max_connections = max_connections  # 0: no limit
        self._connect = ClientTimeout(connect=timeouts.connect)
        self._origins: dict[str, _Origin] = {}
        self._pool: TCPConnector
        self._fresh: TCPConnector

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        self._pool = TCPConnector(limit=self._max_connections, keepalive_timeout=self._timeouts.pool_idle)
        self._fresh = TCPConnector(limit=self._max_connections, force_close=True)
        for connector in (self._pool, self._fresh):
            setattr(connector, "_factory", functools.partial(Line, loop=loop))  # noqa: B010 - a private name

    async def close(self) -> None:
        await self._pool.close()
        await self._fresh.close()

    async def send(self, outgoing: Outgoing) -> Reply:
        if not isinstance(outgoing.body, bytes | None):
            return await self._send(outgoing, self._fresh)
        try:
            return await self._send(outgoing, self._pool)
        except _Stale:
            return await self._send(outgoing, self._fresh)

    async def _send(self, outgoing: Outgoing, connector: TCPConnector) -> Reply:
        origin = self._origin(outgoing.base)
        connection = await self._connection(origin, connector)
        line = cast(Line, connection.protocol)
        reused = line.requests > 0
        wait = outgoing.first_byte_timeout or self._timeouts.first_byte
        line.expect(outgoing.method, wait)
        reply = AiohttpReply(connection, line, _write(line, outgoing, origin, close=connector.force_close))
        try:
            await reply.begin()
        except BaseException as error:
            reply.close()
            if reused and not line.heard and isinstance(error, _DIED):
                raise _Stale from error
            if isinstance(error, client_exceptions.ClientError | HttpProcessingError | OSError):
                raise _translated(error, wait) from error
            raise
        line.wait_at_most(self._timeouts.idle)
        return reply

    def _origin(self, base: str) -> "_Origin":
        if base not in self._origins:
            self._origins[base] = _Origin.of(base)
        return self._origins[base]

    async def _connection(self, origin: "_Origin", connector: TCPConnector) -> Connection:
        try:
            return await connector.connect(origin.key, traces=[], timeout=self._connect)
        except TimeoutError as error:
            raise TimedOut(f"the upstream accepted no connection within {self._timeouts.connect:g} s") from error
        except (client_exceptions.ClientError, OSError) as error:
            raise Unreachable(f"the upstream cannot be reached ({_name(error)})") from error


class _Key(ClientRequest):
    """What the connector finds connections by: which would make the key anew at each look."""

    _made: ConnectionKey | None = None

    @property
    def connection_key(self) -> ConnectionKey:
        if self._made is None:
            self._made = super().connection_key
        return self._made


class _Origin(msgspec.Struct, frozen=True):
    """What requests to one base share: the key of the pool, the path before theirs, the Host line."""

    key: ClientRequest
    path: bytes
    host: bytes

    @classmethod
    def of(cls, base: str) -> "_Origin":
        url = URL(base, encoded=True)
        key = _Key("GET", url, loop=asyncio.get_running_loop())
        path = url.raw_path.rstrip("/")
        return cls(key, path.encode(), f" HTTP/1.1\r\nhost: {url.host_port_subcomponent}\r\n".encode())


class _Stale(Exception):
    """A pooled connection was closed by the other side while it lay idle."""


_DIED = (client_exceptions.ServerDisconnectedError, client_exceptions.ClientOSError, ConnectionError)


def _write(line: Line, outgoing: Outgoing, origin: _Origin, *, close: bool) -> "asyncio.Task[None] | None":
    """Write the request; a body that is still arriving is pumped by the task that is returned."""
    parts = [outgoing.method.encode(), b" ", origin.path, outgoing.target, origin.host]
    for name, value in outgoing.headers:
        parts += (name, b": ", value, b"\r\n")
    if close:
        parts.append(b"connection: close\r\n")
    body = outgoing.body
    if isinstance(body, bytes):
        parts += (b"content-length: %d\r\n\r\n" % len(body), body)
    elif body is None:
        parts.append(b"\r\n")
    elif outgoing.length is not None:
        parts.append(b"content-length: %d\r\n\r\n" % outgoing.length)
    else:
        parts.append(b"transfer-encoding: chunked\r\n\r\n")
    if line.transport is not None:
        line.transport.write(b"".join(parts))
    if isinstance(body, bytes | None):
        return None
    return asyncio.get_running_loop().create_task(_pump(line, body, chunked=outgoing.length is None))


async def _pump(line: Line, body: AsyncIterator[bytes], *, chunked: bool) -> None:
    try:
        async for piece in body:
            if line.transport is None:
                return
            line.transport.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            await line.drain()
            line.wait_again()
    except ClientGone:
        _cut(line)
        return
    except BaseException:
        _cut(line)
        raise
    if chunked and line.transport is not None:
        line.transport.write(b"0\r\n\r\n")


def _cut(line: Line) -> None:
    if line.transport is not None:
        line.transport.abort()  # half a request must not look like a whole one


def _translated(error: Exception, wait: float) -> UpstreamError:
    if isinstance(error, TimeoutError):
        return TimedOut(f"the upstream sent no response within {wait:g} s")
    if isinstance(error, HttpProcessingError):
        return Malformed("the upstream's response is not HTTP, or its headers are over the limit")
    return Disconnected("the upstream closed the connection before it answered")


def _name(error: BaseException) -> str:
    return type(error).__name__
