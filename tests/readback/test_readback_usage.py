import json
from typing import Any

import pytest
from support.memory import Canned, Memory, Response, call, scope_of
from support.reading import answer, streamed
from support.rounds import read

from policies.request import ChatRequest
from proxy.app import create_app
from proxy.planner import Call, Outcome, Untouched
from proxy.readback.usage import is_usage_alone, summed
from proxy.settings import Settings

EVENTS = [(b"content-type", b"text/event-stream")]
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1,"total_tokens":8}}\n\n'
SAID = b'data: {"id":"c","created":1,"model":"m","choices":[{"delta":{"content":"so"}}],"usage":null}\n\n'
DONE = b"data: [DONE]\n\n"


class Quieted(Untouched):
    """Asks for usage where the client did not."""

    def __init__(self) -> None:
        self.usage: dict[str, Any] | None = None

    async def plan(self, request: ChatRequest, call: Call) -> Outcome:  # noqa: ARG002 - the protocol's signature
        return Outcome(request.body, hides_usage=True)

    def finished(self, outcome: Outcome, status: int, usage: dict[str, Any] | None) -> None:  # noqa: ARG002 - likewise
        self.usage = usage


async def ask(planner: Untouched, reply: Canned) -> Response:
    app = create_app(Settings.load(upstream="http://a.test/v1"), transport=Memory([reply]), planner=planner)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}).encode()
    return await call(app, scope_of("POST", "/v1/chat/completions"), body)


@pytest.mark.parametrize("knows_its_end", [False, True])
@pytest.mark.parametrize("cut", [0, 1, 40, 60, 100, 130, 190])
async def test_the_chunk_that_only_we_asked_for_is_left_out_and_read(cut: int, knows_its_end: bool) -> None:
    raw, planner = SAID + USAGE + DONE, Quieted()
    pieces = [piece for piece in (raw[:cut], raw[cut:]) if piece]
    reply = Canned(200, [*EVENTS, (b"content-length", b"%d" % len(raw))], *pieces)
    reply.knows_its_end = knows_its_end
    got = await ask(planner, reply)
    assert (got.body, got.complete) == (SAID + DONE, True)
    assert b"content-length" not in dict(got.headers)
    assert planner.usage == {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8}
    assert reply.closed


def test_only_a_chunk_that_tells_usage_and_nothing_else_is_left_out() -> None:
    assert is_usage_alone(USAGE)
    assert not is_usage_alone(SAID)
    assert not is_usage_alone(b'data: {"choices":[],"usage":null,"prompt_filter_results":[{"prompt_index":0}]}\n\n')


async def test_what_does_not_end_in_a_blank_line_is_not_lost() -> None:
    for knows_its_end in (False, True):
        reply = Canned(200, EVENTS, SAID, b"data: [DONE]")
        reply.knows_its_end = knows_its_end
        assert (await ask(Quieted(), reply)).body == SAID + b"data: [DONE]"


async def test_usage_inside_an_answer_or_in_a_form_that_cannot_be_read_is_left_alone() -> None:
    whole = b'{"choices":[],"usage":{"prompt_tokens":7}}'
    assert (await ask(Quieted(), Canned(200, [(b"content-type", b"application/json")], whole))).body == whole
    compressed = Canned(200, [*EVENTS, (b"content-encoding", b"gzip")], USAGE)
    assert (await ask(Quieted(), compressed)).body == USAGE


def test_only_a_chunk_without_choices_is_the_extra_one() -> None:
    assert is_usage_alone(USAGE)
    assert is_usage_alone(USAGE.replace(b'"choices":[]', b'"choices" : [ ]'))
    assert not is_usage_alone(SAID)
    assert not is_usage_alone(b'data: {"choices":[],"prompt_filter_results":[]}\n\n')
    assert not is_usage_alone(b'data: {"choices":[{"delta":{"content":"\\"usage\\""}}]}\n\n')


def test_the_usage_of_one_round_is_the_upstreams_own() -> None:
    alone = {"prompt_tokens": 7, "completion_tokens": 1, "x": None}
    assert summed([alone]) is alone


def test_details_of_completions_are_added_up_and_those_of_prompts_are_the_last() -> None:
    first = {
        "prompt_tokens": 100,
        "completion_tokens": 7,
        "total_tokens": 107,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 3, "kind": "a", "is_x": True},
    }
    last = {
        "prompt_tokens": 180,
        "completion_tokens": 5,
        "total_tokens": 185,
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens_details": {"reasoning_tokens": 2, "kind": "b", "is_x": True},
    }
    told = summed([first, last])
    assert told["prompt_tokens_details"] == {"cached_tokens": 64}
    assert told["completion_tokens_details"] == {"reasoning_tokens": 5, "kind": "b", "is_x": True}
    assert (told["prompt_tokens"], told["completion_tokens"], told["total_tokens"]) == (180, 12, 192)


def test_a_round_that_told_nothing_counts_nothing() -> None:
    last = {"prompt_tokens": 180, "completion_tokens": 5, "total_tokens": 185}
    told = summed([{}, {**last, "prompt_tokens": None}, last])
    assert told["edgewise"]["completion_tokens"] == 10
    assert "completion_tokens_details" not in told


async def test_the_planner_of_a_plain_stream_hears_its_usage_as_ever() -> None:
    planner, raw = Quieted(), streamed(answer("7"))[0]
    got = await ask(planner, Canned(200, EVENTS, raw))
    assert read(got.body).usage == []
    assert planner.usage == {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}
