"""How responses are read; what a proxy makes of them is tested in tests/fidelity."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from support.upstream import OK, Close, Hang, Script, Wait, scripted

from proxy.errors import BrokenOff, Malformed
from proxy.line import MAX_FIELDS, MAX_HEAD, READ_BUFFER
from proxy.pool import AiohttpTransport
from proxy.upstream import Outgoing, Put, Reply, Timeouts


@asynccontextmanager
async def sent(*scripts: Script, method: str = "POST") -> AsyncIterator[tuple[AiohttpTransport, Outgoing]]:
    """A transport, and a request to an upstream that answers by the scripts."""
    async with scripted(*scripts) as upstream:
        transport = AiohttpTransport(Timeouts(first_byte=2, idle=2))
        await transport.open()
        yield transport, Outgoing(method, upstream.base, b"/x", [], None)
        await transport.close()


async def whole(reply: Reply) -> bytes:
    pieces = []
    while piece := await reply.read():
        pieces.append(piece)
    reply.close()
    return b"".join(pieces)


def into(taken: list[bytes]) -> Put:
    """Takes all that comes."""

    def put(piece: bytes) -> bool:
        taken.append(piece)
        return True

    return put


async def test_informational_responses_are_passed_over() -> None:
    script: Script = [
        b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\ncontent-length: 0\r\n\r\n",
    ]
    async with sent(script) as (transport, outgoing):
        reply = await transport.send(outgoing)
        assert (reply.status, reply.headers) == (200, [(b"A", b"b"), (b"content-length", b"0")])
        assert reply.ended
        assert await whole(reply) == b""


async def test_a_head_request_has_no_body_whatever_its_length_says_and_keeps_its_connection() -> None:
    async with sent([b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"], [OK], method="HEAD") as (transport, outgoing):
        reply = await transport.send(outgoing)
        assert await whole(reply) == b""
        assert len(transport._pool._conns) == 1


async def test_a_body_without_a_length_ends_with_its_connection() -> None:
    async with sent([b"HTTP/1.1 200 OK\r\n\r\nall of it", Close()]) as (transport, outgoing):
        reply = await transport.send(outgoing)
        assert await whole(reply) == b"all of it"
        assert not transport._pool._conns


async def test_trailers_are_no_headers() -> None:
    response = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nlate: yes\r\n\r\n"
    async with sent([response]) as (transport, outgoing):
        reply = await transport.send(outgoing)
        assert await whole(reply) == b"a"
        assert reply.headers == [(b"transfer-encoding", b"chunked")]


async def test_what_follows_a_response_costs_the_connection() -> None:
    async with sent([OK + OK]) as (transport, outgoing):
        reply = await transport.send(outgoing)
        assert await whole(reply) == b'{"ok":true}'
        assert not transport._pool._conns


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * (MAX_FIELDS + 1) + b"content-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\na: " + b"b" * (MAX_HEAD + 1),
    ],
    ids=["too many fields", "a field without an end"],
)
async def test_a_head_over_the_limits_is_malformed(head: bytes) -> None:
    async with sent([head, Hang()]) as (transport, outgoing):
        with pytest.raises(Malformed):
            await transport.send(outgoing)


async def test_garbage_between_chunks_breaks_the_body_off() -> None:
    async with sent([b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\nxyz\r\n", Hang()]) as (
        transport,
        outgoing,
    ):
        reply = await transport.send(outgoing)
        with pytest.raises(BrokenOff):
            await whole(reply)
        reply.close()


async def test_an_upstream_is_paused_while_nobody_reads() -> None:
    gate = Wait()
    size = 4 * READ_BUFFER
    script: Script = [b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size, b"x" * size, gate]
    async with sent(script) as (transport, outgoing):
        reply = await transport.send(outgoing)
        await asyncio.sleep(0.05)
        assert not reply.ended
        assert len(await whole(reply)) == size
        gate.go()


async def test_what_comes_is_poured_until_its_taker_is_full_and_then_read() -> None:
    gates = [Wait(), Wait(), Wait()]
    script: Script = [b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\na", gates[0], b"b", gates[1], b"c", gates[2], b"d"]
    async with sent(script) as (transport, outgoing):
        reply = await transport.send(outgoing)
        taken: list[bytes] = []

        def put(piece: bytes) -> bool:
            taken.append(piece)
            if piece == b"b":
                gates[1].go()
            return piece != b"c"

        await reply.pour(put)
        assert taken == []  # the first piece waits for who reads
        assert await reply.read() == b"a"
        asyncio.get_running_loop().call_soon(gates[0].go)
        await reply.pour(put)
        assert taken == [b"b", b"c"]
        gates[2].go()
        assert await whole(reply) == b"d"
        await reply.pour(put)
        assert taken == [b"b", b"c"]


async def test_pouring_ends_with_the_body_and_read_tells_that_it_broke_off() -> None:
    gate = Wait()
    cut: Script = [b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\na", gate, b"b", Close()]
    async with sent(cut) as (transport, outgoing):
        reply = await transport.send(outgoing)
        taken = [await reply.read()]
        asyncio.get_running_loop().call_soon(gate.go)
        await reply.pour(into(taken))
        assert taken == [b"a", b"b"]
        with pytest.raises(BrokenOff):
            await reply.read()
        reply.close()


async def test_a_pour_of_more_than_the_buffer_goes_on() -> None:
    gate = Wait()
    size = 8 * READ_BUFFER
    script: Script = [b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\nx" % (size + 1), gate, b"x" * size]
    async with sent(script) as (transport, outgoing):
        reply = await transport.send(outgoing)
        taken = [await reply.read()]
        asyncio.get_running_loop().call_soon(gate.go)
        await reply.pour(into(taken))
        assert sum(map(len, taken)) == size + 1
        assert reply.ended
        reply.close()
