import json
from typing import Any

import pytest
from support.memory import Canned, Memory, call, scope_of
from support.servers import post, running
from support.upstream import scripted

from proxy.app import create_app
from proxy.settings import Settings

SEVERAL = Settings.load(
    upstream="http://default.test/v1", upstreams={"gpt-*": "http://gpt.test/v1", "qwen*": "http://qwen.test/v1"}
)
JSON = (b"content-type", b"application/json")


async def base_of(method: str, path: str, body: bytes = b"", *headers: tuple[bytes, bytes]) -> str:
    transport = Memory([Canned(200)])
    length = [(b"content-length", str(len(body)).encode())] if body else []
    await call(create_app(SEVERAL, transport=transport), scope_of(method, path, *headers, *length), body)
    assert transport.sent[0].body == (body or None)
    return transport.sent[0].base


@pytest.mark.parametrize(
    ("model", "base"),
    [("gpt-4o", "http://gpt.test/v1"), ("qwen3", "http://qwen.test/v1"), ("bge", "http://default.test/v1")],
)
async def test_the_model_of_a_body_or_path_chooses_the_upstream(model: str, base: str) -> None:
    body = json.dumps({"input": "x", "model": model}).encode()
    assert await base_of("POST", "/v1/embeddings", body, JSON) == base
    assert await base_of("GET", f"/v1/models/{model}") == base
    assert await base_of("DELETE", f"/v1/models/{model}") == base


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"model":7}', b'{"input":"x"}', b"", b'{"model":"gpt-4o"'])
async def test_without_a_model_the_default_takes_it_untouched(body: bytes) -> None:
    assert await base_of("POST", "/v1/embeddings", body, JSON) == "http://default.test/v1"


async def test_only_json_is_looked_into() -> None:
    assert await base_of("POST", "/v1/files", b'{"model":"gpt-4o"}') == "http://default.test/v1"


async def test_a_model_that_no_upstream_serves_is_404() -> None:
    settings = Settings.load(upstreams={"gpt-*": "http://gpt.test/v1", "o*": "http://o.test/v1"})
    app = create_app(settings, transport=Memory([]))
    response = await call(app, scope_of("GET", "/v1/models/qwen"))
    assert response.status == 404


async def test_without_any_upstream_a_path_is_503() -> None:
    response = await call(create_app(Settings.load(), transport=Memory([])), scope_of("GET", "/v1/files"))
    assert response.status == 503


@pytest.mark.parametrize(("limit", "status"), [(1_000_000, 200), (1000, 413)])
async def test_a_long_json_body_is_read_whole_to_find_its_model(limit: int, status: int) -> None:
    body: Any = {"input": "x" * 300_000, "model": "gpt-4o"}
    async with scripted() as default, scripted() as gpt:
        async with running(default.base, upstreams={"gpt-*": gpt.base}, max_body_bytes=limit) as proxy:
            answer = await proxy.ask(post("/v1/embeddings", body))
        assert answer.status == status
        assert default.requests == []
        assert [json.loads(received.body) for received in gpt.requests] == ([body] if status == 200 else [])


async def test_a_client_that_left_before_its_body_came_is_not_answered() -> None:
    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def send(message: object) -> None:
        raise AssertionError(message)

    scope = scope_of("POST", "/v1/files", (b"content-length", b"5"))
    await create_app(SEVERAL, transport=Memory([]))(scope, receive, send)


async def test_an_empty_body_stays_an_empty_body() -> None:
    transport = Memory([Canned(200), Canned(200)])
    app = create_app(SEVERAL, transport=transport)
    await call(app, scope_of("POST", "/v1/files", (b"content-length", b"0")))
    await call(app, scope_of("POST", "/v1/files"))
    assert [outgoing.body for outgoing in transport.sent] == [b"", None]
