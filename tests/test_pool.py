"""What the transport needs of aiohttp beyond its documentation; what it does is tested in tests/fidelity."""

import asyncio
import gc
import inspect
import socket

import pytest
from aiohttp import TCPConnector
from support.upstream import OK, STREAM_HEAD, Hang, Script, chunk, response, scripted

from proxy.errors import BrokenOff, Disconnected, Malformed, TimedOut, Unreachable
from proxy.line import Line
from proxy.pool import AiohttpTransport
from proxy.upstream import Outgoing, Timeouts


def outgoing(base: str, method: str = "POST", body: bytes | None = b"{}") -> Outgoing:
    return Outgoing(method, base, b"/x", [(b"a", b"b")], body)


async def test_the_connector_still_makes_its_connections_by_the_name_that_is_replaced() -> None:
    transport = AiohttpTransport(Timeouts())
    await transport.open()
    connector = TCPConnector()
    assert "_factory" in vars(connector)
    assert "self._factory" in inspect.getsource(TCPConnector)
    assert isinstance(transport._pool._factory(), Line)
    await connector.close()
    await transport.close()


async def test_the_request_is_written_as_these_bytes() -> None:
    async with scripted() as upstream:
        transport = AiohttpTransport(Timeouts())
        await transport.open()
        reply = await transport.send(outgoing(upstream.base))
        assert (reply.status, await reply.read(), await reply.read()) == (200, b'{"ok":true}', b"")
        reply.close()
        reply.close()
        await transport.close()
    host = f"127.0.0.1:{upstream.port}".encode()
    assert upstream.requests[0].head == (
        b"POST /v1/x HTTP/1.1\r\nhost: " + host + b"\r\na: b\r\ncontent-length: 2\r\n\r\n"
    )


async def test_an_idle_connection_is_not_kept_longer_than_it_may() -> None:
    async with scripted() as upstream:
        transport = AiohttpTransport(Timeouts(pool_idle=0.01))
        await transport.open()
        for _ in range(2):
            reply = await transport.send(outgoing(upstream.base))
            await reply.read()
            await reply.read()
            reply.close()
            await asyncio.sleep(0.05)
        await transport.close()
    assert upstream.connections == 2


async def test_a_cancelled_request_leaves_no_connection_behind() -> None:
    async with scripted([Hang()]) as upstream:
        transport = AiohttpTransport(Timeouts())
        await transport.open()
        task = asyncio.create_task(transport.send(outgoing(upstream.base)))
        await upstream.heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await upstream.gone.wait()
        assert transport._pool._acquired == set()
        await transport.close()
    gc.collect()


FAULTS: list[tuple[Script, type[Exception]]] = [
    ([b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"], Malformed),
    ([b"nonsense\r\n\r\n"], Malformed),
    ([Hang()], TimedOut),
]


@pytest.mark.parametrize(("script", "fault"), FAULTS)
async def test_every_fault_has_its_error(script: Script, fault: type[Exception]) -> None:
    async with scripted(script) as upstream:
        transport = AiohttpTransport(Timeouts(first_byte=0.2))
        await transport.open()
        with pytest.raises(fault):
            await transport.send(outgoing(upstream.base))
        await transport.close()


async def test_a_host_that_takes_no_connection_in_time_is_a_timeout() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        with socket.create_connection(address), socket.socket() as second:
            second.setblocking(False)
            second.connect_ex(address)
            transport = AiohttpTransport(Timeouts(connect=0.05))
            await transport.open()
            with pytest.raises(TimedOut, match=r"within 0\.05 s"):
                await transport.send(outgoing(f"http://127.0.0.1:{address[1]}/v1"))
            await transport.close()


async def test_a_port_that_nobody_listens_on_is_unreachable() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        transport = AiohttpTransport(Timeouts())
        await transport.open()
        with pytest.raises(Unreachable, match="ClientConnectorError"):
            await transport.send(outgoing(f"http://127.0.0.1:{unused.getsockname()[1]}/v1"))
        await transport.close()


async def test_a_fresh_connection_is_not_tried_twice() -> None:
    async with scripted([b""]) as upstream:
        transport = AiohttpTransport(Timeouts(first_byte=0.1))
        await transport.open()
        with pytest.raises((TimedOut, Disconnected)):
            await transport.send(outgoing(upstream.base, "GET", None))
        await transport.close()
    assert len(upstream.requests) == 1


async def test_a_body_that_is_cut_short_is_broken_off() -> None:
    async with scripted([STREAM_HEAD + chunk(b"x"), Hang()]) as upstream:
        transport = AiohttpTransport(Timeouts(idle=0.1))
        await transport.open()
        reply = await transport.send(outgoing(upstream.base))
        assert await reply.read() == b"x"
        with pytest.raises(BrokenOff):
            await reply.read()
        reply.close()
        await transport.close()


async def test_connections_can_be_limited() -> None:
    async with scripted([OK]) as upstream:
        transport = AiohttpTransport(Timeouts(connect=0.1), max_connections=1)
        await transport.open()
        first = await transport.send(outgoing(upstream.base))
        with pytest.raises(TimedOut):
            await transport.send(outgoing(upstream.base))
        first.close()
        await transport.close()


async def test_a_status_that_no_server_could_send_on_is_malformed() -> None:
    async with scripted([response(799, b"{}")]) as upstream:
        transport = AiohttpTransport(Timeouts())
        await transport.open()
        with pytest.raises(Malformed):
            await transport.send(outgoing(upstream.base))
        await transport.close()
