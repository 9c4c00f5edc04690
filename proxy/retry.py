"""A 429 before the first byte: waited out when it is soft, returned at once when it is hard (FACTS 4).

Times are seconds. No byte goes to the client while it waits; cancelling the wait is enough to end it.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from email.utils import parsedate_to_datetime

import msgspec

from proxy.headers import Header, find
from proxy.upstream import Outgoing, Put, Reply, Transport

MAX_TRIES = 3
MAX_TOTAL = 30.0
HARD_AFTER = 120.0  # an upstream that asks for more means a quota, not a burst
FIRST_DELAY = 0.5
MAX_DELAY = 8.0
MAX_BODY = 64 * 1024  # bytes of a 429 that are read to classify it
HARD_WORDS = ("insufficient_quota", "billing")  # in `code` or `type`: messages of soft limits link to billing pages


class Patience(msgspec.Struct, frozen=True):
    """The edges that a test replaces: how to wait, what time it is, chance in [0, 1)."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    chance: Callable[[], float] = random.random


class Held:
    """A reply whose first bytes were read already; they come first. See `Reply`."""

    def __init__(self, reply: Reply, head: bytes) -> None:
        self.status = reply.status
        self.headers = reply.headers
        self.head = head
        self._unread = head
        self._reply = reply

    @property
    def ended(self) -> bool:
        return not self._unread and self._reply.ended

    async def read(self) -> bytes:
        if self._unread:
            unread, self._unread = self._unread, b""
            return unread
        return await self._reply.read()

    async def pour(self, put: Put) -> None:
        if not self._unread:
            await self._reply.pour(put)

    def close(self) -> None:
        self._reply.close()


async def send(transport: Transport, outgoing: Outgoing, patience: Patience) -> Reply:
    """The first reply that is no soft 429, or the last soft one, verbatim. Raises UpstreamError, BrokenOff."""
    reply = await transport.send(outgoing)
    if reply.status != 429:
        return reply
    deadline = patience.monotonic() + MAX_TOTAL
    tries = 1
    while reply.status == 429:
        held = await hold(reply, MAX_BODY)
        delay = delay_of(held.headers, held.head, tries, patience)
        if delay is None or tries == MAX_TRIES or patience.monotonic() + delay > deadline:
            return held
        held.close()
        await patience.sleep(delay)
        tries += 1
        reply = await transport.send(outgoing)
    return reply


async def hold(reply: Reply, limit: int) -> Held:
    """Read up to about `limit` bytes of the body ahead. The reply is closed when that fails. Raises BrokenOff."""
    head = b""
    try:
        while len(head) < limit and (chunk := await reply.read()):
            head += chunk
    except BaseException:
        reply.close()
        raise
    return Held(reply, head)


def delay_of(headers: Sequence[Header], body: bytes, tries: int, patience: Patience) -> float | None:
    """How long to wait after the `tries`-th 429; None when it is hard."""
    lowered = [(name.lower(), value) for name, value in headers]
    asked = _asked(lowered, patience)
    if asked is not None and asked > HARD_AFTER:
        return None
    if (find(lowered, b"x-should-retry") or b"").lower() == b"false" or _is_quota(body):
        return None
    if asked is None:
        asked = min(MAX_DELAY, FIRST_DELAY * 2.0**tries) * (0.75 + 0.25 * patience.chance())
    return asked * (1.0 + 0.1 * patience.chance())  # a crowd that was told the same second must not come back in it


def _is_quota(body: bytes) -> bool:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    error = value.get("error") if isinstance(value, dict) else None
    if not isinstance(error, dict):
        return False
    return any(word in str(error.get(member)) for word in HARD_WORDS for member in ("code", "type"))


def _asked(headers: Sequence[Header], patience: Patience) -> float | None:
    milliseconds = _number(find(headers, b"retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = find(headers, b"retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(value.decode("latin-1")).timestamp() - patience.wall())
    except ValueError:
        return None


def _number(value: bytes | None) -> float | None:
    try:
        number = float(value) if value is not None else -1.0
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
