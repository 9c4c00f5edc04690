"""Discovery: what upstreams tell of their windows and counting endpoints, asked politely and never in the way."""

import asyncio
import itertools
import json

import httpx2
import pytest
from support.counting_server import LLAMACPP, VLLM, Script, Server, unreachable

from policies.counting.windows import Window
from proxy.discovery import FRESH, LEARNED_FRESH, RETRY, Discovery, Found, Windows, hosted, told_limit

LOCAL = "http://127.0.0.1:8000/v1"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def found_at(script: Script, base: str = LOCAL) -> Found:
    return await Discovery(base, Server(script).client(), first_wait=60).found()


async def test_vllm_tells_its_window_and_that_it_counts() -> None:
    assert await found_at(VLLM) == Found({"Qwen/Qwen3-8B": 40960}, 40960, "vllm")


async def test_llamacpp_tells_its_window_at_the_root_and_the_slot_counts() -> None:
    found = await found_at(LLAMACPP)
    assert found == Found({"coder.gguf": 8192}, 4096, "llamacpp")
    assert found.window("coder.gguf") == 4096
    assert found.window("any-name") == 4096


async def test_of_several_models_only_those_that_are_named_have_a_window() -> None:
    rows = [{"id": "a", "context_length": 8192}, {"id": "b", "context_window": 16384}, {"id": "c"}, "noise"]
    found = await found_at({"GET /v1/models": (200, {"data": rows})})
    assert [found.window(name) for name in "abcd"] == [8192, 16384, None, None]


@pytest.mark.parametrize(
    "listed",
    [
        {"data": [{"id": "a", "max_model_len": True}]},
        {"data": [{"id": "a", "max_model_len": "4096"}]},
        {"data": [{"id": "a", "n_ctx": 0}]},
        {"data": None},
        ["a"],
        b"<html>not JSON</html>",
        b"\xff\xfe",
        b"[" * 5000,
    ],
)
async def test_nonsense_tells_nothing(listed: object) -> None:
    assert await found_at({"GET /v1/models": (200, listed)}) == Found()


async def test_an_endpoint_that_makes_counts_up_is_not_a_counter() -> None:
    found = await found_at({"POST /tokenize": (200, {"count": 1, "tokens": [0]})})
    assert found.counting is None


async def test_an_unreachable_upstream_tells_nothing_and_that_is_counted() -> None:
    upstream = Discovery(LOCAL, httpx2.AsyncClient(transport=httpx2.MockTransport(unreachable)), first_wait=60)
    assert await upstream.found() == Found()
    assert upstream.outcomes == {"unanswered": 4, "silent": 1}


async def test_hosted_apis_are_not_asked() -> None:
    server = Server(VLLM)
    assert await Discovery("https://api.openai.com/v1", server.client()).found() == Found()
    assert server.seen == []


@pytest.mark.parametrize(
    ("base", "answer"),
    [
        ("https://api.openai.com/v1", True),
        ("https://me.openai.azure.com/openai/deployments/x", True),
        ("https://notopenai.com/v1", False),
        ("http://10.0.0.7:8000/v1", False),
        ("http://api.openai.com.evil.example/v1", False),
        ("", False),
    ],
)
def test_hosted_apis_are_known_by_their_domain(base: str, answer: bool) -> None:
    assert hosted(base) is answer


async def test_asking_can_be_switched_on_and_off() -> None:
    server = Server(VLLM)
    assert await Discovery(LOCAL, server.client(), probe=False).found() == Found()
    asked = await Discovery("https://api.openai.com/v1", server.client(), probe=True, first_wait=60).found()
    assert asked.counting == "vllm"


async def test_many_requests_at_once_ask_once() -> None:
    server = Server(VLLM)
    upstream = Discovery(LOCAL, server.client(), first_wait=60)
    answers = await asyncio.gather(*(upstream.found() for _ in range(20)))
    assert {answer.default for answer in answers} == {40960}
    assert sorted(server.paths()) == ["GET /props", "GET /v1/models", "POST /tokenize"]


async def test_a_slow_upstream_is_not_waited_for_and_its_answer_comes_later() -> None:
    server = Server(VLLM, delay=0.05)
    upstream = Discovery(LOCAL, server.client(), first_wait=0)
    assert await upstream.found() == Found()
    while not upstream.outcomes["told"]:
        await asyncio.sleep(0.01)
    assert (await upstream.found()).default == 40960


async def test_closing_stops_the_asking() -> None:
    upstream = Discovery(LOCAL, Server(VLLM, delay=3600).client(), first_wait=0)
    await upstream.found()
    await upstream.aclose()
    await upstream.aclose()
    assert upstream.outcomes == {}


async def test_answers_are_kept_while_fresh_and_silence_is_asked_again_sooner() -> None:
    clock, server = Clock(), Server({})
    upstream = Discovery(LOCAL, server.client(), first_wait=60, clock=clock)
    await upstream.found()
    server.script = VLLM
    clock.now = RETRY - 1
    assert (await upstream.found()).default is None
    clock.now = RETRY
    assert (await upstream.found()).default == 40960
    asked = len(server.seen)
    clock.now = RETRY + FRESH - 1
    await upstream.found()
    assert len(server.seen) == asked


async def test_an_upstream_that_never_tells_is_asked_less_and_less() -> None:
    clock, server = Clock(), Server({})
    upstream = Discovery(LOCAL, server.client(), first_wait=1e9, clock=clock)
    asked: list[float] = []
    for _ in range(3 * int(FRESH)):
        clock.now += 1
        before = len(server.seen)
        await upstream.found()
        if len(server.seen) > before:
            asked.append(clock.now)
    assert [later - earlier for earlier, later in itertools.pairwise(asked)] == [30, 60, 120, 240, 480, 600]


async def test_a_server_that_falls_silent_keeps_what_it_told() -> None:
    clock, server = Clock(), Server(VLLM)
    upstream = Discovery(LOCAL, server.client(), first_wait=60, clock=clock)
    await upstream.found()
    server.script, clock.now = {}, FRESH
    await upstream.found()
    while not upstream.outcomes["silent"]:
        await asyncio.sleep(0.001)
    assert (await upstream.found()).default == 40960


async def test_the_key_goes_with_the_questions() -> None:
    server = Server(VLLM)
    await Discovery(LOCAL, server.client(), first_wait=60).found(lambda: {"authorization": "Bearer k"})
    assert {request.headers["authorization"] for request in server.seen} == {"Bearer k"}


OPENAI = (
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. Please reduce"
)
VLLM_ERROR = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (5000 in the"
LLAMACPP_ERROR = {
    "code": 400,
    "message": "request (3030 tokens) exceeds the available context size (2048 tokens), try increasing it",
    "type": "exceed_context_size_error",
    "n_prompt_tokens": 3030,
    "n_ctx": 2048,
}


@pytest.mark.parametrize(
    ("error", "tokens"),
    [
        ({"error": {"message": OPENAI, "code": "context_length_exceeded"}}, 8192),
        ({"error": {"message": VLLM_ERROR, "type": "BadRequestError", "code": 400}}, 4096),
        ({"object": "error", "message": VLLM_ERROR, "type": "BadRequestError"}, 4096),
        ({"error": LLAMACPP_ERROR}, 2048),
        ({"error": {"message": LLAMACPP_ERROR["message"]}}, 2048),
        ({"type": "error", "error": {"message": "prompt is too long: 214000 tokens > 200000 maximum"}}, 200_000),
        ({"error": {"message": "Input tokens exceed the configured limit of 272000 tokens. Your"}}, 272_000),
        (
            {"error": {"message": "The input token count (2) exceeds the maximum number of tokens allowed (1048576)."}},
            1048576,
        ),
        ({"error": {"message": "maximum context length is 12 tokens"}}, None),
        ({"error": {"message": "x" * 400 + OPENAI}}, None),
        ({"error": {"message": "Rate limit reached"}}, None),
        ({"error": "maximum context length is 8192 tokens"}, None),
        ([OPENAI], None),
    ],
)
def test_context_length_errors_tell_the_window_in_every_dialect(error: object, tokens: int | None) -> None:
    assert told_limit(json.dumps(error).encode()) == tokens


@pytest.mark.parametrize("body", [b"", b"<html>", b"{" * 5000, b'{"error": "' + b"x" * 70_000 + b'"}', b"\xff"])
def test_an_error_that_is_not_json_tells_nothing(body: bytes) -> None:
    assert told_limit(body) is None


async def test_an_error_teaches_a_hosted_model_too_and_is_forgotten_in_time() -> None:
    clock = Clock()
    upstream = Discovery("https://api.openai.com/v1", Server({}).client(), clock=clock)
    body = json.dumps({"error": {"message": OPENAI}}).encode()
    assert upstream.learn("tuned", body) == 8192
    assert upstream.learn("tuned", b"{}") is None
    assert upstream.window("tuned", Found()) == Window(8192, "error")
    assert upstream.window("other", Found()) is None
    clock.now = LEARNED_FRESH
    assert upstream.window("tuned", Found()) is None


async def test_the_operator_is_believed_first_then_the_upstream_then_the_table() -> None:
    upstream = Discovery(LOCAL, Server(VLLM).client(), first_wait=60)
    windows = Windows({"mine*": 1_000}, {"gpt-4o": (128_000, 16_384)})
    found = await upstream.found()
    assert windows.of("mine-7b", upstream.window("mine-7b", found)) == Window(1_000, "override")
    assert windows.of("gpt-4o", upstream.window("gpt-4o", found)) == Window(40960, "server")
    assert windows.of("gpt-4o") == Window(128_000, "table")
    assert windows.of("nobody-knows") is None
