"""A pass-through in front of a server that keeps the chat requests which reach it."""

import http.client
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

TIMEOUT = 600  # seconds between two reads of the server's answer: a real model thinks before its first byte
CHUNK = 65_536


class Recorder(ThreadingHTTPServer):
    """`chats` are the bodies of the chat requests so far, in the order of their arrival."""

    daemon_threads = True

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), _PassOn)
        self.upstream = urlsplit(upstream).netloc
        self.chats: list[Any] = []

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client may hang up at the end of its stream
            super().handle_error(request, client_address)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


@contextmanager
def recording(upstream: str) -> Iterator[Recorder]:
    """`upstream` is the server's base URL; the recorder's own takes its place."""
    with Recorder(upstream) as recorder:
        thread = threading.Thread(target=recorder.serve_forever, daemon=True)
        thread.start()
        try:
            yield recorder
        finally:
            recorder.shutdown()


class _PassOn(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Recorder

    def do_GET(self) -> None:
        self._pass_on(None)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path.endswith("/chat/completions"):
            self.server.chats.append(json.loads(body))
        self._pass_on(body)

    def _pass_on(self, body: bytes | None) -> None:
        """Bytes as they come, so that a stream stays one."""
        server = http.client.HTTPConnection(self.server.upstream, timeout=TIMEOUT)
        kind = {"content-type": self.headers["content-type"]} if body is not None else {}
        server.request(self.command, self.path, body, kind)
        with server.getresponse() as answer:
            self.send_response(answer.status)
            self.send_header("content-type", answer.headers["content-type"] or "application/json")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            while chunk := answer.read1(CHUNK):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.wfile.write(b"0\r\n\r\n")
        server.close()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: what matters is in `chats`."""
