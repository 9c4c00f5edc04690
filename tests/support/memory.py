"""The transport seam without a network, and an ASGI client without a socket."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from proxy.errors import UpstreamError
from proxy.exchange import ASGIApp, Scope
from proxy.headers import Header
from proxy.upstream import Outgoing, Put, Reply


class Canned:
    """A reply from memory. An exception among its pieces is raised when its turn comes. Only `knows_its_end` lets it
    tell beforehand that a piece is the last."""

    knows_its_end = False

    def __init__(self, status: int, headers: Sequence[Header] = (), *pieces: bytes | Exception) -> None:
        self.status = status
        self.headers = headers
        self.closed = False
        self._pieces = list(pieces)

    @property
    def ended(self) -> bool:
        return self.knows_its_end and not self._pieces

    async def read(self) -> bytes:
        if not self._pieces:
            return b""
        piece = self._pieces.pop(0)
        if isinstance(piece, Exception):
            raise piece
        return piece

    async def pour(self, put: Put) -> None:
        """All that comes until `put` is full, an exception, or the last piece."""
        while len(self._pieces) > 1 and isinstance(self._pieces[0], bytes):
            if not put(await self.read()):
                return

    def close(self) -> None:
        self.closed = True


@dataclass
class Memory:
    """Hands out its replies in order and keeps what was sent."""

    replies: list[Canned | UpstreamError]
    sent: list[Outgoing] = field(default_factory=list)
    is_open: bool = False

    async def open(self) -> None:
        self.is_open = True

    async def send(self, outgoing: Outgoing) -> Reply:
        self.sent.append(outgoing)
        reply = self.replies.pop(0)
        if isinstance(reply, UpstreamError):
            raise reply
        return reply

    async def close(self) -> None:
        self.is_open = False


@dataclass
class Response:
    """What an ASGI app sent. `complete` once it said that no more follows."""

    messages: list[dict[str, Any]] = field(default_factory=list)

    @property
    def status(self) -> int:
        status: int = self.messages[0]["status"]
        return status

    @property
    def headers(self) -> list[Header]:
        return list(self.messages[0]["headers"])

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages[1:])

    @property
    def complete(self) -> bool:
        return bool(self.messages) and not self.messages[-1].get("more_body", False)


def scope_of(method: str, path: str, *headers: Header, query: bytes = b"") -> Scope:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "root_path": "",
        "headers": list(headers),
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }


async def call(app: ASGIApp, scope: Scope, body: bytes = b"", *, leaves: asyncio.Event | None = None) -> Response:
    """Run one request; the client leaves when `leaves` is set, else after its response."""
    response = Response()
    messages = [{"type": "http.request", "body": body, "more_body": False}]
    done = leaves or asyncio.Event()

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop(0)
        await done.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        response.messages.append(message)
        await asyncio.sleep(0)

    await app(scope, receive, send)
    return response
