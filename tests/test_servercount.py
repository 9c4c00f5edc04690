"""Counts by the server's own template and tokenizer: right, remembered, and never in the way."""

import asyncio
import json

import httpx2
import pytest
from support.counting_server import LLAMACPP, VLLM, Script, Server, unreachable

from policies.request import ChatRequest, Prompt
from proxy.discovery import Discovery
from proxy.servercount import LONGEST_PAUSE, PATIENCE, PAUSE, ServerCount, digest, request_of

LOCAL = "http://127.0.0.1:8000/v1"
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def prompt_of(**fields: object) -> Prompt:
    body = {"model": "m", "messages": [{"role": "user", "content": "one two three"}], **fields}
    return ChatRequest.parse(json.dumps(body).encode()).prompt


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def counter_at(server: Server, clock: Clock | None = None, deadline: float = 60) -> ServerCount:
    client, clock = server.client(), clock or Clock()
    upstream = Discovery(LOCAL, client, first_wait=60, clock=clock)
    return ServerCount(upstream, client, deadline=deadline, clock=clock)


async def test_vllm_counts_messages_and_tools_in_one_question() -> None:
    server = Server(VLLM)
    assert await counter_at(server).count(prompt_of(tools=[TOOL])) == 14  # 6 words and 8
    assert server.paths()[-1] == "POST /tokenize"
    assert json.loads(server.seen[-1].content)["tools"] == [TOOL]


async def test_llamacpp_renders_and_then_counts_with_special_tokens() -> None:
    server = Server(LLAMACPP)
    assert await counter_at(server).count(prompt_of(tools=[TOOL])) == 6
    assert server.paths()[-2:] == ["POST /apply-template", "POST /tokenize"]
    assert json.loads(server.seen[-1].content) == {
        "content": "<s> user one two three t ",
        "add_special": True,
        "parse_special": True,
    }


async def test_a_prompt_is_asked_for_once() -> None:
    server = Server(VLLM)
    counter = counter_at(server)
    assert await counter.count(prompt_of()) == await counter.count(prompt_of())
    assert counter.outcomes == {"answered": 1, "memo": 1}


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": [TOOL]},
        {"model": "other"},
        {"messages": []},
        {"tool_choice": "none"},
        {"response_format": {"type": "json_object"}},
    ],
)
def test_prompts_that_render_differently_are_told_apart(fields: dict[str, object]) -> None:
    assert digest(prompt_of(**fields)) != digest(prompt_of())


def test_the_question_carries_the_bytes_of_the_request() -> None:
    body = b'{"messages":[{"role":"user","content":"a","x":1e5}],"tools":[{"a": 1}],"model":"m","tool_choice":"auto"}'
    asked = request_of(ChatRequest.parse(body).prompt)
    assert asked == (
        b'{"model":"m","messages":[{"role":"user","content":"a","x":1e5}],"tools":[{"a": 1}],"tool_choice":"auto"}'
    )


async def test_a_server_without_counting_endpoints_is_skipped() -> None:
    server = Server({})
    counter = counter_at(server)
    await counter.count(prompt_of())
    asked = len(server.seen)
    assert await counter.count(prompt_of()) is None
    assert len(server.seen) == asked
    assert counter.outcomes == {"skipped": 2}


@pytest.mark.parametrize("status", [400, 401, 403, 413, 422])
async def test_a_refusal_of_one_prompt_or_key_is_no_count_and_blames_nobody(status: int) -> None:
    server = Server(VLLM)
    counter = counter_at(server)
    assert await counter.count(prompt_of()) is not None
    server.script = {"POST /tokenize": (status, {"error": {"message": "System message must be at the beginning"}})}
    for turn in range(2 * PATIENCE):
        assert await counter.count(prompt_of(messages=[{"role": "user", "content": str(turn)}])) is None
    assert counter.outcomes == {"answered": 1, "refused": 2 * PATIENCE}


@pytest.mark.parametrize(
    "script",
    [
        {},
        {"POST /tokenize": (500, "down")},
        {"POST /tokenize": (200, b"<html>")},
        {"POST /tokenize": (200, {"count": "12"})},
        {"POST /tokenize": (200, b'"\xff"')},
        {"POST /tokenize": (503, {})},
    ],
)
async def test_a_server_that_fails_is_left_alone_for_a_while(script: Script) -> None:
    clock, server = Clock(), Server(VLLM)
    counter = counter_at(server, clock)
    await counter.count(prompt_of())
    server.script = script
    fresh = prompt_of(model="not yet counted")
    for _ in range(PATIENCE + 2):
        assert await counter.count(fresh) is None
    assert counter.outcomes == {"answered": 1, "failed": PATIENCE, "skipped": 2}
    clock.now = PAUSE
    server.script = VLLM
    assert await counter.count(fresh) is not None


async def test_pauses_grow_to_a_bound() -> None:
    clock, server = Clock(), Server(VLLM)
    counter = counter_at(server, clock)
    await counter.count(prompt_of())
    server.script = {}
    for _ in range(20):
        clock.now += LONGEST_PAUSE
        await counter.count(prompt_of(model="other"))
    assert counter.outcomes["failed"] == 20


async def test_a_slow_server_is_not_waited_for_past_the_deadline() -> None:
    server = Server(VLLM)
    counter = counter_at(server, deadline=0.01)
    await counter.count(prompt_of())
    server.delay = 3600
    assert await counter.count(prompt_of(model="other")) is None
    assert counter.outcomes["failed"] >= 1


async def test_where_nobody_listens_there_is_no_count() -> None:
    client = httpx2.AsyncClient(transport=httpx2.MockTransport(unreachable))
    counter = ServerCount(Discovery(LOCAL, client, first_wait=60), client)
    assert await counter.count(prompt_of()) is None


async def test_cancellation_is_not_swallowed() -> None:
    server = Server(VLLM)
    counter = counter_at(server)
    await counter.count(prompt_of())
    server.delay = 3600
    waiting = asyncio.create_task(counter.count(prompt_of(model="other")))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_the_key_goes_with_the_question() -> None:
    server = Server(VLLM)
    await counter_at(server).count(prompt_of(), {"authorization": "Bearer k"})
    assert server.seen[-1].headers["authorization"] == "Bearer k"
    assert server.seen[-1].headers["content-type"] == "application/json"
