"""A scripted upstream on a real socket: it keeps the raw bytes of every request and answers with raw bytes."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

OK = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 11\r\n\r\n{"ok":true}'
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


class Wait:
    """The script stops here until the test calls `go`."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def go(self) -> None:
        self._event.set()

    async def __call__(self) -> None:
        await self._event.wait()


class Reset:
    """The connection is reset (RST), nothing more is sent."""


class Close:
    """The connection is closed cleanly (FIN)."""


class Hang:
    """Nothing more is sent; the script ends when the proxy closes the connection."""


Act = bytes | Wait | Reset | Close | Hang
Script = Sequence[Act]


@dataclass
class Received:
    """One request as it came: `head` up to and with the blank line."""

    head: bytes
    body: bytes

    @property
    def line(self) -> bytes:
        return self.head.split(b"\r\n", 1)[0]

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        lines = self.head.split(b"\r\n")[1:-2]
        return [(name.lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]

    def header(self, name: bytes) -> bytes | None:
        return next((value for key, value in self.headers if key == name), None)


@dataclass
class Upstream:
    """`scripts` are used one a request, the last one again and again. `gone` is set when the proxy closes a connection
    before its script is through."""

    port: int
    scripts: list[Script]
    requests: list[Received] = field(default_factory=list)
    connections: int = 0
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    heard: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def next_script(self) -> Script:
        return self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]


def response(status: int, body: bytes, *headers: tuple[str, str], kind: str = "application/json") -> bytes:
    head = [f"HTTP/1.1 {status} Scripted", f"content-type: {kind}", f"content-length: {len(body)}"]
    head += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"


def stream(*events: bytes) -> bytes:
    return STREAM_HEAD + b"".join(map(chunk, events)) + LAST_CHUNK


@asynccontextmanager
async def scripted(*scripts: Script) -> AsyncIterator[Upstream]:
    """An upstream on a port of the system's choice."""
    tasks: set[asyncio.Task[None]] = set()
    upstream = Upstream(0, list(scripts) or [[OK]])

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream.connections += 1
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            while (received := await _receive(reader)) is not None:
                upstream.requests.append(received)
                upstream.heard.set()
                if not await _perform(upstream, reader, writer):
                    break
        except (ConnectionError, asyncio.CancelledError):
            upstream.gone.set()
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    upstream.port = server.sockets[0].getsockname()[1]
    try:
        yield upstream
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _perform(upstream: Upstream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Play one script; False when the connection is over."""
    watch = asyncio.ensure_future(reader.read(1))
    try:
        for act in upstream.next_script():
            if isinstance(act, bytes):
                writer.write(act)
                await writer.drain()
            elif isinstance(act, Wait):
                waiting = asyncio.ensure_future(act())
                await asyncio.wait({waiting, watch}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
            elif isinstance(act, Reset):
                linger = struct.pack("ii", 1, 0)  # on, zero seconds: closing sends RST
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                writer.transport.abort()
                return False
            elif isinstance(act, Close):
                return False
            else:
                await asyncio.wait({watch})
            if watch.done() and not _said_something(watch):
                upstream.gone.set()
                return False
    finally:
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)
    return True


def _said_something(watch: "asyncio.Future[bytes]") -> bool:
    return watch.exception() is None and watch.result() != b""


async def _receive(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    received = Received(head, b"")
    try:
        if length := received.header(b"content-length"):
            received.body = await reader.readexactly(int(length))
        elif received.header(b"transfer-encoding") is not None:
            received.body = await _chunked(reader)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return received


async def _chunked(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readexactly(2)
    return bytes(body)


async def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Let the event loop turn until `condition` holds; a test that waits in vain is stopped by its own time limit."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)
