"""What goes wrong in a later round, or between two."""

import asyncio

import pytest
from support.memory import Canned, Memory, call, scope_of
from support.reading import (
    BODY,
    EVENTS,
    JSON,
    SETTINGS,
    Reads,
    answer,
    ask,
    own,
    sse,
    streamed,
)
from support.rounds import TOOL, read
from support.servers import post, running
from support.upstream import STREAM_HEAD, Act, Hang, Reset, chunk, scripted, stream, until

from proxy.app import create_app
from proxy.errors import BrokenOff, Unreachable, UpstreamError

ERROR = b'{"error":{"message":"overloaded","type":"server_error"}}'


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Canned(503, JSON, ERROR), "overloaded"),
        (Canned(500, JSON, b"oops"), "the upstream answered 500 in the middle of an answer"),
        (Canned(500, JSON, b'["oops"]'), "the upstream answered 500 in the middle of an answer"),
        (Canned(200, JSON, b"{}"), "the upstream answered 200 in the middle of an answer"),
        (Unreachable("the upstream cannot be reached"), "the upstream cannot be reached"),
    ],
)
async def test_a_later_round_that_fails_after_text_was_sent_is_an_error_event_and_no_end(
    reply: Canned | UpstreamError, error: str
) -> None:
    planner = Reads()
    got, _ = await ask(planner, sse(streamed(answer("so", own()))[0]), reply)
    seen = read(got.body)
    assert (seen.text, seen.errors[0]["message"], seen.finishes, seen.done) == ("so", error, [], 0)
    assert (got.complete, planner.ends, planner.recorded) == (True, [(599, None)], [])


async def test_a_later_round_that_is_refused_before_anything_was_sent_is_refused_in_its_own_words() -> None:
    planner, silent = Reads(), streamed(answer("", own()))[0].partition(b"\n\n")[2]
    refusal = Canned(400, [*JSON, (b"x-request-id", b"second")], ERROR)
    got, _ = await ask(planner, sse(silent), refusal)
    assert (got.status, got.body, dict(got.headers)[b"x-request-id"]) == (400, ERROR, b"second")
    assert dict(got.headers)[b"edgewise-budget"] == b"b=1"
    assert (planner.ends, refusal.closed) == ([(400, None)], True)


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (Unreachable("gone"), 502),
        (Canned(200, EVENTS, BrokenOff("x")), 502),
        (Canned(200, JSON, b"{}"), 502),
    ],
)
async def test_a_later_round_that_breaks_before_anything_was_sent_has_the_status_of_its_fault(
    reply: Canned | UpstreamError, status: int
) -> None:
    got, _ = await ask(Reads(), sse(streamed(answer("", own()))[0].partition(b"\n\n")[2]), reply)
    assert got.status == status


async def test_a_refusal_that_breaks_off_itself_is_cut() -> None:
    silent = streamed(answer("", own()))[0].partition(b"\n\n")[2]
    got, _ = await ask(Reads(), sse(silent), Canned(400, JSON, ERROR[:9], BrokenOff("x")))
    assert (got.status, got.complete) == (400, False)


@pytest.mark.parametrize("number", [0, 1])
async def test_a_round_that_breaks_off_cuts_the_client_too(number: int) -> None:
    rounds = streamed(answer("so", own()), answer("7"))
    replies = [sse(raw) for raw in rounds[:number]] + [sse(rounds[number][:-20], BrokenOff("x"))]
    planner = Reads()
    got, _ = await ask(planner, *replies)
    assert (got.complete, read(got.body).done, planner.ends[0][0], planner.recorded) == (False, 0, 599, [])


async def test_over_sockets_a_reset_in_the_second_round_cuts_the_client() -> None:
    raw = streamed(answer("so", own()), answer("It is 7."))
    second: list[Act] = [STREAM_HEAD + chunk(raw[1][:300]), Reset()]
    async with scripted([stream(raw[0])], second) as upstream, running(upstream.base, planner=Reads()) as proxy:
        got = await proxy.chat(BODY)
    assert (got.complete, TOOL.encode() in got.body) == (False, False)


async def test_a_client_that_leaves_in_the_second_round_takes_the_upstream_with_it() -> None:
    raw = streamed(answer("so", own()), answer("It is 7."))
    second: list[Act] = [STREAM_HEAD + chunk(raw[1][:300]), Hang()]
    planner = Reads()
    async with scripted([stream(raw[0])], second) as upstream, running(upstream.base, planner=planner) as proxy:
        async with proxy.client() as client:
            await client.send(post("/v1/chat/completions", BODY))
            await client.head()
            await until(lambda: len(upstream.requests) == 2)
        await upstream.gone.wait()
        await until(lambda: bool(planner.ends))
    assert planner.ends == [(499, None)]


async def test_a_client_that_leaves_while_the_store_is_read_stops_it() -> None:
    class Slow(Reads):
        async def read(self, ref: str) -> bytes | None:
            left.set()
            await asyncio.Event().wait()
            return await super().read(ref)

    left, planner = asyncio.Event(), Slow()
    transport = Memory([sse(streamed(answer("so", own()))[0])])
    app = create_app(SETTINGS, transport=transport, planner=planner)
    got = await call(app, scope_of("POST", "/v1/chat/completions"), BODY, leaves=left)
    assert (got.complete, planner.ends, len(transport.sent)) == (False, [(499, None)], 1)


async def test_an_upstream_that_stays_on_the_line_after_its_end_holds_nobody_up() -> None:
    raw = streamed(answer("so", own()), answer("7"))
    first: list[Act] = [STREAM_HEAD + chunk(raw[0]), Hang()]
    async with scripted(first, [stream(raw[1])]) as upstream, running(upstream.base, planner=Reads()) as proxy:
        got = await proxy.chat(BODY)
    assert read(got.body).text == "so7"


@pytest.mark.parametrize("coding", [b"snappy", b"gzip"])
async def test_an_answer_in_a_coding_that_nobody_knows_or_that_it_is_not_in_is_no_answer(coding: bytes) -> None:
    got, _ = await ask(Reads(), Canned(200, [*EVENTS, (b"content-encoding", coding)], b"x"))
    assert got.status == 502


@pytest.mark.parametrize("status", [400, 500])
async def test_an_error_of_the_first_round_is_passed_on_as_ever(status: int) -> None:
    got, _ = await ask(Reads(), Canned(status, JSON, ERROR))
    assert (got.status, got.body) == (status, ERROR)
