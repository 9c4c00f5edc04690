import json
from typing import Any

import pytest
from support.memory import Canned, Memory, Response, call, scope_of

from policies.request import ChatRequest
from proxy.app import create_app
from proxy.errors import Unreachable
from proxy.planner import Call, Outcome, Untouched
from proxy.settings import Settings

SETTINGS = Settings.load(upstream="http://a.test/v1")
CHAT = b'{"model":"m","messages":[]}'


async def ask(method: str, path: str, body: bytes = b"", settings: Settings = SETTINGS) -> Response:
    app = create_app(settings, transport=Memory([Canned(200, [], b"upstream")]))
    return await call(app, scope_of(method, path), body)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/healthz", 200),
        ("GET", "/readyz", 200),
        ("GET", "/metrics", 200),
        ("GET", "/docs", 200),
        ("GET", "/openapi.json", 200),
        ("GET", "/ui/missing", 404),
        ("GET", "/context/missing", 404),
        ("POST", "/v1/chat/completions", 400),
        ("GET", "/v1/models", 200),
        ("GET", "/", 404),
        ("GET", "/healthzz", 404),
        ("GET", "//healthz", 404),
    ],
)
async def test_every_response_carries_the_id_of_its_request(method: str, path: str, status: int) -> None:
    response = await ask(method, path)
    assert response.status == status
    assert [name for name, _ in response.headers].count(b"edgewise-request-id") == 1


async def test_healthz_is_alive_without_anything() -> None:
    response = await ask("GET", "/healthz", settings=Settings.load())
    assert (response.status, json.loads(response.body)) == (200, {"status": "ok"})


async def test_readyz_names_what_is_missing() -> None:
    class Loading(Untouched):
        def ready(self) -> bool:
            return False

    ready = await ask("GET", "/readyz")
    assert (ready.status, json.loads(ready.body)) == (200, {"tokenizer": True, "upstream": True})
    bare = await ask("GET", "/readyz", settings=Settings.load())
    assert (bare.status, json.loads(bare.body)) == (503, {"tokenizer": True, "upstream": False})
    app = create_app(SETTINGS, transport=Memory([]), planner=Loading())
    loading = await call(app, scope_of("GET", "/readyz"))
    assert (loading.status, json.loads(loading.body)) == (503, {"tokenizer": False, "upstream": True})


async def test_metrics_are_prometheus_text() -> None:
    response = await ask("GET", "/metrics")
    assert b"# TYPE edgewise_planner_failures_total counter" in response.body
    assert dict(response.headers)[b"content-type"].startswith(b"text/plain; version=0.0.4")


async def test_a_path_of_the_api_is_never_forwarded_and_a_lookalike_is() -> None:
    transport = Memory([Canned(200)])
    app = create_app(SETTINGS, transport=transport)
    await call(app, scope_of("GET", "/context/x"))
    assert transport.sent == []
    await call(app, scope_of("GET", "/v1/context"))
    assert transport.sent[0].target == b"/context"


async def test_other_methods_on_the_chat_path_are_passed_through() -> None:
    transport = Memory([Canned(200)])
    await call(create_app(SETTINGS, transport=transport), scope_of("GET", "/v1/chat/completions"))
    assert (transport.sent[0].method, transport.sent[0].target) == ("GET", b"/chat/completions")


async def test_an_upstream_that_cannot_be_reached_is_told_in_the_shape_of_the_api() -> None:
    app = create_app(SETTINGS, transport=Memory([Unreachable("no"), Unreachable("no")]))
    for path in ("/v1/chat/completions", "/v1/embeddings"):
        response = await call(app, scope_of("POST", path), CHAT)
        assert response.status == 502
        assert json.loads(response.body)["error"]["code"] == "upstream_unreachable"


class Broken(Memory):
    """A transport with a fault of its own."""

    async def send(self, outgoing: object) -> Any:
        raise ZeroDivisionError("se" + f"cret prompt in {outgoing}")


async def test_a_fault_of_ours_is_a_500_that_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    response = await call(create_app(SETTINGS, transport=Broken([])), scope_of("POST", "/v1/chat/completions"), CHAT)
    error = json.loads(response.body)["error"]
    assert (response.status, error["type"]) == (500, "server_error")
    assert dict(response.headers)[b"edgewise-request-id"].decode() in error["message"]
    assert "ZeroDivisionError" in caplog.text
    assert "secret" not in caplog.text + error["message"]


async def test_a_fault_of_ours_after_the_status_leaves_the_response_incomplete() -> None:
    canned = Canned(200, [], b"a", ZeroDivisionError("x"))
    response = await call(create_app(SETTINGS, transport=Memory([canned])), scope_of("GET", "/v1/models"))
    assert (response.body, response.complete, canned.closed) == (b"a", False, True)


async def test_a_client_that_left_inside_its_body_is_not_answered() -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    sent: list[object] = []

    async def send(message: object) -> None:
        sent.append(message)

    await create_app(SETTINGS, transport=Memory([]))(scope_of("POST", "/v1/chat/completions"), receive, send)
    assert sent == []


async def test_the_lifespan_opens_and_closes_what_the_app_holds() -> None:
    class Watched(Untouched):
        async def open(self) -> None:
            order.append(f"planner opens, transport open: {transport.is_open}")

        async def close(self) -> None:
            order.append(f"planner closes, transport open: {transport.is_open}")

        async def plan(self, request: ChatRequest, call: Call) -> Outcome:
            raise AssertionError((request, call))

    async def receive() -> dict[str, str]:
        return {"type": "lifespan"}

    async def send(message: dict[str, str]) -> None:
        order.append(message["type"])

    order: list[str] = []
    transport = Memory([])
    await create_app(SETTINGS, transport=transport, planner=Watched())({"type": "lifespan"}, receive, send)
    assert order == [
        "planner opens, transport open: True",
        "lifespan.startup.complete",
        "planner closes, transport open: True",
        "lifespan.shutdown.complete",
    ]
    assert not transport.is_open


async def test_a_websocket_scope_of_another_server_is_closed() -> None:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    await create_app(SETTINGS, transport=Memory([]))({"type": "websocket"}, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008, "reason": "WebSockets are not proxied"}]
