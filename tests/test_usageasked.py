"""Usage is asked for of edited streams alone, and an upstream that knows no such field gets the request without."""

import json
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from support.memory import Canned, Memory, Response, call, scope_of
from support.prompts import body, user

from policies.request import ChatRequest, Item, Prompt
from proxy.app import create_app
from proxy.errors import BrokenOff
from proxy.planner import Call, Outcome, Untouched
from proxy.settings import Settings
from proxy.usageasked import UsageAsked, asking, is_about_usage

JSON, EVENTS = [(b"content-type", b"application/json")], [(b"content-type", b"text/event-stream")]
REFUSAL = b'{"error":{"message":"Unrecognized request argument supplied: stream_options"}}'
SAID = b'data: {"choices":[{"delta":{"content":"so"}}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":7}}\n\n'


def asked(**fields: Any) -> ChatRequest:
    return ChatRequest.parse(body([user("a"), user("b")], **fields))


def edited(request: ChatRequest) -> Prompt:
    return Prompt(request.model, (Item.of(b'{"role":"user","content":"c"}'),))


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (None, b'{"include_usage":true}'),
        (b"null", b'{"include_usage":true}'),
        (b"{}", b'{"include_usage":true}'),
        (b'{"include_usage": true}', None),
        (b'{"a":1e5, "include_usage":false}', b'{"a":1e5,"include_usage":true}'),
        (b'{"include_obfuscation": false}', b'{"include_obfuscation": false,"include_usage":true}'),
        (b'"on"', None),
        (b"[" * 600 + b"]" * 600, None),
    ],
)
def test_the_clients_own_options_stay(given: bytes | None, sent: bytes | None) -> None:
    assert asking(given) == sent


def test_only_an_edited_stream_asks_and_all_its_other_bytes_stay() -> None:
    usage = UsageAsked()
    request = asked(stream=True)
    got = usage.outcome(request, edited(request), "u")
    assert got.hides_usage
    assert got.body == request.forward(edited(request))[:-1] + b',"stream_options":{"include_usage":true}}'
    plain = asked()
    assert usage.outcome(plain, edited(plain), "u") == Outcome(plain.forward(edited(plain)))
    own = asked(stream=True, stream_options={"include_usage": True})
    assert usage.outcome(own, edited(own), "u") == Outcome(own.forward(edited(own)))


def test_what_is_not_edited_leaves_as_the_object_that_came_in() -> None:
    request = asked(stream=True)
    copy = Prompt(request.model, request.prompt.messages)
    for prompt in (request.prompt, copy):
        got = UsageAsked().outcome(request, prompt, "u")
        assert got.body is request.body
        assert not got.hides_usage


def test_an_upstream_that_refused_is_not_asked_again_and_the_others_are() -> None:
    usage, request, registry = UsageAsked(), asked(stream=True), CollectorRegistry()
    registry.register(usage)
    first = usage.outcome(request, edited(request), "deaf")
    assert first.unasked is not None
    assert first.unasked() == request.forward(edited(request))
    assert not usage.outcome(request, edited(request), "deaf").hides_usage
    assert usage.outcome(request, edited(request), "other").hides_usage
    found = {how: registry.get_sample_value("edgewise_usage_asked_total", {"outcome": how}) for how in HOW}
    assert found == {"asked": 2, "refused": 1}


HOW = ("asked", "refused")


def test_an_error_tells_by_the_fields_name() -> None:
    assert is_about_usage(REFUSAL)
    assert is_about_usage(b'{"detail":"extra fields not permitted: include_usage"}')
    assert not is_about_usage(b'{"error":{"message":"This model\'s maximum context length is 8192 tokens."}}')


class Edits(Untouched):
    """Edits each request, and keeps what it hears."""

    def __init__(self) -> None:
        self.usage = UsageAsked()
        self.ends: list[tuple[int, dict[str, Any] | None]] = []

    async def plan(self, request: ChatRequest, call: Call) -> Outcome:
        return self.usage.outcome(request, edited(request), call.upstream.name)

    def finished(self, outcome: Outcome, status: int, usage: dict[str, Any] | None) -> None:  # noqa: ARG002 - the protocol's
        self.ends.append((status, usage))


async def ask(planner: Edits, *replies: Canned) -> tuple[Response, Memory]:
    memory = Memory(list(replies))
    app = create_app(Settings.load(upstream="http://a.test/v1"), transport=memory, planner=planner)
    return await call(app, scope_of("POST", "/v1/chat/completions"), asked(stream=True).body), memory


def options(memory: Memory) -> list[object]:
    return [json.loads(one.body).get("stream_options") for one in memory.sent if isinstance(one.body, bytes)]


async def test_the_client_sees_no_chunk_that_it_did_not_ask_for_and_the_planner_hears_it() -> None:
    planner = Edits()
    got, memory = await ask(planner, Canned(200, EVENTS, SAID, USAGE))
    assert (got.body, planner.ends) == (SAID, [(200, {"prompt_tokens": 7})])
    assert options(memory) == [{"include_usage": True}]


@pytest.mark.parametrize("status", [400, 422])
async def test_where_the_upstream_knows_no_such_field_the_client_never_hears_of_it(status: int) -> None:
    planner, refused = Edits(), Canned(status, JSON, REFUSAL)
    got, memory = await ask(planner, refused, Canned(200, EVENTS, SAID))
    assert (got.status, got.body, refused.closed) == (200, SAID, True)
    assert options(memory) == [{"include_usage": True}, None]
    got, memory = await ask(planner, Canned(200, EVENTS, SAID))
    assert (got.status, options(memory)) == (200, [None])


async def test_any_other_refusal_goes_to_the_client_as_it_came() -> None:
    other = b'{"error":{"message":"temperature must not be negative"}}'
    got, memory = await ask(Edits(), Canned(400, JSON, other[:9], other[9:]))
    assert (got.status, got.body, len(memory.sent)) == (400, other, 1)
    got, memory = await ask(Edits(), Canned(400, JSON, REFUSAL), Canned(400, JSON, other))
    assert (got.status, got.body, len(memory.sent)) == (400, other, 2)


async def test_a_refusal_that_breaks_off_is_told_as_such() -> None:
    got, _ = await ask(Edits(), Canned(400, JSON, REFUSAL[:9], BrokenOff("gone")))
    assert got.status == 502
