"""Reading back with a real client on one side and the kit's upstream on the other."""

import asyncio
import json
import socket
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from support.reading import ORIGINAL, Reads
from support.rounds import REF, TOOL
from support.servers import running
from support.shared import shared

from policies.hidden import spliced
from policies.jsonraw import loads
from policies.readback_tool import DEFINITION

WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
READ = f'[[call:{TOOL} {{"ref": "{REF}", "grep": "row 7:"}}]]'
FAULTS: list[list[dict[str, Any]]] = [[], [{"kind": "noise"}], [{"kind": "split", "size": 7}], [{"kind": "nodone"}]]


@asynccontextmanager
async def kit() -> AsyncIterator[str]:
    """The kit's upstream on a port that was free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(shared("kit/stub.py")), "--port", str(port), stdout=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(20):
            while not await _answers(port):
                await asyncio.sleep(0.02)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        await process.wait()


async def _answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionError:
        return False
    writer.close()
    return True


def control(base: str, order: dict[str, Any]) -> None:
    body = json.dumps(order).encode()
    urllib.request.urlopen(base.removesuffix("/v1") + "/_ctl", body).close()


async def ask(base: str, text: str, *, stream: bool, faults: list[Any]) -> tuple[Any, Reads]:
    """The message that the client has in the end."""
    planner = Reads()
    await asyncio.to_thread(control, base, {"inject": faults})
    async with running(base, planner=planner) as proxy, client_of(proxy.port) as client:
        tools: Any = [WEATHER, loads(DEFINITION)]
        messages: Any = [{"role": "user", "content": text}]
        if stream:
            async with client.chat.completions.stream(model="gpt-4o", messages=messages, tools=tools) as events:
                return (await events.get_final_completion()).choices[0].message, planner
        made = await client.chat.completions.create(model="gpt-4o", messages=messages, tools=tools)
        return made.choices[0].message, planner


def client_of(port: int) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="k", max_retries=0)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_real_client_gets_the_answer_and_never_the_tool(stream: bool) -> None:
    async with kit() as base:
        for faults in FAULTS if stream else FAULTS[:1]:
            message, planner = await ask(base, f"{READ}[[then]][[say:It is 49, 价格.]]", stream=stream, faults=faults)
            assert (message.role, message.content, message.tool_calls) == ("assistant", "It is 49, 价格.", None)
            assert planner.asked == [REF]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_real_client_gets_its_own_call_alone_and_what_it_sends_back_is_known(stream: bool) -> None:
    async with kit() as base:
        text = f'{READ}[[then]]{READ}[[call:get_weather {{"city": "Zürich"}}]]'
        message, planner = await ask(base, text, stream=stream, faults=[])
    assert [call.function.name for call in message.tool_calls] == ["get_weather"]
    assert json.loads(message.tool_calls[0].function.arguments) == {"city": "Zürich"}
    replayed = spliced(planner.recorded[0], message.to_json().encode())
    assert replayed is not None
    roles = [loads(raw)["role"] for raw in replayed]
    assert roles == ["assistant", "tool", "assistant", "tool"]
    assert ORIGINAL.split("\n")[7] in loads(replayed[-1])["content"]
