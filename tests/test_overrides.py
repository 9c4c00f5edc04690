"""What a request may ask for by its headers and annotations, through the whole app."""

import json
from pathlib import Path
from typing import Any

import pytest
from support import plans
from support.memory import Canned, Memory, Response, call, scope_of

from policies.request import ChatRequest
from proxy.app import create_app
from proxy.planning import planner_of
from proxy.settings import Settings

JSON = [(b"content-type", b"application/json")]


class Proxy:
    def __init__(self, **settings: Any) -> None:
        given = Settings.load(**{"upstream": "http://a.test/v1", "window": 4_000, **settings})
        self.memory = Memory([])
        self.app = create_app(given, transport=self.memory, planner=planner_of(given))

    async def ask(self, request: ChatRequest, *headers: tuple[bytes, bytes]) -> Response:
        self.memory.replies[:] = [Canned(200, JSON, b"{}")]
        return await call(self.app, scope_of("POST", "/v1/chat/completions", *headers), request.body)

    @property
    def sent(self) -> bytes:
        body = self.memory.sent[-1].body
        assert isinstance(body, bytes)
        return body

    async def last(self) -> dict[str, Any]:
        listed = await call(self.app, scope_of("GET", "/context/requests"))
        told: dict[str, Any] = json.loads(listed.body)["requests"][0]
        return told


async def test_a_policy_on_the_list_plans_the_request_that_asks_for_it() -> None:
    proxy = Proxy(policies=("frugal", "lossless"))
    assert (await proxy.ask(plans.long(), (b"edgewise-policy", b"lossless"))).status == 400
    assert (await proxy.last())["policy"] == "lossless"
    assert (await proxy.ask(plans.long())).status == 200
    assert (await proxy.last())["policy"] == "balanced"
    assert not [name for name, _ in proxy.memory.sent[-1].headers if name.startswith(b"edgewise")]


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ((b"edgewise-policy", b"frugal"), "unknown_policy"),
        ((b"edgewise-mode", b"observe"), "mode_not_allowed"),
        ((b"edgewise-mode", b"off"), "unknown_mode"),
    ],
)
async def test_what_may_not_be_asked_for_is_refused_in_the_shape_of_the_api(
    header: tuple[bytes, bytes], code: str
) -> None:
    proxy = Proxy()
    response = await proxy.ask(plans.small(), header)
    error = json.loads(response.body)["error"]
    assert (response.status, error["code"], error["type"]) == (400, code, "invalid_request_error")
    assert proxy.memory.sent == []


async def test_a_request_may_ask_to_be_only_observed_where_that_is_allowed() -> None:
    proxy, request = Proxy(allow_observe=True), plans.long()
    response = await proxy.ask(request, (b"edgewise-mode", b"observe"))
    assert proxy.sent == request.body
    assert "planned=" in dict(response.headers)[b"edgewise-budget"].decode()
    assert (await proxy.last())["mode"] == "observe"


async def test_annotations_never_reach_the_upstream_even_where_only_observed() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Likes tea.", "edgewise": {"bucket": "memory"}},
        {"role": "user", "content": [{"type": "text", "text": "Which?", "edgewise": {"evict": "pinned"}}]},
    ]
    for mode in ("enforce", "observe"):
        proxy = Proxy(mode=mode)
        response = await proxy.ask(plans.request(messages))
        assert b"edgewise" not in proxy.sent
        assert json.loads(proxy.sent)["messages"][0] == {"role": "system", "content": "Likes tea."}
        assert "memory=" in dict(response.headers)[b"edgewise-tokens"].decode()


async def test_an_annotation_that_cannot_be_followed_is_refused() -> None:
    proxy = Proxy()
    response = await proxy.ask(plans.request([{"role": "user", "content": "a", "edgewise": {"evict": "never"}}]))
    assert (response.status, proxy.memory.sent) == (400, [])
    assert json.loads(response.body)["error"]["message"].startswith("'messages[0].edgewise': Invalid enum value")


async def test_a_sketch_is_made_by_the_route_and_the_header_like_the_request_itself(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        'version = 1\nname = "own"\n[[route]]\nmodel = "gpt-*"\npolicy = "classic"\n', "utf-8"
    )
    proxy = Proxy(policy=str(tmp_path / "own.toml"), policies=("frugal",))

    async def sketched(*headers: tuple[bytes, bytes], **fields: Any) -> Response:
        return await call(proxy.app, scope_of("POST", "/context/plan", *headers), plans.small(**fields).body)

    assert json.loads((await sketched()).body)["policy"] == "classic"
    assert json.loads((await sketched(model="qwen3")).body)["policy"] == "own"
    assert json.loads((await sketched((b"edgewise-policy", b"frugal"))).body)["policy"] == "frugal"
    assert (await sketched((b"edgewise-policy", b"lossless"))).status == 400
    await proxy.ask(plans.small())
    assert (await proxy.last())["policy"] == "classic"
