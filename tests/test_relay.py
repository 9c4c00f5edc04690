import asyncio
from typing import Any

import pytest
from support.memory import Canned, Response, scope_of

from proxy.errors import BrokenOff
from proxy.exchange import OUTLET, Departure, Exchange, Outlet
from proxy.relay import attended, relay
from proxy.sse import Tap


def exchange_into(response: Response, outlet: Outlet | None = None) -> Exchange:
    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        response.messages.append(message)

    offered = {OUTLET: outlet} if outlet is not None else {}
    return Exchange(scope_of("POST", "/v1/chat/completions") | offered, receive, send)


async def test_every_read_is_one_message_and_passes_the_tap() -> None:
    response, tap = Response(), Tap()
    reply = Canned(200, [], b'data: {"usage"', b':{"a":1}}\n\n')
    assert await relay(reply, exchange_into(response), [(b"a", b"b")], tap)
    assert [message.get("body") for message in response.messages[1:]] == [b'data: {"usage"', b':{"a":1}}\n\n', b""]
    assert response.complete
    assert tap.usage(stream=True) == {"a": 1}


async def test_a_last_piece_that_is_known_to_be_the_last_ends_the_response_itself() -> None:
    response = Response()
    reply = Canned(200, [], b"a", b"b")
    reply.knows_its_end = True
    assert await relay(reply, exchange_into(response), [])
    assert [message["body"] for message in response.messages[1:]] == [b"a", b"b"]
    assert [message["more_body"] for message in response.messages[1:]] == [True, False]


class Spout:
    """An outlet that is full after each `holds` pieces."""

    is_open = True

    def __init__(self, holds: int) -> None:
        self.holds = holds
        self.pieces: list[bytes] = []

    def put(self, piece: bytes) -> bool:
        self.pieces.append(piece)
        return len(self.pieces) % self.holds > 0


@pytest.mark.parametrize("tap", [None, Tap()])
async def test_what_follows_the_first_piece_leaves_by_the_outlet_while_it_has_room(tap: Tap | None) -> None:
    response, spout = Response(), Spout(2)
    exchange = exchange_into(response, spout)
    assert await relay(Canned(200, [], b"a", b"b", b"c", b"d", b"e", b"f"), exchange, [], tap)
    assert spout.pieces == [b"b", b"c", b"e"]
    assert [message["body"] for message in response.messages[1:]] == [b"a", b"d", b"f", b""]
    assert tap is None or tap.kept() == b"abcdef"


async def test_an_outlet_that_is_not_open_is_left_alone() -> None:
    response, spout = Response(), Spout(2)
    spout.is_open = False
    exchange = exchange_into(response, spout)
    assert await relay(Canned(200, [], b"a", b"b", b"c"), exchange, [])
    assert (spout.pieces, response.body) == ([], b"abc")


async def test_what_breaks_off_is_left_incomplete() -> None:
    response = Response()
    assert not await relay(Canned(200, [], b"a", BrokenOff("x")), exchange_into(response), [])
    assert response.body == b"a"
    assert not response.complete


async def test_work_that_ends_is_not_disturbed_by_a_client_that_leaves_later() -> None:
    left = asyncio.Event()

    async def receive() -> dict[str, str]:
        await left.wait()
        return {"type": "http.disconnect"}

    async def work() -> None:
        await asyncio.sleep(0)

    assert await attended(work(), receive)
    left.set()
    await asyncio.sleep(0)


async def test_work_is_cancelled_where_it_waits_when_the_client_leaves() -> None:
    cleaned = False

    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def work() -> None:
        nonlocal cleaned
        try:
            await asyncio.Event().wait()
        finally:
            cleaned = True

    assert not await attended(work(), receive)
    assert cleaned
    await asyncio.sleep(0)  # the task itself was not left cancelled


async def test_a_server_that_tells_of_a_departure_is_not_asked() -> None:
    departure = Departure()

    async def receive() -> dict[str, str]:
        raise AssertionError("asked")

    async def work() -> None:
        departure.happen()
        await asyncio.Event().wait()

    assert await attended(asyncio.sleep(0), receive, departure=departure)
    assert not await attended(work(), receive, departure=departure)


async def test_a_client_that_left_before_the_work_began_ends_it_where_it_first_waits() -> None:
    departure, began = Departure(), False

    async def receive() -> dict[str, str]:
        raise AssertionError("asked")

    async def work() -> None:
        nonlocal began
        began = True
        await asyncio.Event().wait()

    departure.happen()
    assert not await attended(work(), receive, departure=departure)
    assert began


async def test_the_body_is_left_to_its_reader_until_it_is_read() -> None:
    calls = 0
    read = asyncio.Event()

    async def receive() -> dict[str, str]:
        nonlocal calls
        calls += 1
        return {"type": "http.request" if calls == 1 else "http.disconnect"}

    async def work() -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        assert calls == 0
        read.set()
        await asyncio.Event().wait()

    assert not await attended(work(), receive, read)
    assert calls == 2


async def test_a_shutdown_is_no_departure() -> None:
    async def receive() -> dict[str, str]:
        await asyncio.Event().wait()
        return {}

    task = asyncio.create_task(attended(asyncio.sleep(60), receive))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_error_of_the_work_is_its_own() -> None:
    async def receive() -> dict[str, str]:
        await asyncio.Event().wait()
        return {}

    async def work() -> None:
        raise BrokenOff("mine")

    with pytest.raises(BrokenOff, match="mine"):
        await attended(work(), receive)
