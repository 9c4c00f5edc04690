"""One request and its response, as the handlers see them."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from proxy.bodies import Receive
from proxy.errors import JSON, Refusal
from proxy.headers import Header

Scope = dict[str, Any]
Send = Callable[[Any], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]


DEPARTURE = "edgewise.departure"  # in the scope, where the server tells


class Departure:
    """The moment at which a client leaves its connection. Being told costs a tenth of a task that waits for it.

    `loop` is the running one, where that is known: to ask for it costs a system call (CPython 3.11).
    """

    __slots__ = ("_tell", "happened", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.loop = loop
        self.happened = False
        self._tell: Callable[[], object] | None = None

    def watch(self, tell: Callable[[], object]) -> None:
        """Call `tell` when it happens, at once if it has."""
        self._tell = tell
        if self.happened:
            tell()

    def unwatch(self) -> None:
        self._tell = None

    def happen(self) -> None:
        self.happened = True
        if self._tell is not None:
            self._tell()


OUTLET = "edgewise.outlet"  # in the scope, where the server offers one


_IDS = random.Random()  # noqa: S311 - an id is no secret: what it names is shown to its own caller alone


class Outlet(Protocol):
    """A shorter way than `send` for pieces of a response that has begun: no message, no turn of the loop."""

    @property
    def is_open(self) -> bool:
        """The response goes out in pieces, each framed by itself."""
        ...

    def put(self, piece: bytes) -> bool:
        """Write it now. False: the client reads slower than this; the next piece goes by `send`, which waits for it."""
        ...


class Exchange:
    """An HTTP request under ASGI; `started` once a status is on its way. Every response carries its id.

    `departure` and what the outlet is come out of the scope: left there, a request and its scope would hold each other
    until the garbage collector finds thousands of them, and each new one would be laid in memory that no cache has.
    """

    __slots__ = ("_outlet", "departure", "headers", "id", "method", "path", "receive", "scope", "send", "started")

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.id = f"ew_{_IDS.getrandbits(64):016x}"
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.headers: Sequence[Header] = scope["headers"]
        self.departure: Departure | None = scope.pop(DEPARTURE, None)
        self._outlet: Outlet | None = scope.pop(OUTLET, None)
        self.started = False

    @property
    def outlet(self) -> Outlet | None:
        """Where it is open."""
        return self._outlet if self._outlet is not None and self._outlet.is_open else None

    @property
    def raw_path(self) -> bytes:
        """The path byte for byte, leading slashes as one."""
        raw: bytes = self.scope["raw_path"]
        return b"/" + raw.lstrip(b"/") if raw.startswith(b"//") else raw

    def target(self, rest: bytes) -> bytes:
        """`rest` with the query string, byte for byte."""
        query: bytes = self.scope["query_string"]
        return rest + b"?" + query if query else rest

    async def start(self, status: int, headers: Sequence[Header]) -> None:
        self.started = True
        headers = [*headers, (b"edgewise-request-id", self.id.encode())]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})

    async def answer(self, status: int, headers: Sequence[Header], body: bytes) -> None:
        """A whole response of our own."""
        await self.start(status, [*headers, (b"content-length", str(len(body)).encode())])
        await self.send({"type": "http.response.body", "body": body})

    async def refuse(self, refusal: Refusal) -> None:
        await self.answer(refusal.status, [JSON, *refusal.headers], refusal.body)
