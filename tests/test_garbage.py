"""What a request held is free when it is over: nothing waits for the garbage collector, which comes every few thousand
requests and finds memory that no cache has."""

import gc
from collections import Counter
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import Any

import pytest
from support.faulty import until_settled
from support.prompts import lines, round_of, system, user
from support.servers import Proxy, post, running
from support.upstream import OK, STREAM_HEAD, chunk, scripted

from proxy.planning import planner_of
from proxy.settings import Settings

STREAM = STREAM_HEAD + chunk(b'data: {"choices":[]}\n\n') + chunk(b"data: [DONE]\n\n") + chunk(b"")
OURS = ("proxy.", "policies.", "uvicorn.")


@pytest.fixture
def collected() -> Iterator[list[Any]]:
    """What the collector finds, whatever it is."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    yield gc.garbage
    gc.set_debug(0)
    gc.enable()
    gc.garbage.clear()


def ours(garbage: list[Any]) -> dict[str, int]:
    """Kinds of things of a request among it."""
    kinds = [type(one) for one in garbage if not isinstance(one, type | FunctionType | MethodType)]
    return Counter(kind.__name__ for kind in kinds if kind.__module__.startswith(OURS))


async def chats(proxy: Proxy, messages: list[dict[str, Any]], *, stream: bool) -> None:
    async with proxy.client() as client:
        for _ in range(5):
            await client.send(post("/v1/chat/completions", {"model": "m", "messages": messages, "stream": stream}))
            assert (await client.answer()).status == 200


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("rounds", [0, 30], ids=["untouched", "edited"])
async def test_a_chat_leaves_no_garbage(collected: list[Any], rounds: int, *, stream: bool) -> None:
    loop = [one for at in range(rounds) for one in round_of(at, lines(40, f"pump {at}"))]
    messages = [system("You run the pumps."), user("Find the leak."), *loop]
    async with scripted([STREAM if stream else OK]) as upstream:
        settings = Settings(upstream=upstream.base, port=0, window=8_000)
        async with running(upstream.base, planner=planner_of(settings), window=8_000) as proxy:
            await chats(proxy, messages, stream=stream)
            gc.collect()
            collected.clear()
            await chats(proxy, messages, stream=stream)
            await until_settled(proxy)
            gc.collect()
            assert ours(collected) == {}


async def test_a_passed_request_leaves_no_garbage(collected: list[Any]) -> None:
    async with scripted([OK]) as upstream, running(upstream.base) as proxy, proxy.client() as client:
        for _ in range(5):
            await client.send(post("/v1/embeddings", {"input": "a"}))
            assert (await client.answer()).status == 200
        gc.collect()
        assert ours(collected) == {}
