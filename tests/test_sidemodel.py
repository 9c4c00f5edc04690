"""The cheap lane over real sockets: it answers, or it is done without."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from support.upstream import Close, Hang, Reset, Script, Upstream, Wait, response, scripted, until

from policies.needs import Ask, Reply
from proxy.breaker import PATIENCE
from proxy.promptfiles import load
from proxy.sidemodel import MOST_BYTES, Lane, Questions, SideModel

ASK = Ask("summary", {"words": "50", "text": "the user wants TCK-4821"}, 100)
KEY = "sk-side-canary"


def words(text: str) -> int:
    return len(text.split())


def said(content: Any, finish: str = "stop", usage: dict[str, int] | None = None) -> Script:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish}
    return [response(200, json.dumps({"choices": [choice], "usage": usage}).encode())]


USAGE = {"prompt_tokens": 90, "completion_tokens": 7}


@asynccontextmanager
async def asking(*scripts: Script, **fields: Any) -> AsyncIterator[tuple[SideModel, Upstream]]:
    async with scripted(*scripts) as upstream, httpx2.AsyncClient(trust_env=False) as client:
        yield SideModel(Lane(upstream.base, "tiny", KEY, **fields), load(), client, words), upstream


def outcomes(side: SideModel) -> dict[tuple[str, str], float]:
    (family,) = [one for one in side.metrics.collect() if one.name == "edgewise_side_model_requests"]
    return {(one.labels["prompt"], one.labels["outcome"]): one.value for one in family.samples}


async def test_a_question_goes_out_as_a_chat_request_of_its_own_and_the_bill_comes_back() -> None:
    async with asking(said(" The user wants TCK-4821. ", usage=USAGE)) as (side, upstream):
        questions = Questions(side, "tenant")
        assert await questions.answer(ASK) == Reply("The user wants TCK-4821.", 97)
        assert questions.spent == 97
    (request,) = upstream.requests
    body = json.loads(request.body)
    assert request.line == b"POST /v1/chat/completions HTTP/1.1"
    assert request.header(b"authorization") == f"Bearer {KEY}".encode()
    assert (body["model"], body["temperature"], body["max_tokens"], body["stream"]) == ("tiny", 0, 100, False)
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert "at most 50 words" in " ".join(body["messages"][0]["content"].split())
    assert "the user wants TCK-4821" in body["messages"][1]["content"]
    tokens = {one.labels["kind"]: one.value for one in next_family(side, "edgewise_side_model_tokens").samples}
    assert tokens == {"prompt": 90, "completion": 7}
    assert outcomes(side) == {("summary", "answered"): 1}


def next_family(side: SideModel, name: str) -> Any:
    return next(family for family in side.metrics.collect() if family.name == name)


async def test_without_a_key_none_is_sent() -> None:
    async with scripted(said("yes")) as upstream, httpx2.AsyncClient(trust_env=False) as client:
        assert await Questions(SideModel(Lane(upstream.base, "tiny"), load(), client, words), "t").answer(ASK)
    assert upstream.requests[0].header(b"authorization") is None


async def test_where_no_usage_is_told_the_tokens_are_our_own_count() -> None:
    async with asking(said("one two three")) as (side, upstream):
        reply = await Questions(side, "tenant").answer(ASK)
    assert reply is not None
    asked = sum(words(message["content"]) for message in json.loads(upstream.requests[0].body)["messages"])
    assert reply.tokens == asked + 16 + 3


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        ([response(500, b"{}")], "failed"),
        ([response(429, b"{}")], "failed"),
        ([response(401, b"{}")], "failed"),
        ([response(302, b"", ("location", "http://127.0.0.1:9/"))], "failed"),
        ([response(200, b"<html>")], "failed"),
        ([response(200, b"[]")], "failed"),
        ([response(200, b'{"choices": [{"message": {"content": 7}}]}')], "failed"),
        ([response(400, b'{"error": {}}')], "refused"),
        ([response(200, b'{"choices": []}')], "empty"),
        (said(""), "empty"),
        (said(None), "empty"),
        (said(" \n "), "empty"),
        (said("half a sentence that", finish="length"), "too_long"),
        (said("word " * 201), "too_long"),
        (said("w" * 4000), "too_long"),
        ([response(200, b" " * (MOST_BYTES + 1))], "too_long"),
        ([Reset()], "failed"),
        ([Close()], "failed"),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{", Close()], "failed"),
        ([Hang()], "late"),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{", Hang()], "late"),
    ],
)
async def test_whatever_the_side_model_does_wrong_there_is_just_no_answer(script: Script, outcome: str) -> None:
    timeout = 0.05 if outcome == "late" else 10.0
    async with asking(script, timeout=timeout) as (side, _):
        assert await Questions(side, "tenant").answer(ASK) is None
        assert outcomes(side) == {("summary", outcome): 1}


async def test_an_answer_that_could_not_be_used_is_paid_for_all_the_same() -> None:
    async with asking(said("", usage=USAGE)) as (side, _):
        questions = Questions(side, "tenant")
        assert await questions.answer(ASK) is None
        assert questions.spent == 97


async def test_nobody_listening_is_no_answer() -> None:
    async with asking() as (side, upstream):
        pass
    async with httpx2.AsyncClient(trust_env=False) as client:
        side = SideModel(Lane(upstream.base, "tiny"), load(), client, words)
        assert await Questions(side, "tenant").answer(ASK) is None


async def test_after_a_question_that_was_waited_for_in_vain_the_request_asks_no_other() -> None:
    async with asking([Hang()], timeout=0.05) as (side, upstream):
        questions = Questions(side, "tenant")
        assert [await questions.answer(ASK), await questions.answer(ASK)] == [None, None]
        assert len(upstream.requests) == 1


async def test_all_questions_of_a_request_share_one_total() -> None:
    async with asking(said("yes"), total=-1.0) as (side, upstream):
        assert await Questions(side, "tenant").answer(ASK) is None
        assert upstream.requests == []


async def test_a_server_that_fails_again_and_again_is_left_alone() -> None:
    async with asking([response(503, b"")]) as (side, upstream):
        for _ in range(PATIENCE + 2):
            assert await Questions(side, "tenant").answer(ASK) is None
        assert len(upstream.requests) == PATIENCE
        assert outcomes(side) == {("summary", "failed"): PATIENCE, ("summary", "skipped"): 2}


async def test_no_more_questions_are_asked_at_once_than_configured() -> None:
    first = Wait()
    async with asking([first, *said("first")], said("second"), concurrency=1) as (side, upstream):
        one = asyncio.create_task(Questions(side, "a").answer(ASK))
        await until(lambda: len(upstream.requests) == 1)
        two = asyncio.create_task(Questions(side, "b").answer(ASK))
        await asyncio.sleep(0)
        assert len(upstream.requests) == 1
        first.go()
        replies = [await one, await two]
    assert [reply and reply.text for reply in replies] == ["first", "second"]


async def test_a_question_that_never_got_its_turn_does_not_count_against_the_server() -> None:
    async with asking([Hang()], concurrency=1, timeout=0.05) as (side, upstream):
        holder = asyncio.create_task(side.ask(ASK, "a", 60))
        await until(lambda: len(upstream.requests) == 1)
        assert (await side.ask(ASK, "b", 0.05))[0] == "busy"
        holder.cancel()
        await asyncio.gather(holder, return_exceptions=True)


async def test_the_same_question_of_the_same_tenant_is_asked_once_and_costs_nothing_again() -> None:
    async with asking(said("yes", usage=USAGE)) as (side, upstream):
        questions = Questions(side, "tenant")
        assert [await questions.answer(ASK), await questions.answer(ASK)] == [Reply("yes", 97), Reply("yes", 0)]
        assert await Questions(side, "other").answer(ASK) == Reply("yes", 97)
        assert await questions.answer(Ask("summary", {"words": "50", "text": "else"}, 100)) == Reply("yes", 97)
        assert len(upstream.requests) == 3


async def test_a_very_long_answer_is_not_remembered() -> None:
    long = Ask("summary", {"words": "50", "text": "t"}, 10_000)
    async with asking(said("x " * 9_000)) as (side, upstream):
        for _ in range(2):
            assert await Questions(side, "tenant").answer(long)
        assert len(upstream.requests) == 2


async def test_a_text_over_the_window_is_cut_where_it_may_be() -> None:
    text = "\n".join(f"line {number} of the log" for number in range(5_000))
    async with asking(said("yes"), window=1_000) as (side, upstream):
        assert await Questions(side, "tenant").answer(Ask("summary", {"words": "50", "text": text}, 100))
    message = json.loads(upstream.requests[0].body)["messages"][1]["content"]
    assert "line 0 of the log" in message
    assert "are not shown here" in message
    assert words(message) < 1_100


async def test_a_text_that_must_stay_whole_is_not_asked_about_when_it_is_over_the_window() -> None:
    whole = Ask("extract", {"fields": "error", "part": "Part 1 of 1", "question": "why?", "text": "word " * 1_100}, 100)
    async with asking(said("yes"), window=1_000) as (side, upstream):
        assert await Questions(side, "tenant").answer(whole) is None
        assert (upstream.requests, outcomes(side)) == ([], {("extract", "too_long"): 1})


@pytest.mark.parametrize(
    ("ask", "label"), [(Ask("novel", {}, 9), "other"), (Ask("summary", {"text": "a"}, 9), "summary")]
)
async def test_a_prompt_or_value_that_does_not_exist_is_no_answer(ask: Ask, label: str) -> None:
    async with asking(said("yes")) as (side, upstream):
        assert await Questions(side, "tenant").answer(ask) is None
        assert (upstream.requests, outcomes(side)) == ([], {(label, "unknown"): 1})


async def test_keys_and_texts_reach_no_log_and_no_metric(caplog: pytest.LogCaptureFixture) -> None:
    async with asking([response(500, KEY.encode())], said("TCK-4821")) as (side, _):
        for _ in range(2):
            await Questions(side, "tenant").answer(ASK)
        told = caplog.text + "".join(str(family) for family in side.metrics.collect())
    assert KEY not in told
    assert "TCK-4821" not in told
    assert "tenant" not in told
