"""FACTS 7, over real sockets."""

import logging
from typing import Any

import pytest
from support.servers import CHAT, post, request, running
from support.upstream import Close, Script, response, scripted

CANARY = "sk-canary-5f0c1b"
PROMPT = "prompt-canary-77ab"


@pytest.mark.parametrize(
    "line",
    [
        "GET http://127.0.0.1:9/v1/models HTTP/1.1",
        "GET //evil.test/v1/models HTTP/1.1",
        "GET /v1/../admin HTTP/1.1",
        "GET /v1/%2e%2E/admin HTTP/1.1",
        "GET /v1/a/..%2fadmin HTTP/1.1",
        "GET /v1/./models HTTP/1.1",
        "GET /v1/@evil.test/ HTTP/1.1",
        "GET /v1@evil.test/models HTTP/1.1",
        "GET /v1/models#x HTTP/1.1",
        "GET /v1/models?a#x HTTP/1.1",
        "GET /v1\\models HTTP/1.1",
        "GET /v1/mo\x01dels HTTP/1.1",
        "GET /v1/mo\x7fdels HTTP/1.1",
        "GET /v1/models?a=\x0b HTTP/1.1",
        "GET /v1/mod\u00e9ls HTTP/1.1",
        "CONNECT 127.0.0.1:9 HTTP/1.1",
        "OPTIONS * HTTP/1.1",
    ],
)
async def test_a_target_that_is_no_plain_path_never_reaches_an_upstream(line: str) -> None:
    async with scripted() as upstream, running(upstream.base) as proxy:
        answer = await proxy.ask(line.encode("latin-1") + b"\r\nhost: x\r\n\r\n")
    assert answer.status in (400, 404)
    assert upstream.requests == []


async def test_no_header_can_choose_the_upstream() -> None:
    tries = [(name, "127.0.0.1:9") for name in ("x-forwarded-host", "x-upstream", "edgewise-upstream", "x-base-url")]
    async with scripted() as upstream, running(upstream.base) as proxy:
        answer = await proxy.ask(post("/v1/chat/completions", {**CHAT, "base_url": "http://127.0.0.1:9"}, *tries))
        elsewhere = await proxy.ask(b"GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1:9\r\n\r\n")
    assert (answer.status, elsewhere.status) == (200, 200)
    assert upstream.requests[1].header(b"host") == f"127.0.0.1:{upstream.port}".encode()


@pytest.mark.parametrize("path", ["/", "/v1", "/v2/models", "/admin", "/v1x/models"])
async def test_other_paths_are_404_in_the_shape_of_the_api(path: str) -> None:
    async with scripted() as upstream, running(upstream.base) as proxy:
        answer = await proxy.get(path)
    assert (answer.status, answer.error["type"]) == (404, "invalid_request_error")
    assert upstream.requests == []


@pytest.mark.parametrize("path", ["/v1/realtime?model=x", "/ws", "/v1/chat/completions"])
async def test_a_websocket_is_501_in_the_shape_of_the_api(path: str) -> None:
    upgrade = ("connection", "Upgrade"), ("upgrade", "websocket"), ("sec-websocket-version", "13")
    async with scripted() as upstream, running(upstream.base) as proxy:
        answer = await proxy.get(path, *upgrade, ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="))
    assert (answer.status, answer.error["code"]) == (501, "not_implemented")
    assert upstream.requests == []


KEYS: dict[str, Any] = {"inbound_keys": ("in-1", "in-2"), "api_key": CANARY}


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (("authorization", "Bearer in-1"), 200),
        (("authorization", "bearer in-2"), 200),
        (("api-key", "in-2"), 200),
        (("edgewise-key", "in-1"), 200),
        (("authorization", "Bearer in-3"), 401),
        (("authorization", "Bearer "), 401),
        (("authorization", "Bearer in-1x"), 401),
        (("authorization", "Basic in-1"), 401),
        (("x-other", "in-1"), 401),
    ],
)
async def test_inbound_keys_open_the_door(header: tuple[str, str], status: int) -> None:
    async with scripted() as upstream, running(upstream.base, **KEYS) as proxy:
        answers = [await proxy.chat(None, header), await proxy.get("/v1/models", header)]
    assert [answer.status for answer in answers] == [status, status]
    if status == 401:
        assert answers[0].error["code"] == "invalid_api_key"
        assert upstream.requests == []


async def test_an_injected_key_replaces_all_that_spoke_for_the_client() -> None:
    sent = [
        ("authorization", "Bearer in-1"),
        ("api-key", "az"),
        ("x-api-key", "an"),
        ("cookie", "a=b"),
        ("openai-organization", "org"),
        ("openai-project", "proj"),
        ("openai-beta", "x"),
    ]
    async with scripted() as upstream, running(upstream.base, **KEYS) as proxy:
        await proxy.chat(None, *sent)
        await proxy.get("/v1/models", *sent)
    for received in upstream.requests:
        names = {name for name, _ in received.headers}
        assert names.isdisjoint({b"api-key", b"x-api-key", b"cookie", b"openai-organization", b"openai-project"})
        assert [value for name, value in received.headers if name == b"authorization"] == [f"Bearer {CANARY}".encode()]
        assert received.header(b"openai-beta") == b"x"


async def test_an_inbound_key_is_not_shown_to_an_upstream() -> None:
    async with scripted() as upstream, running(upstream.base, inbound_keys=("in-1",)) as proxy:
        await proxy.chat(None, ("authorization", "Bearer in-1"))
        await proxy.chat(None, ("authorization", "Bearer sk-own"), ("edgewise-key", "in-1"))
    assert [received.header(b"authorization") for received in upstream.requests] == [None, b"Bearer sk-own"]
    assert b"in-1" not in upstream.requests[1].head


async def test_each_upstream_gets_its_own_key() -> None:
    async with scripted() as first, scripted() as second:
        upstreams = {"gpt-*": {"url": first.base, "api_key": "k-1"}, "*": {"url": second.base, "api_key": "k-2"}}
        async with running(None, upstreams=upstreams, allow_open=True) as proxy:
            await proxy.chat(CHAT)
            await proxy.chat({**CHAT, "model": "qwen"})
    assert first.requests[0].header(b"authorization") == b"Bearer k-1"
    assert second.requests[0].header(b"authorization") == b"Bearer k-2"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([("x-long", "v" * 66_000)], 431),
        ([(f"x-{number}", "v" * 700) for number in range(100)], 431),
        ([(f"x-{number}", "v") for number in range(400)], 431),
        ([("x-long", "v" * 60_000)], 200),
    ],
    ids=["one long", "many", "very many", "within"],
)
async def test_headers_are_bounded(headers: list[tuple[str, str]], status: int) -> None:
    async with scripted() as upstream, running(upstream.base) as proxy:
        answer = await proxy.ask(request("GET", "/v1/models", b"", *headers))
    assert answer.status == status


async def test_a_header_that_never_ends_is_bounded() -> None:
    async with scripted() as upstream, running(upstream.base) as proxy, proxy.client() as client:
        await client.send(b"GET /v1/models HTTP/1.1\r\nhost: x\r\nx-long: ")
        await client.send(b"v" * 82_000)
        answer = await client.answer()
    assert answer.status == 431


async def test_a_large_body_beside_a_small_head_is_no_large_head() -> None:
    async with scripted() as upstream, running(upstream.base) as proxy, proxy.client() as client:
        for _ in range(2):
            await client.send(post("/v1/chat/completions", {**CHAT, "pad": "x" * 400_000}))
            assert (await client.answer()).status == 200


async def test_a_target_is_bounded() -> None:
    async with scripted() as upstream, running(upstream.base) as proxy:
        answer = await proxy.get("/v1/models?" + "a" * 20_000)
    assert answer.status == 414
    assert answer.header("connection") == "close"


async def test_deep_json_is_refused_and_not_an_error_of_ours() -> None:
    body = b'{"model":"m","messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    async with scripted() as upstream, running(upstream.base) as proxy:
        answer = await proxy.chat(body)
    assert answer.status == 400


@pytest.mark.parametrize("origin", ["https://evil.test", "null"])
async def test_cors_is_off(origin: str) -> None:
    async with scripted() as upstream, running(upstream.base) as proxy:
        answers = [await proxy.get("/healthz", ("origin", origin)), await proxy.chat(None, ("origin", origin))]
    assert [answer.header("access-control-allow-origin") for answer in answers] == [None, None]


async def test_neither_keys_nor_prompts_reach_a_log_a_metric_or_an_error(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = [("authorization", "Bearer in-1"), ("api-key", CANARY), ("cookie", CANARY), ("openai-project", CANARY)]
    said = {**CHAT, "messages": [{"role": "user", "content": PROMPT}]}
    scripts: list[Script] = [[Close()], [response(500, b"{}")], [b"nonsense " + CANARY.encode() + b"\r\n\r\n", Close()]]
    seen = ""
    async with scripted(*scripts) as upstream, running(upstream.base, **KEYS) as proxy:
        for body in (said, said, said, b'{"messages":"' + PROMPT.encode()):
            answer = await proxy.chat(body, *secret)
            seen += answer.body.decode() + str(answer.headers)
        seen += (await proxy.chat(said, ("authorization", f"Bearer {CANARY}x"))).body.decode()
        seen += (await proxy.get("/metrics")).body.decode()
        seen += repr(proxy.app.state.settings) + str(proxy.app.state.settings.model_dump())
    seen += caplog.text
    assert CANARY not in seen
    assert PROMPT not in seen
    assert "in-1" not in seen


@pytest.mark.parametrize(("keys", "status"), [({}, 401), ({"authorization": "Bearer in-1"}, 200)])
async def test_metrics_beyond_loopback_want_a_key(keys: dict[str, str], status: int) -> None:
    async with scripted() as upstream, running(upstream.base, **KEYS, host="0.0.0.0") as proxy:  # noqa: S104 - the case
        answer = await proxy.get("/metrics", *keys.items())
    assert answer.status == status
