"""The real proxy on a real socket, and a client that sees raw bytes."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from proxy.app import Application, create_app
from proxy.planner import Planner
from proxy.server import Server, configure
from proxy.settings import Settings
from proxy.upstream import Transport

CHAT = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]}


@dataclass
class Answer:
    """One response; `complete` is False when the connection ended before the response did."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    complete: bool = True

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = self.json["error"]
        return error


class Client:
    """One raw connection to the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, port: int) -> "Client":
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=2**24))

    async def send(self, raw: bytes) -> None:
        self.writer.write(raw)
        await self.writer.drain()

    async def head(self) -> Answer:
        """Status and headers of the next response; 1xx count as one of their own."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        return Answer(int(first.split(" ")[1]), headers, b"")

    async def answer(self, *, method: str = "POST") -> Answer:
        """The next whole response, its body decoded from chunks."""
        answer = await self.head()
        try:
            await self._read_body(answer, method)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            answer.complete = False
            if isinstance(error, asyncio.IncompleteReadError):
                answer.body += error.partial
        return answer

    async def _read_body(self, answer: Answer, method: str) -> None:
        if method == "HEAD" or answer.status in (204, 304):
            return
        if (length := answer.header("content-length")) is not None:
            answer.body = await self.reader.readexactly(int(length))
        elif answer.header("transfer-encoding") == "chunked":
            while (piece := await self.chunk()) != b"":
                answer.body += piece
        else:
            answer.body = await self.reader.read()

    async def chunk(self) -> bytes:
        """The next chunk of a chunked body; b"" is the last one."""
        size = int((await self.reader.readuntil(b"\r\n")).strip(), 16)
        return (await self.reader.readexactly(size + 2))[:-2]

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            return  # the other side was faster


@dataclass
class Proxy:
    port: int
    app: Application
    server: Server

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        client = await Client.connect(self.port)
        try:
            yield client
        finally:
            await client.close()

    async def ask(self, raw: bytes, *, method: str = "POST") -> Answer:
        """Send raw bytes on a connection of their own."""
        async with self.client() as client:
            await client.send(raw)
            async with asyncio.timeout(20):
                return await client.answer(method=method)

    async def chat(self, body: Any = None, *headers: tuple[str, str], path: str = "/v1/chat/completions") -> Answer:
        return await self.ask(post(path, body if body is not None else CHAT, *headers))

    async def get(self, path: str, *headers: tuple[str, str]) -> Answer:
        return await self.ask(request("GET", path, b"", *headers))


def request(method: str, path: str, body: bytes, *headers: tuple[str, str]) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "host: proxy.test"]
    lines += [f"{name}: {value}" for name, value in headers]
    if body:
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def post(path: str, body: Any, *headers: tuple[str, str]) -> bytes:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return request("POST", path, raw, ("content-type", "application/json"), *headers)


@asynccontextmanager
async def running(
    base: str | None, *, planner: Planner | None = None, transport: Transport | None = None, **settings: Any
) -> AsyncIterator[Proxy]:
    """The proxy in this event loop, on a port of the system's choice, in front of `base`."""
    chosen = Settings(**{"upstream": base, "port": 0, **settings})
    app = create_app(chosen, transport=transport, planner=planner)
    listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    server = Server(configure(chosen, app), listening.set_result)
    task = asyncio.create_task(server.serve())
    try:
        url = await listening
        yield Proxy(int(url.rpartition(":")[2]), app, server)
    finally:
        server.should_exit = server.force_exit = True
        await task
        await app.state.transport.close()
