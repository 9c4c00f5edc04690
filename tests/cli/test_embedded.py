import json
from collections.abc import AsyncIterator
from typing import Any, cast

import httpx2
import pytest
from support.plans import engine, small

from policies.messages import Call
from policies.request import ChatRequest
from proxy import ranks
from proxy.cli.embedded import MODEL, Embedded, Said, Tokens, echo

TOKENS = Tokens(
    lambda request: engine().counter(request.model).bill(request.prompt).total,
    lambda text: ranks.load("o200k_base").count(text),
)
CALL = Call("call_1", "read_log", '{"station": 7, "lines": 3}')


def client(app: Embedded) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=cast("Any", app)), base_url="http://embedded")


@pytest.fixture
async def upstream() -> AsyncIterator[httpx2.AsyncClient]:
    async with client(Embedded(TOKENS)) as opened:
        yield opened


async def ask(upstream: httpx2.AsyncClient, request: ChatRequest) -> Any:
    response = await upstream.post("/v1/chat/completions", content=request.body)
    assert response.status_code == 200
    return response.json()


async def events(upstream: httpx2.AsyncClient, request: ChatRequest) -> list[Any]:
    response = await upstream.post("/v1/chat/completions", content=request.body)
    assert response.headers["content-type"].startswith("text/event-stream")
    parts = response.text.split("\n\n")
    assert parts[-2:] == ["data: [DONE]", ""]
    return [json.loads(part.removeprefix("data: ")) for part in parts[:-2]]


async def test_it_says_that_it_is_no_model_and_what_arrived(upstream: httpx2.AsyncClient) -> None:
    told = await ask(upstream, small())
    said = told["choices"][0]["message"]["content"]
    assert said.startswith("This is Edgewise's embedded upstream, not a model")
    assert "2 messages and 1 tool came, 57 prompt tokens in all." in said
    assert '"Which station?"' in said
    assert told["choices"][0]["finish_reason"] == "stop"


async def test_its_usage_is_counted(upstream: httpx2.AsyncClient) -> None:
    told = await ask(upstream, small())
    completion = ranks.load("o200k_base").count(told["choices"][0]["message"]["content"])
    assert told["usage"] == {"prompt_tokens": 57, "completion_tokens": completion, "total_tokens": 57 + completion}


async def test_a_stream_joins_to_the_same_answer(upstream: httpx2.AsyncClient) -> None:
    whole = (await ask(upstream, small()))["choices"][0]["message"]["content"]
    told = await events(upstream, small(stream=True, stream_options={"include_usage": True}))
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in told[:-1]) == whole
    assert told[-2]["choices"][0]["finish_reason"] == "stop"
    assert (told[-1]["choices"], told[-1]["usage"]["prompt_tokens"]) == ([], 57)


async def test_a_script_may_call_tools_streamed_or_not() -> None:
    async with client(Embedded(TOKENS, lambda _request, _tokens: Said(calls=(CALL,)))) as upstream:
        told = (await ask(upstream, small()))["choices"][0]
        streamed = await events(upstream, small(stream=True))
    assert told["finish_reason"] == streamed[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert told["message"]["content"] is None
    function = {"name": CALL.name, "arguments": CALL.arguments}
    assert told["message"]["tool_calls"] == [{"id": CALL.id, "type": "function", "function": function}]
    deltas = [delta for chunk in streamed for delta in chunk["choices"][0]["delta"].get("tool_calls", ())]
    assert "".join(delta["function"]["arguments"] for delta in deltas) == CALL.arguments


async def test_what_is_over_its_window_is_refused() -> None:
    async with client(Embedded(TOKENS, window=50)) as upstream:
        response = await upstream.post("/v1/chat/completions", content=small().body)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "context_length_exceeded"


async def test_it_lists_one_model_with_its_window(upstream: httpx2.AsyncClient) -> None:
    (listed,) = (await upstream.get("/v1/models")).json()["data"]
    assert (listed["id"], listed["max_model_len"]) == (MODEL, 16_384)


async def test_other_paths_and_bad_bodies_are_refused_in_openais_shape(upstream: httpx2.AsyncClient) -> None:
    missing = await upstream.post("/v1/embeddings", content=b"{}")
    broken = await upstream.post("/v1/chat/completions", content=b"{")
    assert (missing.status_code, broken.status_code) == (404, 400)
    assert missing.json()["error"]["code"] == "not_found"
    assert "JSON" in broken.json()["error"]["message"]


def test_long_words_are_quoted_in_part_and_none_not_at_all() -> None:
    long = ChatRequest.parse(json.dumps({"messages": [{"role": "user", "content": "a" * 500}]}).encode())
    assert '"' + "a" * 120 + '..."' in echo(long, 1).text
    assert "Your last words" not in echo(ChatRequest.parse(b'{"messages": []}'), 1).text
