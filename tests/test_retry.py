import json
from dataclasses import dataclass, field

import pytest
from support.memory import Canned, Memory

from proxy.errors import BrokenOff
from proxy.headers import Header
from proxy.retry import Patience, delay_of, hold, send
from proxy.upstream import Outgoing

OUTGOING = Outgoing("POST", "http://a/v1", b"/chat/completions", [], b"{}")
NOW = 1_764_500_000.0  # Sun, 30 Nov 2025 10:53:20 GMT


@dataclass
class Clock:
    """Time that passes only while someone sleeps."""

    now: float = 1000.0
    chance: float = 0.0
    slept: list[float] = field(default_factory=list)

    @property
    def patience(self) -> Patience:
        return Patience(self._sleep, lambda: self.now, lambda: NOW, lambda: self.chance)

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def soft(*headers: Header) -> Canned:
    return Canned(429, headers, b'{"error":{"code":"rate_limit_', b'exceeded"}}')


async def test_any_other_status_comes_back_at_once() -> None:
    clock = Clock()
    for status in (200, 400, 500, 503):
        reply = Canned(status)
        assert await send(Memory([reply]), OUTGOING, clock.patience) is reply
    assert clock.slept == []


async def test_a_soft_429_is_waited_out() -> None:
    clock, first, second = Clock(), soft((b"Retry-After", b"2")), Canned(200)
    transport = Memory([first, second])
    assert await send(transport, OUTGOING, clock.patience) is second
    assert clock.slept == [2.0]
    assert first.closed
    assert [outgoing is OUTGOING for outgoing in transport.sent] == [True, True]


async def test_after_three_tries_the_last_one_comes_back_verbatim() -> None:
    clock, last = Clock(), Canned(429, [(b"x-last", b"1")], b'{"a"', b":1}")
    transport = Memory([soft(), soft(), last])
    reply = await send(transport, OUTGOING, clock.patience)
    assert (reply.status, reply.headers) == (429, [(b"x-last", b"1")])
    assert [await reply.read(), await reply.read()] == [b'{"a":1}', b""]
    assert clock.slept == [0.75, 1.5]
    assert len(transport.sent) == 3


@pytest.mark.parametrize(("seconds", "tries"), [(b"31", 1), (b"29", 2), (b"16", 2), (b"14", 3)])
async def test_no_wait_goes_beyond_thirty_seconds_in_total(seconds: bytes, tries: int) -> None:
    clock = Clock()
    transport = Memory([soft((b"retry-after", seconds)) for _ in range(3)])
    assert (await send(transport, OUTGOING, clock.patience)).status == 429
    assert len(transport.sent) == tries
    assert sum(clock.slept) <= 30


HARD: list[tuple[list[Header], object]] = [
    ([], {"error": {"code": "insufficient_quota"}}),
    ([], {"error": {"type": "insufficient_quota", "code": None}}),
    ([], {"error": {"code": "billing_hard_limit_reached"}}),
    ([(b"retry-after", b"121")], {}),
    ([(b"retry-after-ms", b"120001")], {}),
    ([(b"retry-after", b"Sun, 30 Nov 2025 10:56:00 GMT")], {}),
    ([(b"X-Should-Retry", b"False")], {}),
]


@pytest.mark.parametrize(("headers", "body"), HARD)
async def test_a_hard_429_comes_back_at_once(headers: list[Header], body: object) -> None:
    clock = Clock()
    transport = Memory([Canned(429, headers, json.dumps(body).encode())])
    assert (await send(transport, OUTGOING, clock.patience)).status == 429
    assert clock.slept == []


def test_a_link_to_a_billing_page_does_not_make_a_429_hard() -> None:
    body = b'{"error":{"message":"see https://x/account/billing","type":"tokens","code":"rate_limit_exceeded"}}'
    assert delay_of([], body, 1, Clock().patience) == 0.75


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ([(b"retry-after-ms", b"250"), (b"retry-after", b"9")], 0.25),
        ([(b"retry-after", b"3")], 3.0),
        ([(b"retry-after", b"0.5")], 0.5),
        ([(b"retry-after", b"0")], 0.0),
        ([(b"retry-after", b"Sun, 30 Nov 2025 10:53:27 GMT")], 7.0),
        ([(b"retry-after", b"Sun, 30 Nov 2025 10:53:00 GMT")], 0.0),
        ([(b"retry-after", b"soon")], 0.75),
        ([(b"retry-after", b"-1")], 0.75),
        ([(b"retry-after", b"nan")], 0.75),
        ([(b"retry-after-ms", b"inf")], 0.75),
        ([], 0.75),
    ],
)
def test_what_the_upstream_asks_for_is_what_is_waited(headers: list[Header], seconds: float) -> None:
    assert delay_of(headers, b"not json", 1, Clock().patience) == seconds


def test_without_a_word_the_wait_doubles_up_to_a_cap() -> None:
    waits = [delay_of([], b"[]", tries, Clock().patience) for tries in (1, 2, 3, 4, 5)]
    assert waits == [0.75, 1.5, 3.0, 6.0, 6.0]


def test_chance_spreads_the_waits() -> None:
    assert delay_of([(b"retry-after", b"2")], b"{}", 1, Clock(chance=0.5).patience) == pytest.approx(2.1)
    assert delay_of([], b"{}", 1, Clock(chance=1.0).patience) == pytest.approx(1.1)


async def test_a_long_429_is_read_only_as_far_as_it_takes_and_handed_on_whole() -> None:
    pieces = [b"x" * 40_000 for _ in range(5)]
    held = await hold(Canned(429, [], *pieces), 64 * 1024)
    assert len(held.head) == 80_000
    assert [len(await held.read()) for _ in range(5)] == [80_000, 40_000, 40_000, 40_000, 0]


async def test_a_429_that_breaks_off_is_an_error_and_leaves_nothing_open() -> None:
    broken = Canned(429, [], b"{", BrokenOff("x"))
    with pytest.raises(BrokenOff):
        await send(Memory([broken]), OUTGOING, Clock().patience)
    assert broken.closed


async def test_what_was_read_ahead_is_read_before_the_rest_is_poured() -> None:
    held = await hold(Canned(200, [], b"a", b"b", b"c"), 1)
    taken: list[bytes] = []

    def put(piece: bytes) -> bool:
        taken.append(piece)
        return False

    await held.pour(put)
    assert taken == []
    assert await held.read() == b"a"
    await held.pour(put)
    assert taken == [b"b"]
    assert await held.read() == b"c"
