"""FACTS 2 and 3: what happens to connections, over real sockets."""

import asyncio
import gc
import socket
import threading
from collections.abc import Callable

import pytest
from support.servers import CHAT, Proxy, post, request, running
from support.upstream import (
    LAST_CHUNK,
    OK,
    STREAM_HEAD,
    Close,
    Hang,
    Reset,
    Script,
    Upstream,
    Wait,
    chunk,
    response,
    scripted,
    until,
)

STREAMED = {**CHAT, "stream": True}
EVENT = b"data: {}\n\n"
CANCELLED_WITHIN = 2.0  # seconds; promised, and given to the wait as its limit

PHASES: dict[str, Script] = {
    "before the headers": [Hang()],
    "inside a stream": [STREAM_HEAD + chunk(EVENT), Hang()],
    "inside a plain body": [b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{", Hang()],
    "while a 429 waits": [response(429, b"{}", ("retry-after", "25")), Hang()],
}


@pytest.mark.parametrize("phase", list(PHASES)[:3])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
async def test_a_client_that_leaves_takes_its_upstream_request_along(path: str, phase: str) -> None:
    async with scripted(PHASES[phase]) as upstream, running(upstream.base) as proxy:
        async with proxy.client() as client:
            await client.send(post(path, STREAMED))
            await upstream.heard.wait()
            if phase != "before the headers":
                await client.head()
        async with asyncio.timeout(CANCELLED_WITHIN):
            await upstream.gone.wait()
        await until(lambda: not proxy.server.server_state.tasks)


async def test_a_client_that_leaves_ends_the_wait_for_a_429() -> None:
    async with scripted(PHASES["while a 429 waits"]) as upstream, running(upstream.base) as proxy:
        async with proxy.client() as client:
            await client.send(post("/v1/chat/completions", CHAT))
            await upstream.heard.wait()
        async with asyncio.timeout(CANCELLED_WITHIN):
            await until(lambda: not proxy.server.server_state.tasks)
    assert len(upstream.requests) == 1


async def test_a_client_that_leaves_inside_its_upload_leaves_no_half_request_that_looks_whole(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with scripted([Hang()]) as upstream, running(upstream.base) as proxy:
        async with proxy.client() as client:
            await client.send(request("POST", "/v1/files", b"", ("content-length", "1000000")) + b"x" * 100_000)
            await until(lambda: upstream.connections == 1)
        await until(lambda: not proxy.server.server_state.tasks)
    assert upstream.requests == []
    gc.collect()
    assert caplog.text == ""


async def test_an_upstream_that_closes_inside_an_upload_is_a_502() -> None:
    async def close_at_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()

    server = await asyncio.start_server(close_at_once, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, running(f"http://127.0.0.1:{port}/v1") as proxy, proxy.client() as client:
        await client.send(request("POST", "/v1/files", b"", ("content-length", "300000")) + b"x" * 100_000)
        answer = await client.head()
        await client.send(b"x" * 200_000)
    assert answer.status == 502


async def test_a_response_that_comes_before_the_upload_is_over_reaches_the_client() -> None:
    # the script runs once a request is whole, so this upstream answers the first bytes by itself
    async def answer_at_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(response(413, b'{"error":{}}', ("connection", "close")))
        await writer.drain()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(answer_at_once, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, running(f"http://127.0.0.1:{port}/v1") as proxy, proxy.client() as client:
        await client.send(request("POST", "/v1/files", b"", ("content-length", "1000000")) + b"x" * 10_000)
        answer = await client.answer()
    assert answer.status == 413


async def reused(proxy: Proxy, upstream: Upstream, again: Callable[[], bytes]) -> int:
    """Warm one pooled connection up, then ask on it; the status of the second answer."""
    assert (await proxy.chat()).status == 200
    assert upstream.connections == 1
    return (await proxy.ask(again())).status


@pytest.mark.parametrize("death", [Close(), Reset()], ids=["closed", "reset"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/embeddings"])
async def test_a_reused_connection_that_dies_is_replaced_once_by_a_fresh_one(death: Close | Reset, path: str) -> None:
    async with scripted([OK], [death], [OK]) as upstream, running(upstream.base) as proxy:
        assert await reused(proxy, upstream, lambda: post(path, CHAT)) == 200
    assert upstream.connections == 2
    assert len(upstream.requests) == 3
    assert upstream.requests[2].header(b"connection") == b"close"


async def test_a_fresh_connection_that_dies_as_well_is_a_502() -> None:
    async with scripted([OK], [Close()]) as upstream, running(upstream.base) as proxy:
        assert await reused(proxy, upstream, lambda: post("/v1/chat/completions", CHAT)) == 502
    assert len(upstream.requests) == 3


@pytest.mark.parametrize("method", ["GET", "PUT", "POST", "DELETE"])
async def test_a_first_connection_that_dies_is_not_tried_again(method: str) -> None:
    async with scripted([Close()]) as upstream, running(upstream.base) as proxy:
        answer = await proxy.ask(request(method, "/v1/files/x", b"{}"))
    assert (answer.status, answer.error["code"]) == (502, "upstream_disconnected")
    assert len(upstream.requests) == 1


@pytest.mark.parametrize("said", [b"HTTP/1.1 200 OK\r\nx-half", b"H"], ids=["half a head", "one byte"])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_reused_connection_that_said_something_is_not_replaced(method: str, said: bytes) -> None:
    async with scripted([OK], [said, Close()], [OK]) as upstream, running(upstream.base) as proxy:
        assert await reused(proxy, upstream, lambda: request(method, "/v1/files/x", b"")) == 502
    assert len(upstream.requests) == 2


async def test_an_upload_never_rides_on_a_pooled_connection() -> None:
    async with scripted() as upstream, running(upstream.base) as proxy:
        await proxy.chat()
        await proxy.ask(post("/v1/files", b"x" * 300_000))
        await proxy.chat()
    assert upstream.connections == 2
    assert [received.header(b"connection") for received in upstream.requests] == [None, b"close", None]


async def test_connections_are_pooled_after_plain_and_streamed_answers() -> None:
    streamed: Script = [STREAM_HEAD + chunk(EVENT) + LAST_CHUNK]
    async with scripted(streamed, [OK], [response(500, b"{}")], [OK]) as upstream, running(upstream.base) as proxy:
        for _ in range(4):
            await proxy.chat()
    assert upstream.connections == 1


async def test_an_upstream_that_refuses_connections_is_a_502() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    async with running(f"http://127.0.0.1:{port}/v1") as proxy:
        answer = await proxy.chat()
    assert (answer.status, answer.error["code"]) == (502, "upstream_unreachable")


async def test_an_upstream_that_is_silent_too_long_is_a_504() -> None:
    async with scripted([Hang()]) as upstream, running(upstream.base, first_byte_timeout=0.05) as proxy:
        answer = await proxy.chat()
        await upstream.gone.wait()
    assert (answer.status, answer.error["code"]) == (504, "upstream_timeout")


async def test_the_clients_own_timeout_goes_before_the_setting() -> None:
    async with scripted([Hang()]) as upstream, running(upstream.base) as proxy:
        answer = await proxy.chat(None, ("x-stainless-timeout", "0.05"))
    assert answer.status == 504
    assert "0.05 s" in answer.error["message"]


async def test_a_stream_that_falls_silent_is_cut() -> None:
    script: Script = [STREAM_HEAD + chunk(EVENT), Hang()]
    async with scripted(script) as upstream, running(upstream.base, idle_timeout=0.05) as proxy:
        answer = await proxy.chat(STREAMED)
        await upstream.gone.wait()
    assert (answer.status, answer.complete, answer.body) == (200, False, EVENT)


async def test_the_idle_limit_counts_between_bytes_and_not_the_whole() -> None:
    gates = [Wait() for _ in range(4)]
    script: Script = [STREAM_HEAD, *(act for gate in gates for act in (gate, chunk(EVENT))), LAST_CHUNK]
    async with scripted(script) as upstream, running(upstream.base, idle_timeout=20) as proxy, proxy.client() as client:
        await client.send(post("/v1/chat/completions", STREAMED))
        await client.head()
        for gate in gates:
            gate.go()
            assert await client.chunk() == EVENT
        assert await client.chunk() == b""


async def test_a_slow_client_holds_its_upstream_back_instead_of_filling_memory() -> None:
    block = chunk(b"x" * 65536)
    sent = 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(STREAM_HEAD)
        try:
            while sent < 100_000_000:
                writer.write(block)
                await writer.drain()
                sent += len(block)
        except ConnectionError:
            writer.close()

    server = await asyncio.start_server(pour, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, running(f"http://127.0.0.1:{port}/v1") as proxy, proxy.client() as client:
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # asyncio's own transport has it
        await client.send(post("/v1/chat/completions", STREAMED))
        before = -1
        while sent != before or sent == 0:
            before = sent
            await asyncio.sleep(0.2)
    assert sent < 50_000_000


async def test_the_client_connection_is_kept_for_the_next_request() -> None:
    async with scripted() as upstream, running(upstream.base) as proxy, proxy.client() as client:
        for _ in range(3):
            await client.send(post("/v1/chat/completions", CHAT))
            assert (await client.answer()).status == 200
    assert len(upstream.requests) == 3


async def test_a_refused_request_leaves_the_connection_usable() -> None:
    async with scripted() as upstream, running(upstream.base) as proxy, proxy.client() as client:
        await client.send(post("/v1/chat/completions", b"{"))
        assert (await client.answer()).status == 400
        await client.send(post("/v1/chat/completions", CHAT))
        assert (await client.answer()).status == 200


async def test_two_hundred_streams_at_once_stay_apart() -> None:
    before = threading.active_count()  # other tests may have left some
    async with scripted([STREAM_HEAD + chunk(EVENT) + LAST_CHUNK]) as upstream, running(upstream.base) as proxy:
        answers = await asyncio.gather(*(proxy.chat(STREAMED) for _ in range(200)))
    assert {(answer.status, answer.body) for answer in answers} == {(200, EVENT)}
    assert len({answer.header("edgewise-request-id") for answer in answers}) == 200
    assert threading.active_count() - before < 50


async def test_connections_beyond_the_limit_are_told_so() -> None:
    async with scripted([Hang()]) as upstream, running(upstream.base, max_clients=1) as proxy, proxy.client() as first:
        await first.send(post("/v1/chat/completions", CHAT))
        await upstream.heard.wait()
        assert (await proxy.get("/healthz")).status == 503


SPARE = response(200, b'{"for":"nobody"}')


@pytest.mark.parametrize("when", ["with the answer", "later"])
async def test_a_response_that_nobody_asked_for_never_meets_the_next_request(when: str) -> None:
    late = Wait()
    script: Script = [OK + SPARE] if when == "with the answer" else [OK, late, SPARE]
    async with scripted(script, [OK]) as upstream, running(upstream.base) as proxy:
        assert (await proxy.chat()).body == b'{"ok":true}'
        late.go()
        if when == "later":
            await until(lambda: upstream.gone.is_set() or len(upstream.scripts) == 1)
            await asyncio.sleep(0.05)
        assert (await proxy.chat()).body == b'{"ok":true}'
