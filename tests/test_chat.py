import asyncio
import json
from typing import Any

import pytest
from support.memory import Canned, Memory, Response, call, scope_of

from policies.request import ChatRequest
from proxy.app import create_app
from proxy.errors import BrokenOff, Disconnected, TimedOut, UpstreamError
from proxy.planner import Call, Outcome, Untouched
from proxy.refusals import Answer
from proxy.settings import Settings
from proxy.upstream import Outgoing, Reply

SETTINGS = Settings.load(upstream="http://a.test/v1")
BODY = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}).encode()
JSON = [(b"Content-Type", b"application/json")]
EVENTS = [(b"Content-Type", b"text/event-stream")]


class Scripted(Untouched):
    """A planner that comes to what it is told, and keeps what it was shown."""

    def __init__(self, outcome: Outcome | Exception | None = None) -> None:
        self._outcome = outcome
        self.calls: list[Call] = []
        self.statuses: list[int] = []
        self.ends: list[tuple[Outcome, int, dict[str, Any] | None]] = []

    async def plan(self, request: ChatRequest, call: Call) -> Outcome:
        self.calls.append(call)
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome or Outcome(request.body)

    def answered(self, outcome: Outcome, status: int) -> None:  # noqa: ARG002 - the protocol's
        assert not self.ends
        self.statuses.append(status)

    def finished(self, outcome: Outcome, status: int, usage: dict[str, Any] | None) -> None:
        self.ends.append((outcome, status, usage))


async def ask(transport: Memory, planner: Untouched, *headers: tuple[bytes, bytes]) -> Response:
    app = create_app(SETTINGS, transport=transport, planner=planner)
    return await call(app, scope_of("POST", "/v1/chat/completions", *headers), BODY)


async def test_an_untouched_body_leaves_as_the_object_that_came_in() -> None:
    transport = Memory([Canned(200, JSON, b"{}")])
    response = await ask(transport, Untouched())
    assert response.status == 200
    assert transport.sent[0].body is BODY


async def test_a_plan_decides_what_is_forwarded_and_reported() -> None:
    transport, planner = (
        Memory([Canned(200, JSON, b"{}")]),
        Scripted(Outcome(b"edited", [(b"edgewise-tokens", b"a=1")])),
    )
    response = await ask(transport, planner)
    assert transport.sent[0].body == b"edited"
    assert (b"edgewise-tokens", b"a=1") in response.headers


async def test_the_planner_is_told_whose_request_it_is() -> None:
    planner = Scripted()
    await ask(Memory([Canned(200)]), planner, (b"edgewise-session", b"s"), (b"authorization", b"Bearer k"))
    seen = planner.calls[0]
    assert seen.header(b"edgewise-session") == "s"
    assert seen.header(b"edgewise-user") is None
    assert seen.upstream.name == "a.test"
    assert seen.id.startswith("ew_")
    assert len(seen.tenant) == 32


async def test_a_refusal_is_answered_and_nothing_is_sent() -> None:
    refusal = Answer(400, [(b"content-type", b"application/json")], b'{"error":{}}')
    transport, planner = Memory([]), Scripted(Outcome(b"", [(b"edgewise-budget", b"b=1")], refusal))
    response = await ask(transport, planner)
    assert (response.status, response.body) == (400, b'{"error":{}}')
    assert (b"edgewise-budget", b"b=1") in response.headers
    assert transport.sent == []
    assert planner.ends[0][1:] == (400, None)


async def test_a_broken_planner_is_counted_and_the_received_bytes_go_out() -> None:
    transport = Memory([Canned(200, JSON, b"{}")])
    app = create_app(SETTINGS, transport=transport, planner=Scripted(ZeroDivisionError("secret prompt")))
    response = await call(app, scope_of("POST", "/v1/chat/completions"), BODY)
    assert response.status == 200
    assert transport.sent[0].body is BODY
    assert app.state.registry.get_sample_value("edgewise_planner_failures_total") == 1


async def test_a_planner_that_breaks_at_the_end_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    class Breaks(Untouched):
        def answered(self, outcome: Outcome, status: int) -> None:  # noqa: ARG002 - the protocol's
            raise KeyError("secret prompt")

        def finished(self, outcome: Outcome, status: int, usage: dict[str, Any] | None) -> None:  # noqa: ARG002 - the protocol's
            raise ZeroDivisionError("secret prompt")

    response = await ask(Memory([Canned(200, JSON, b"{}")]), Breaks())
    assert (response.status, response.complete) == (200, True)
    assert "KeyError" in caplog.text
    assert "ZeroDivisionError" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize(
    ("reply", "status", "usage"),
    [
        (Canned(200, JSON, b'{"usage":', b'{"a":1}}'), 200, {"a": 1}),
        (Canned(200, EVENTS, b'data: {"usage":{"a":2}}\n\n', b"data: [DONE]\n\n"), 200, {"a": 2}),
        (Canned(200, EVENTS, b"data: {}\n\n"), 200, None),
        (Canned(400, JSON, b'{"usage":{"a":1}}'), 400, None),
        (Canned(200, [*JSON, (b"content-encoding", b"gzip")], b'{"usage":{"a":1}}'), 200, None),
        (Canned(200, EVENTS, b'data: {"usage":{"a":2}}\n\n', BrokenOff("x")), 599, None),
        (Disconnected("x"), 502, None),
        (TimedOut("x"), 504, None),
    ],
)
async def test_the_planner_hears_how_it_ended(
    reply: Canned | UpstreamError, status: int, usage: dict[str, int] | None
) -> None:
    planner = Scripted()
    await ask(Memory([reply]), planner)
    assert [(end[1], end[2]) for end in planner.ends] == [(status, usage)]


@pytest.mark.parametrize(
    ("replies", "statuses"),
    [
        ([Canned(200, JSON, b"{}")], [200]),
        ([Canned(200, EVENTS, b"data: {}\n\n", BrokenOff("x"))], [200]),
        ([Canned(400, JSON, b"{}")], [400]),
        ([Disconnected("x")], []),
    ],
)
async def test_the_planner_hears_the_upstreams_own_status_before_how_it_ended(
    replies: list[Canned | UpstreamError], statuses: list[int]
) -> None:
    planner = Scripted()
    await ask(Memory(replies), planner)
    assert planner.statuses == statuses
    assert len(planner.ends) == 1


async def test_a_client_that_leaves_during_planning_stops_it() -> None:
    class Slow(Scripted):
        async def plan(self, request: ChatRequest, call: Call) -> Outcome:
            self.calls.append(call)
            left.set()
            await asyncio.Event().wait()
            return Outcome(request.body)

    left, transport, planner = asyncio.Event(), Memory([]), Slow()
    app = create_app(SETTINGS, transport=transport, planner=planner)
    response = await call(app, scope_of("POST", "/v1/chat/completions"), BODY, leaves=left)
    assert response.messages == []
    assert transport.sent == []
    assert (len(planner.calls), planner.ends) == (1, [])


async def test_a_client_that_leaves_before_the_answer_is_reported_as_499() -> None:
    class Silent(Memory):
        async def send(self, outgoing: Outgoing) -> Reply:
            left.set()
            await asyncio.Event().wait()
            return await super().send(outgoing)

    left, planner = asyncio.Event(), Scripted()
    app = create_app(SETTINGS, transport=Silent([]), planner=planner)
    response = await call(app, scope_of("POST", "/v1/chat/completions"), BODY, leaves=left)
    assert response.messages == []
    assert planner.ends[0][1:] == (499, None)


async def test_a_large_body_is_opened_off_the_event_loop_and_leaves_as_it_came() -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * 600_000}]}).encode()
    transport = Memory([Canned(200)])
    app = create_app(SETTINGS, transport=transport)
    await call(app, scope_of("POST", "/v1/chat/completions"), body)
    assert transport.sent[0].body is body


async def test_a_broken_html_page_is_a_502() -> None:
    page = Canned(503, [(b"content-type", b"text/html")], b"<html>", BrokenOff("x"))
    response = await ask(Memory([page]), Untouched())
    assert response.status == 502
