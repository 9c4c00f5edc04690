"""The socket side: uvicorn on uvloop and httptools, with the checks that ASGI can no longer make."""

import asyncio
import gc
import logging
import os
import re
import socket
import sys
from collections.abc import Callable
from typing import Any, cast

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from proxy.app import create_app
from proxy.exchange import DEPARTURE, OUTLET, ASGIApp, Departure
from proxy.planning import planner_of
from proxy.settings import Settings, strangers

MAX_TARGET = 16 * 1024  # bytes of the request target
MAX_FIELDS = 256  # header fields; a browser sends 20, an SDK 25
TARGET = re.compile(rb"/[!\"$->A-\[\]-~]*(?:\?[!\"$-~]*)?")  # printable ASCII but '#'; in the path no '@', no backslash
SWITCH = 0.0005  # seconds
COLLECT_AFTER = 50_000  # containers made and not yet freed; CPython's own figure is 700
CUT = "ASGI callable returned without completing response."  # how `relay` breaks a connection; it logs its own reason

log = logging.getLogger("edgewise")

Started = Callable[[str], None]


class Joined:
    """Stands in for the transport of a response until its head is on its way: with the first piece of the body where
    that is there already, in one write instead of two, else by itself in the next turn of the loop.

    It is the response's outlet as well (see `proxy.exchange.Outlet`)."""

    __slots__ = ("_cycle", "_head", "_loop", "_transport", "is_closing")

    def __init__(self, cycle: RequestResponseCycle, loop: asyncio.AbstractEventLoop) -> None:
        self._cycle, self._transport, self._loop = cycle, cycle.transport, loop
        self._head = b""
        self.is_closing = cycle.transport.is_closing

    def write(self, data: bytes) -> None:
        if not self._head:
            self._head = data
            self._loop.call_soon(self._leave)
        else:
            self._leave(data)

    @property
    def is_open(self) -> bool:
        cycle = self._cycle
        return cycle.chunked_encoding is True and cycle.scope["method"] != "HEAD"

    def put(self, piece: bytes) -> bool:
        cycle = self._cycle
        if not cycle.disconnected:
            cycle.transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        return not cycle.flow.write_paused

    def close(self) -> None:
        self._leave()
        self._transport.close()

    def _leave(self, data: bytes = b"") -> None:
        if self._head:
            data, self._head = self._head + data, b""
            self._cycle.transport = self._transport
            self._transport.write(data)


class Protocol(HttpToolsProtocol):
    """Refuses, in plain text, what uvicorn would hide from the app or accept without limit (FACTS 3 and 7)."""

    max_header_bytes = 64 * 1024
    in_head = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the base class has it
        super().connection_made(transport)
        self.departure = Departure(self.loop)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.departure.happen()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.fault: tuple[int, str] | None = None
        self.header_bytes = 0
        self.unfinished = 0
        self.in_head = True
        self.declined = False

    def on_url(self, url: bytes) -> None:
        self.url += url
        if len(self.url) > MAX_TARGET:
            self._fail(414, f"The request target is longer than {MAX_TARGET} bytes.")

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        self.header_bytes += len(name) + len(value) + 4
        if self.header_bytes > self.max_header_bytes or len(self.headers) >= MAX_FIELDS:
            self._fail(*self._too_much())
        if not self.in_head:
            return  # a trailer field: it would pass for a header that was checked (RFC 9110 6.5.1)
        if name == b"transfer-encoding" and value.strip().lower() != b"chunked":
            self._fail(400, "The only transfer coding that is understood is chunked.")
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def _too_much(self) -> tuple[int, str]:
        return 431, f"The headers are over {self.max_header_bytes} bytes or {MAX_FIELDS} fields."

    def on_headers_complete(self) -> None:
        self.in_head = False
        if not TARGET.fullmatch(self.url):
            self._fail(400, "The request target must be a path of printable ASCII without '#', '@' or a backslash.")
        self.declined = self.parser.should_upgrade() and self._get_upgrade() != b"websocket"
        if not self.declined:
            super().on_headers_complete()
            joined = Joined(self.cycle, self.loop)
            self.cycle.transport = joined  # type: ignore[assignment]  # all that a response asks of one
            cast("dict[str, Any]", self.scope).update({DEPARTURE: self.departure, OUTLET: joined})

    def on_message_complete(self) -> None:
        if not self.declined:
            super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        self.fed = data
        super().data_received(data)
        if self.in_head:  # the parser keeps a header to itself until it has ended, however long it grows
            self.unfinished += len(data)
            if self.unfinished > self.max_header_bytes + MAX_TARGET and not self.transport.is_closing():
                self.fault = self._too_much()
                self.send_400_response("")

    def send_400_response(self, msg: str) -> None:
        status, text = self.fault or (400, msg)
        body = text.encode()
        head = b"content-type: text/plain\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
        self.transport.write(STATUS_LINE[status] + head + body)
        self.transport.close()

    def _fail(self, status: int, text: str) -> None:
        self.fault = (status, text)
        raise ValueError(text)  # httptools turns it into the parser error that ends the connection

    def _unsupported_upgrade_warning(self) -> None:
        """An upgrade was offered. To a WebSocket the app answers 501; any other offer is declined by reading the
        request again without it, because the parser drops the body behind it (Java's client offers h2c on every POST).
        """
        if not self.declined:
            self.cycle.keep_alive = False  # the parser reads nothing more
            return
        upgrade = sys.exception()
        rest = self.fed[upgrade.args[0] :] if isinstance(upgrade, httptools.HttpParserUpgrade) else b""
        lines = [b"%b %b HTTP/1.1\r\n" % (self.parser.get_method(), self.url)]
        lines += [b"%b: %b\r\n" % header for header in self.headers if header[0] != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.data_received(b"".join(lines) + b"\r\n" + rest)


class Server(uvicorn.Server):
    """Tells its address once it listens."""

    def __init__(self, config: uvicorn.Config, started: Started | None) -> None:
        super().__init__(config)
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        settle()
        if self._started is not None and self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._started(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")


def settle() -> None:
    """Tune the interpreter for a process that answers requests.

    What is loaded by now lives as long as the process: the collector, which stops the loop while it looks, need not
    look at it again; and it looks rarely, because a request leaves no cycles behind. A thread that counts a long prompt
    gives the interpreter back to the loop after half a millisecond, not five, or each chunk of a stream would wait that
    long.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)
    sys.setswitchinterval(SWITCH)


class _NotTheCut(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return record.msg != CUT


def configure(settings: Settings, app: ASGIApp) -> uvicorn.Config:
    protocol = type("LimitedProtocol", (Protocol,), {"max_header_bytes": settings.max_header_bytes})
    options: dict[str, Any] = {
        "host": settings.host,
        "port": settings.port,
        "loop": "uvloop",
        "http": protocol,
        "ws": "none",
        "log_config": None,
        "log_level": "warning",
        "access_log": False,
        "proxy_headers": False,
        "server_header": False,
        "date_header": False,
        "limit_concurrency": settings.max_clients + 1,  # uvicorn counts the connection that asks
        "timeout_keep_alive": settings.keep_alive_timeout,
        "timeout_graceful_shutdown": settings.shutdown_timeout,
    }
    return uvicorn.Config(app, **options)


def serve(settings: Settings, *, started: Started | None = None) -> None:
    """Run until SIGINT or SIGTERM, then let running requests finish. `started` is told the URL once it listens."""
    logging.basicConfig(level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("uvicorn.error").addFilter(_NotTheCut())
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # a line for each request of the control plane is noise
    for line in strangers(os.environ):
        log.warning(line)
    Server(configure(settings, create_app(settings, planner=planner_of(settings))), started).run()
