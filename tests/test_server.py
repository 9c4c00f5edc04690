import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest
from support.servers import CHAT, Client, post, request, running
from support.upstream import LAST_CHUNK, STREAM_HEAD, Close, Hang, Script, Wait, chunk, scripted

from proxy.app import create_app
from proxy.server import configure
from proxy.settings import Settings

PROGRAM = textwrap.dedent(
    """
    import sys
    from proxy.server import serve
    from proxy.settings import Settings
    serve(Settings.load(), started=lambda url: print(url, flush=True))
    """
)
EVENT = b"data: {}\n\n"


async def start(base: str, **settings: str) -> tuple[asyncio.subprocess.Process, int]:
    """The proxy as a process of its own, and its port."""
    environment = {**os.environ, "EDGEWISE_UPSTREAM": base, "EDGEWISE_PORT": "0", **settings}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    url = (await process.stdout.readline()).decode().strip()
    assert url.startswith("http://127.0.0.1:"), url
    return process, int(url.rpartition(":")[2])


async def test_sigterm_lets_a_stream_finish_and_takes_no_new_one() -> None:
    gate = Wait()
    script: Script = [STREAM_HEAD, chunk(EVENT), gate, chunk(EVENT), LAST_CHUNK]
    async with scripted(script) as upstream:
        process, port = await start(upstream.base)
        client, idle = await Client.connect(port), await Client.connect(port)
        await client.send(post("/v1/chat/completions", {**CHAT, "stream": True}))
        await client.head()
        assert await client.chunk() == EVENT
        process.send_signal(signal.SIGTERM)
        assert await idle.reader.read() == b""
        with pytest.raises(ConnectionError):
            await Client.connect(port)
        assert process.returncode is None
        gate.go()
        assert await client.chunk() == EVENT
        assert await client.chunk() == b""
        assert await client.reader.read() == b""
        _, errors = await process.communicate()
        await client.close()
        await idle.close()
    assert process.returncode in (0, -signal.SIGTERM)
    assert b"Traceback" not in errors


async def test_a_stream_that_does_not_end_is_cut_at_the_limit() -> None:
    script: Script = [STREAM_HEAD, chunk(EVENT), Wait()]
    async with scripted(script) as upstream:
        process, port = await start(upstream.base, EDGEWISE_SHUTDOWN_TIMEOUT="1")
        client = await Client.connect(port)
        await client.send(post("/v1/chat/completions", {**CHAT, "stream": True}))
        await client.head()
        assert await client.chunk() == EVENT
        process.send_signal(signal.SIGTERM)
        assert LAST_CHUNK not in await client.reader.read()
        _, errors = await process.communicate()
        await upstream.gone.wait()
        await client.close()
    assert b"Traceback" not in errors


async def test_a_request_that_was_not_answered_at_the_limit_is_told_to_come_again() -> None:
    async with scripted([Hang()]) as upstream:
        process, port = await start(upstream.base, EDGEWISE_SHUTDOWN_TIMEOUT="1")
        client = await Client.connect(port)
        await client.send(post("/v1/chat/completions", CHAT))
        await upstream.heard.wait()
        process.send_signal(signal.SIGTERM)
        answer = await client.answer()
        _, errors = await process.communicate()
        await upstream.gone.wait()
        await client.close()
    assert (answer.status, answer.error["code"], answer.header("retry-after")) == (503, "shutting_down", "1")
    assert b"Traceback" not in errors


async def test_what_goes_wrong_is_logged_once_and_without_a_traceback() -> None:
    async with scripted([STREAM_HEAD + chunk(EVENT), Close()]) as upstream:
        process, port = await start(upstream.base, EDGEWISE_UPSTRAEM="x")
        client = await Client.connect(port)
        await client.send(post("/v1/chat/completions", CHAT))
        assert not (await client.answer()).complete
        await client.close()
        process.send_signal(signal.SIGTERM)
        _, errors = await process.communicate()
    assert errors.count(b"broke off") == 1
    assert errors.count(b"did you mean EDGEWISE_UPSTREAM?") == 1
    assert b"ASGI" not in errors
    assert b"Traceback" not in errors


def test_uvicorn_runs_on_what_was_measured_and_logs_no_request() -> None:
    settings = Settings.load(upstream="http://a.test/v1", keep_alive_timeout=80, max_header_bytes=1234)
    config = configure(settings, create_app(settings))
    config.load()
    assert config.loop == "uvloop"
    assert vars(config.http_protocol_class)["max_header_bytes"] == 1234
    assert config.ws_protocol_class is None
    assert config.timeout_keep_alive == 80
    assert (config.access_log, config.server_header, config.date_header) == (False, False, False)


async def test_trailer_fields_never_pass_for_headers() -> None:
    head = request("POST", "/v1/chat/completions", b"", ("transfer-encoding", "chunked"))
    trailer = b"0\r\nAuthorization: Bearer smuggled\r\nX-Late: 1\r\n\r\n"
    async with scripted() as upstream, running(upstream.base) as proxy:
        answer = await proxy.ask(head + chunk(json.dumps(CHAT).encode()) + trailer)
    assert answer.status == 200
    assert [upstream.requests[0].header(name) for name in (b"authorization", b"x-late")] == [None, None]
