"""The load: keep-alive connections on asyncio, the conversations that are sent, and CPU time as the kernel books it."""

import asyncio
import json
import random
import re
import time
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import cast

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
RECEIVED = re.compile(rb"\r\nx-received: *(\d+)", re.IGNORECASE)
LAST_CHUNK = b"\r\n0\r\n\r\n"
MODEL = "gpt-4.1"  # a window of 1 M tokens: whatever is sent here fits

_serial = count()


class Wire(asyncio.Protocol):
    """One connection. `reads` counts how many pieces responses came in; `forwarded` is how many bytes the upstream says
    that it got of the last request, where it says so."""

    def __init__(self) -> None:
        self.reads = self.forwarded = 0
        self._answered: asyncio.Future[None]
        self._received = bytearray()
        self._whole = 0

    @classmethod
    async def to(cls, port: int) -> "Wire":
        _, wire = await asyncio.get_running_loop().create_connection(cls, "127.0.0.1", port)
        return wire

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name

    async def ask(self, request: bytes) -> float:
        """Send, and wait for the end of the response; seconds. Raises RuntimeError unless it is a 200."""
        self._answered = asyncio.get_running_loop().create_future()
        self._received.clear()
        self._whole = 0
        started = time.perf_counter()
        self._transport.write(request)
        await self._answered
        return time.perf_counter() - started

    def data_received(self, data: bytes) -> None:
        self.reads += 1
        self._received += data
        if not self._whole:
            head = self._received.find(b"\r\n\r\n")
            if head < 0:
                return
            length, size = LENGTH.search(self._received, 0, head), RECEIVED.search(self._received, 0, head)
            self._whole = head + 4 + int(length.group(1)) if length else -1
            self.forwarded = int(size.group(1)) if size else 0
        ended = self._received.endswith(LAST_CHUNK) if self._whole < 0 else len(self._received) >= self._whole
        if ended and self._received.startswith(b"HTTP/1.1 200 "):
            self._answered.set_result(None)
        elif ended:
            self._answered.set_exception(RuntimeError(bytes(self._received[:1000]).decode("latin-1")))

    def connection_lost(self, exc: Exception | None) -> None:
        if hasattr(self, "_answered") and not self._answered.done():
            self._answered.set_exception(RuntimeError(f"the connection was closed: {exc}"))

    def close(self) -> None:
        self._transport.close()


async def flood(port: int, requests: Iterable[bytes], connections: int = 8) -> int:
    """Each connection sends the next request as soon as its last one was answered. Returns the pieces read."""
    left = iter(requests)
    wires = [await Wire.to(port) for _ in range(connections)]

    async def work(wire: Wire) -> None:
        for request in left:
            await wire.ask(request)

    await asyncio.gather(*map(work, wires))
    for wire in wires:
        wire.close()
    return sum(wire.reads for wire in wires)


def cpu(pid: int) -> float:
    """Seconds of user and system time of the process so far, all threads: /proc/PID/task/*/schedstat, in ns, because
    /proc/PID/stat knows hundredths of a second only."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text("ascii").split()[0]) for thread in threads) / 1e9


def http(path: str, body: bytes, *fields: bytes) -> bytes:
    """A POST as an SDK sends it."""
    head = [
        f"POST /v1{path} HTTP/1.1".encode(),
        b"host: 127.0.0.1",
        b"authorization: Bearer sk-made-up",
        b"content-type: application/json",
        b"accept: application/json",
        b"user-agent: OpenAI/Python 3.57.0",
        b"content-length: %d" % len(body),
        *fields,
    ]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


TEXT = (
    "the deploy of service failed because its queue was full and a retry storm began at node seven while latency rose "
    "above limit so we rolled back config then checked logs for timeout errors in region west where replica lag grew "
    "after migration added column index without lock please read trace metrics again before next change window opens"
)
WORDS = TEXT.split()


def prose(chance: random.Random, size: int) -> str:
    """About `size` characters that were never seen before."""
    words = [f"{next(_serial)}:"]
    words += chance.choices(WORDS, k=size // 6)
    return " ".join(words)[:size]


def embedding() -> bytes:
    """A pass-through of 1 KB."""
    asked = {"model": "text-embedding-3-small", "input": "word " * 190}
    return http("/embeddings", json.dumps(asked).encode().ljust(1024))


def small(chance: random.Random, *, stream: bool = False) -> bytes:
    """A chat request of 1 KB whose question is new."""
    messages = [
        {"role": "system", "content": "You answer in one sentence. " * 12},
        {"role": "user", "content": prose(chance, 560)},
    ]
    return json.dumps({"model": MODEL, "stream": stream, "messages": messages}).encode()


class Conversation:
    """An agent's: twelve tools, a task, then calls with results of 3 KB; about `size` bytes of JSON."""

    def __init__(self, chance: random.Random, size: int) -> None:
        self._chance = chance
        self._tools = [tool(f"tool_{number}") for number in range(12)]
        self._messages: list[dict[str, object]] = [
            {"role": "system", "content": prose(chance, 2000)},
            {"role": "user", "content": prose(chance, 600)},
        ]
        left = size - len(self.body)
        while left > 0:
            left -= self.grow()

    def grow(self) -> int:
        """One round more; the bytes that it adds."""
        call_id = f"call_{next(_serial)}"
        arguments = json.dumps({"query": prose(self._chance, 60), "limit": 20})
        function = {"name": f"tool_{self._chance.randrange(12)}", "arguments": arguments}
        rows = [{"id": next(_serial), "level": "warn", "message": prose(self._chance, 120)} for _ in range(18)]
        new: list[dict[str, object]] = [
            {
                "role": "assistant",
                "content": prose(self._chance, 100),
                "tool_calls": [{"id": call_id, "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": call_id, "content": json.dumps(rows)},
        ]
        self._messages += new
        return len(json.dumps(new))

    @property
    def body(self) -> bytes:
        return json.dumps({"model": MODEL, "messages": self._messages, "tools": self._tools}).encode()

    @property
    def request(self) -> bytes:
        return http("/chat/completions", self.body)


def tool(name: str) -> dict[str, object]:
    properties = {
        "query": {"type": "string", "description": "What to look for, as the service itself would call it."},
        "limit": {"type": "integer", "description": "How many rows at most."},
    }
    parameters = {"type": "object", "properties": properties, "required": ["query"]}
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": "Looks something up in one of the services.",
            "parameters": parameters,
        },
    }


def grown(chance: random.Random, size: int, times: int) -> Iterator[bytes]:
    """The same conversation `times` times, each a round longer."""
    conversation = Conversation(chance, size)
    for _ in range(times):
        conversation.grow()
        yield conversation.request
