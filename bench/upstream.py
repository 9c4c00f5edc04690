"""An upstream that costs little: canned answers on a bare asyncio protocol.

`python bench/upstream.py` prints its port. A request with `x-chunks: N` is answered with N events, each written by
itself, `PACE` seconds apart, so that no proxy can take two at once; every other POST with 1 KB of JSON, and how long
the request was (`x-received`); a GET with 404.
"""

import asyncio
import json
import re
from typing import cast

import uvloop

PACE = 0.002  # seconds between two events of a stream
EVENT_BYTES = 240  # of one event, as OpenAI sends them
ANSWER_BYTES = 1024

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
CHUNKS = re.compile(rb"\r\nx-chunks: *(\d+)", re.IGNORECASE)


def _answer() -> bytes:
    told = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4.1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 240, "completion_tokens": 160, "total_tokens": 400},
    }
    text = "Yes. " * ((ANSWER_BYTES - len(json.dumps(told))) // 5)
    told["choices"] = [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]
    body = json.dumps(told).encode().ljust(ANSWER_BYTES)
    return b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def _event() -> bytes:
    delta = {"index": 0, "delta": {"content": " word"}, "finish_reason": None}
    told = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4.1", "choices": [delta]}
    event = b"data: " + json.dumps(told).encode().ljust(EVENT_BYTES - 8) + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(event), event)


ANSWER = _answer()
OK = b"HTTP/1.1 200 OK\r\nx-received: %d\r\n"  # bytes of the request
MISSING = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
EVENT = _event()
END = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


class Canned(asyncio.Protocol):
    """One connection. Requests come one after another, as both proxies send them."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        self._received = bytearray()
        self._whole = 0  # bytes of the request that is arriving, 0 until its head is in

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._whole:
            head = self._received.find(b"\r\n\r\n")
            if head < 0:
                return
            length = LENGTH.search(self._received, 0, head)
            self._whole = head + 4 + (int(length.group(1)) if length else 0)
        if len(self._received) >= self._whole:
            asked, size = bytes(self._received[:4096]), self._whole
            self._received.clear()
            self._whole = 0
            self._respond(asked, size)

    def _respond(self, asked: bytes, size: int) -> None:
        chunks = CHUNKS.search(asked)
        if chunks:
            self._transport.write(STREAM)
            self._next(int(chunks.group(1)))
        else:
            self._transport.write(MISSING if asked.startswith(b"GET") else OK % size + ANSWER)

    def _next(self, left: int) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(EVENT if left else END)
        if left:
            asyncio.get_running_loop().call_later(PACE, self._next, left - 1)


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Canned, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
