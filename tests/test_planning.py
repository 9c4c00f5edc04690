import asyncio
import json
from typing import Any

import httpx2
import pytest
from support import plans
from support.memory import Canned, Memory, Response, call, scope_of

from policies.pipeline import Planning as Steps
from policies.request import ChatRequest
from proxy.app import create_app
from proxy.engine import Engine
from proxy.planning import Planning, planner_of
from proxy.policyfile import load
from proxy.settings import Settings

JSON = [(b"content-type", b"application/json")]
OVERFLOW = b'{"error":{"message":"This model\'s maximum context length is 3000 tokens. However, ..."}}'


def silent() -> httpx2.AsyncClient:
    """An upstream whose control plane knows nothing."""
    return httpx2.AsyncClient(transport=httpx2.MockTransport(lambda _request: httpx2.Response(404)))


class Proxy:
    """The app with its real planner, in front of canned replies."""

    def __init__(self, client: httpx2.AsyncClient | None = None, **settings: Any) -> None:
        given = Settings.load(**{"upstream": "http://a.test/v1", **settings})
        self.planner = Planning(given, Engine(given, load(given.policy)), client or silent())
        self.memory = Memory([])
        self.app = create_app(given, transport=self.memory, planner=self.planner)

    async def ask(self, request: ChatRequest, *replies: Canned) -> Response:
        self.memory.replies[:] = replies or [Canned(200, JSON, b'{"usage":{"prompt_tokens":9,"completion_tokens":1}}')]
        return await call(self.app, scope_of("POST", "/v1/chat/completions"), request.body)

    def sent(self, index: int) -> bytes:
        body = self.memory.sent[index].body
        assert isinstance(body, bytes)
        return body

    def sample(self, name: str, **labels: str) -> float | None:
        return self.app.state.registry.get_sample_value(name, labels)


def told(response: Response, name: bytes) -> str:
    return dict(response.headers)[name].decode()


async def test_a_request_that_fits_leaves_as_the_object_that_came_in() -> None:
    proxy, request = Proxy(window=8_000), plans.small()
    response = await proxy.ask(request)
    assert proxy.memory.sent[0].body is request.body
    assert told(response, b"edgewise-budget").endswith("level=none")
    assert "tools=" in told(response, b"edgewise-tokens")


async def test_a_long_request_is_made_to_fit_and_the_headers_say_so() -> None:
    proxy, request = Proxy(window=4_000), plans.long()
    response = await proxy.ask(request)
    assert len(proxy.sent(0)) < len(request.body)
    budget = dict(part.split("=") for part in told(response, b"edgewise-budget").split(", "))
    assert int(budget["sent"]) <= int(budget["limit"]) < int(budget["received"])
    assert proxy.sample("edgewise_requests_total", level="tool_results", outcome="edited") == 1


async def test_what_cannot_fit_is_refused_before_the_upstream_is_asked() -> None:
    proxy = Proxy(window=2_000)
    response = await proxy.ask(plans.hopeless())
    error = json.loads(response.body)["error"]
    assert (response.status, error["code"], proxy.memory.sent) == (400, "context_length_exceeded", [])
    assert all(unit["tokens"] <= error["edgewise"]["limit"] for unit in error["edgewise"]["units"])


async def test_observing_plans_beside_untouched_traffic() -> None:
    proxy, request = Proxy(window=4_000, mode="observe"), plans.long()
    response = await proxy.ask(request)
    assert proxy.memory.sent[0].body is request.body
    assert "planned=" in told(response, b"edgewise-budget")


async def test_report_headers_can_be_switched_off() -> None:
    response = await Proxy(window=8_000, report_headers=False).ask(plans.small())
    assert not [name for name, _ in response.headers if name in (b"edgewise-tokens", b"edgewise-budget")]


async def test_a_window_that_nobody_knows_is_learned_from_the_upstreams_own_error() -> None:
    proxy, request = Proxy(), plans.long(model="nobody-knows")
    first = await proxy.ask(request, Canned(400, JSON, OVERFLOW))
    assert (first.status, first.body) == (400, OVERFLOW)
    assert "limit" not in told(first, b"edgewise-budget")
    second = await proxy.ask(request)
    assert second.status == 200
    assert "limit=" in told(second, b"edgewise-budget")
    assert len(proxy.sent(1)) < len(request.body)


async def test_a_server_that_counts_is_believed() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/tokenize":
            return httpx2.Response(200, json={"count": 1_234, "max_model_len": 8_000})
        return httpx2.Response(200, json={"data": [{"id": "m", "max_model_len": 8_000}]})

    proxy = Proxy(httpx2.AsyncClient(transport=httpx2.MockTransport(answer)))
    response = await proxy.ask(plans.small(model="m"))
    assert told(response, b"edgewise-budget").startswith("received=1234, sent=1234, limit=")
    assert "estimated" not in told(response, b"edgewise-budget")


class Broken(Engine):
    def planning(self, *_: object, **__: object) -> Steps:
        raise ZeroDivisionError(plans.SECRET)


async def test_planning_that_breaks_falls_back_to_the_last_steps(caplog: pytest.LogCaptureFixture) -> None:
    proxy = Proxy(window=4_000)
    proxy.planner.engine = Broken(Settings.load(), load("balanced"))
    response = await proxy.ask(plans.long())
    assert response.status == 200
    budget = dict(part.split("=") for part in told(response, b"edgewise-budget").split(", "))
    assert int(budget["sent"]) <= int(budget["limit"])
    assert proxy.sample("edgewise_fallbacks_total", sent="emergency") == 1
    assert plans.SECRET not in caplog.text


async def test_requests_are_kept_for_their_own_tenant_without_their_text() -> None:
    proxy = Proxy(window=4_000)
    await proxy.ask(plans.long())
    listed = await call(proxy.app, scope_of("GET", "/context/requests"), b"")
    assert listed.status == 200
    assert plans.SECRET.encode() not in listed.body
    other = await call(proxy.app, scope_of("GET", "/context/requests", (b"authorization", b"Bearer other")), b"")
    assert json.loads(listed.body)["requests"] != []
    assert json.loads(other.body)["requests"] == []


async def test_it_is_ready_once_the_tokenizer_is_loaded() -> None:
    planner = planner_of(Settings.load(upstream="http://a.test/v1"))
    await planner.open()
    for _ in range(200):
        if planner.ready():
            break
        await asyncio.sleep(0.05)
    assert planner.ready()
    await planner.close()


async def test_an_inbound_key_stays_here_and_the_callers_own_key_speaks_for_it() -> None:
    seen: list[str | None] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.headers.get("authorization"))
        return httpx2.Response(404)

    for inbound, expected in (("ours", None), (None, "Bearer ours")):
        seen.clear()
        proxy = Proxy(httpx2.AsyncClient(transport=httpx2.MockTransport(answer)), inbound_keys=inbound)
        scope = scope_of("POST", "/v1/chat/completions", (b"authorization", b"Bearer ours"))
        proxy.memory.replies[:] = [Canned(200, JSON, b"{}")]
        await call(proxy.app, scope, plans.small(model="nobody-knows").body)
        assert set(seen) == {expected}


@pytest.mark.parametrize("mode", ["enforce", "observe"])
async def test_a_message_nested_too_deep_to_be_planned_is_refused(mode: str) -> None:
    proxy = Proxy(window=4_000, mode=mode)
    raw = b'{"model":"gpt-4o","messages":[{"role":"user","content":' + b"[" * 501 + b"]" * 501 + b"}]}"
    response = await proxy.ask(ChatRequest.parse(raw))
    assert response.status == 400
    assert "nested deeper than 500 levels" in json.loads(response.body)["error"]["message"]
    assert proxy.memory.sent == []


@pytest.mark.parametrize("field", ["model", "prompt_cache_key", "user"])
async def test_a_lone_surrogate_in_a_name_breaks_no_plan(field: str) -> None:
    proxy = Proxy(window=4_000)
    fields: dict[str, Any] = {field: "gpt-4o\ud800"}
    response = await proxy.ask(plans.long(**fields))
    assert "sent=" in told(response, b"edgewise-budget")
    assert proxy.sample("edgewise_planner_failures_total") == 0
