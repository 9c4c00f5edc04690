"""An original is taken out, stored, read back inside a live answer, and stands in the next request."""

import json
import re
from typing import Any

import pytest
from support.prompts import lines, result, round_of, said, system, tool, user
from support.servers import Proxy, running
from support.upstream import OK, Upstream, response, scripted, stream

from proxy.planning import Planning, planner_of
from proxy.settings import Settings

WINDOW = 8_000
REF = re.compile(rb"tr_[0-9a-f]{24}")
TOOLS = [tool("read_log")]
UNKNOWN = "tr_000000000000000000000000"


def pump(number: int) -> str:
    return lines(40, f"pump {number}")


def talk(rounds: int) -> list[dict[str, Any]]:
    loop = [m for n in range(rounds) for m in round_of(n, pump(n))]
    return [system("You run the pumps."), user("Find the leak."), *loop]


def planned(upstream: Upstream, **more: Any) -> Planning:
    given: dict[str, Any] = {"upstream": upstream.base, "port": 0, "window": WINDOW} | more
    return planner_of(Settings(**given))


async def ask(proxy: Proxy, messages: list[dict[str, Any]], **more: Any) -> bytes:
    """The answer's body."""
    return (await proxy.chat({"model": "gpt-4o", "messages": messages, "tools": TOOLS, **more})).body


def names(body: bytes) -> list[str]:
    return [one["function"]["name"] for one in json.loads(body).get("tools", [])]


def called(ref: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": "read_tool_result", "arguments": json.dumps({"ref": ref, **arguments})}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "own", "type": "function", "function": function}],
    }


def whole(message: dict[str, Any]) -> bytes:
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    choice = {"index": 0, "finish_reason": finish, "message": message}
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}
    return response(200, json.dumps({"id": "x", "model": "m", "choices": [choice], "usage": usage}).encode())


def several(messages: list[dict[str, Any]], *, streaming: bool) -> bytes:
    """An answer of several choices, each in one piece."""
    choices = [
        {
            "index": at,
            "delta" if streaming else "message": one,
            "finish_reason": "tool_calls" if len(one) > 2 else "stop",
        }
        for at, one in enumerate(messages)
    ]
    if not streaming:
        return response(200, json.dumps({"id": "x", "choices": choices}).encode())
    events = [b"data: " + json.dumps({"id": "x", "choices": [one]}).encode() + b"\n\n" for one in choices]
    return stream(*events, b"data: [DONE]\n\n")


def streamed(message: dict[str, Any]) -> bytes:
    pieces = []
    if message.get("content"):
        pieces.append({"index": 0, "delta": {"content": message["content"]}})
    for at, one in enumerate(message.get("tool_calls") or []):
        pieces.append({"index": 0, "delta": {"tool_calls": [{"index": at, **one}]}})
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    pieces.append({"index": 0, "delta": {}, "finish_reason": finish})
    events = [b"data: " + json.dumps({"id": "x", "choices": [piece]}).encode() + b"\n\n" for piece in pieces]
    return stream(*events, b"data: [DONE]\n\n")


async def outgrown(proxy: Proxy, upstream: Upstream) -> str:
    """Ask until an original was taken out; the ref of the first one."""
    for rounds in range(10, 16):
        await ask(proxy, talk(rounds))
    found: bytes = REF.findall(upstream.requests[-1].body)[0]
    return found.decode()


@pytest.mark.parametrize("streaming", [False, True])
async def test_the_model_reads_an_original_back_and_the_client_never_knows(streaming: bool) -> None:
    made = streamed if streaming else whole
    async with scripted([OK]) as upstream, running(upstream.base, planner=planned(upstream)) as proxy:
        ref = await outgrown(proxy, upstream)
        upstream.scripts[:] = [[made(called(ref, limit=400))], [made(said("Pump 0 leaks."))], [OK]]
        answer = await ask(proxy, talk(15), stream=streaming)
        assert b"Pump 0 leaks." in answer
        assert b"read_tool_result" not in answer
        assert ref.encode() not in answer
        asked = json.loads(upstream.requests[-1].body)["messages"]
        assert asked[-1]["role"] == "tool"
        assert pump(0)[:400] in asked[-1]["content"]
        await ask(proxy, [*talk(15), said("Pump 0 leaks."), user("Are you sure?")])
        again = json.loads(upstream.requests[-1].body)["messages"]
        assert again[: len(asked)] == asked
        assert [m["role"] for m in again[len(asked) :]] == ["assistant", "user"]


@pytest.mark.parametrize(("kept_as", "ours"), [("theirs", "own"), ("D681PevKs", "own"), ("own", "read00000")])
async def test_a_call_of_the_clients_beside_ours_reaches_it_alone_under_whatever_id_it_keeps_it(
    kept_as: str, ours: str
) -> None:
    both = called(UNKNOWN)
    both["tool_calls"].append({"id": "theirs", "type": "function", "function": {"name": "read_log", "arguments": "{}"}})
    async with scripted([OK]) as upstream, running(upstream.base, planner=planned(upstream)) as proxy:
        await outgrown(proxy, upstream)
        upstream.scripts[:] = [[whole(both)], [OK]]
        answer = json.loads(await ask(proxy, talk(15)))
        shown = answer["choices"][0]["message"]
        assert [one["id"] for one in shown["tool_calls"]] == ["theirs"]
        shown["tool_calls"][0]["id"] = kept_as
        await ask(proxy, [*talk(15), shown, result(kept_as, "all is well")])
        sent = json.loads(upstream.requests[-1].body)["messages"]
        assert [one["id"] for one in sent[-3]["tool_calls"]] == [ours, kept_as]
        assert [one["tool_call_id"] for one in sent[-2:]] == [ours, kept_as]
        assert UNKNOWN in sent[-2]["content"]


async def test_the_tool_stands_in_every_request_from_its_first_ref_on_and_in_none_before() -> None:
    async with scripted([OK]) as upstream, running(upstream.base, planner=planned(upstream)) as proxy:
        offered = []
        for rounds in range(1, 18):
            await ask(proxy, talk(rounds))
            body = upstream.requests[-1].body
            offered.append("read_tool_result" in names(body))
            assert offered[-1] or not REF.search(body)
        assert offered.index(True) > 5
        assert all(offered[offered.index(True) :])


@pytest.mark.parametrize(
    "more", [{"tools": []}, {"n": 2}, {"tool_choice": "required"}, {"tools": [tool("read_tool_result")]}]
)
async def test_where_the_tool_may_not_be_offered_no_ref_is_given(more: dict[str, Any]) -> None:
    async with scripted([OK]) as upstream, running(upstream.base, planner=planned(upstream)) as proxy:
        await proxy.chat({"model": "gpt-4o", "messages": talk(16), "tools": TOOLS, **more})
        body = upstream.requests[-1].body
        assert body != json.dumps({"model": "gpt-4o", "messages": talk(16), "tools": TOOLS, **more}).encode()
        assert not REF.search(body)
        assert names(body) == [one["function"]["name"] for one in more.get("tools", TOOLS)]


@pytest.mark.parametrize("streaming", [False, True])
async def test_several_answers_keep_the_tool_that_was_offered_and_show_no_call_of_it(streaming: bool) -> None:
    """What is sent is what would be for one answer; nothing is asked again."""
    many = [called(UNKNOWN), said("Pump 0 leaks."), called(UNKNOWN)]
    many[2]["tool_calls"].append({"id": "theirs", "type": "function", "function": {"name": "read_log"}})
    async with scripted([OK]) as upstream, running(upstream.base, planner=planned(upstream)) as proxy:
        await outgrown(proxy, upstream)
        one = json.loads(upstream.requests[-1].body)
        upstream.scripts[:] = [[several(many, streaming=streaming)], [OK]]
        before = len(upstream.requests)
        answer = await ask(proxy, talk(15), n=3, stream=streaming)
        assert len(upstream.requests) == before + 1
        sent = json.loads(upstream.requests[-1].body)
        assert (sent["messages"], sent["tools"]) == (one["messages"], one["tools"])
        assert (b"read_tool_result" in answer, b"Pump 0 leaks." in answer, answer.count(b"read_log")) == (
            False,
            True,
            1,
        )
        assert (answer.count(b'"stop"'), answer.count(b'"finish_reason"') >= 3) == (2, True)
        await ask(proxy, [*talk(15), said("Pump 0 leaks."), user("Sure?")])
        assert json.loads(upstream.requests[-1].body)["messages"][: len(sent["messages"])] == sent["messages"]


async def test_an_original_that_the_store_lost_is_read_from_what_the_client_sent_again() -> None:
    async with scripted([OK]) as upstream:
        planner = planned(upstream)
        async with running(upstream.base, planner=planner) as proxy:
            ref = await outgrown(proxy, upstream)
            await planner.memories.ledger.purge()
            upstream.scripts[:] = [[whole(called(ref))], [whole(said("Read."))]]
            assert b"Read." in await ask(proxy, talk(15))
            assert pump(0)[:200] in json.loads(upstream.requests[-1].body)["messages"][-1]["content"]


async def test_with_the_ledger_off_nothing_is_promised() -> None:
    async with scripted([OK]) as upstream, running(upstream.base, planner=planned(upstream, ledger="off")) as proxy:
        await ask(proxy, talk(16))
        body = upstream.requests[-1].body
        assert b"read_log succeeded and was used earlier" in body
        assert not REF.search(body)
        assert names(body) == ["read_log"]


async def test_calls_of_ours_under_one_id_are_told_apart() -> None:
    twice = called(UNKNOWN)
    twice["tool_calls"] *= 2
    async with scripted([OK]) as upstream, running(upstream.base, planner=planned(upstream)) as proxy:
        await outgrown(proxy, upstream)
        upstream.scripts[:] = [[whole(twice)], [whole(said("Read."))], [OK]]
        await ask(proxy, talk(15))
        asked = json.loads(upstream.requests[-1].body)["messages"]
        ids = [one["id"] for one in asked[-3]["tool_calls"]]
        assert ids[0] == "own"
        assert len(set(ids)) == 2
        assert [one["tool_call_id"] for one in asked[-2:]] == ids
        await ask(proxy, [*talk(15), said("Read."), user("And?")])
        assert json.loads(upstream.requests[-1].body)["messages"][: len(asked)] == asked
