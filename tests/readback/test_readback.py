"""Reading back through the whole proxy: over real sockets where bytes flow, else from memory."""

import asyncio
import json
from typing import Any

import pytest
from support.memory import Memory, scope_of
from support.reading import (
    ASK,
    BODY,
    ORIGINAL,
    SETTINGS,
    WEATHER,
    Reads,
    answer,
    ask,
    body,
    call_of,
    own,
    results,
    sse,
    streamed,
    usage,
)
from support.rounds import REF, TOOL, read
from support.servers import post, running
from support.upstream import LAST_CHUNK, STREAM_HEAD, Act, Wait, chunk, scripted, stream

from policies.hidden import spliced
from proxy.app import create_app
from proxy.readback.loop import BROKEN, MOST_ROUNDS, NO_ROOM, USED_UP


async def test_over_sockets_a_read_is_answered_inside_the_stream_and_the_client_sees_one_answer() -> None:
    planner, rounds = Reads(), streamed(answer("Let me see. ", own()), answer("It is 7.", number=1))
    async with (
        scripted(*[[stream(raw)] for raw in rounds]) as upstream,
        running(upstream.base, planner=planner) as proxy,
    ):
        got = await proxy.chat(BODY)
    seen = read(got.body)
    assert (seen.text, seen.called, seen.finishes, seen.done) == ("Let me see. It is 7.", [], ["stop"], 1)
    assert (len(seen.heads), seen.roles, TOOL.encode() in got.body) == (1, ["assistant"], False)
    assert (got.complete, got.header("edgewise-budget")) == (True, "b=1")
    assert planner.ends == [(200, seen.usage[0])]
    messages = json.loads(upstream.requests[1].body)["messages"]
    assert messages[1] == {
        "role": "assistant", "content": "Let me see. ", "tool_calls": [call_of("call_a", TOOL, ASK)],
    }  # fmt: skip
    assert (messages[2]["role"], messages[2]["tool_call_id"]) == ("tool", "call_a")
    assert messages[2]["content"].partition("\n")[2] == ORIGINAL[:30]


async def test_the_next_round_is_the_request_as_it_left_with_messages_behind() -> None:
    _, transport = await ask(Reads(), *map(sse, streamed(answer("", own()), answer("7"))))
    head, tail = BODY[: BODY.index(b"],")], BODY[BODY.index(b"],") :]
    assert body(transport, 1).startswith(head)
    assert body(transport, 1).endswith(tail)
    assert dict(transport.sent[0].headers)[b"idempotency-key"] == b"k"
    assert b"idempotency-key" not in dict(transport.sent[1].headers)


async def test_what_the_client_sends_back_is_replayed_as_the_upstream_knows_it() -> None:
    planner = Reads()
    got, transport = await ask(
        planner, *map(sse, streamed(answer("Let me see. ", own()), answer("It is ", WEATHER, number=1)))
    )
    seen = read(got.body)
    mine = {"role": "assistant", "content": seen.text, "tool_calls": [call_of(*one) for one in seen.called]}
    replayed = spliced(planner.recorded[0], json.dumps(mine).encode())
    assert replayed is not None
    assert [json.loads(raw) for raw in replayed[:-1]] == json.loads(body(transport, 1))["messages"][1:]
    assert json.loads(replayed[-1]) == {**mine, "content": "It is "}


async def test_our_calls_beside_the_clients_are_hidden_and_answered_when_its_results_come() -> None:
    planner = Reads()
    got, transport = await ask(planner, sse(streamed(answer("Hm", own(), WEATHER, own("call_b")))[0]))
    seen = read(got.body)
    assert (seen.text, seen.called, list(seen.calls), seen.finishes) == ("Hm", [WEATHER], [0], ["tool_calls"])
    assert len(transport.sent) == 1
    mine = {"role": "assistant", "content": "Hm", "tool_calls": [call_of(*WEATHER)]}
    replayed = spliced(planner.recorded[0], json.dumps(mine).encode())
    assert replayed is not None
    said, *read_back = [json.loads(raw) for raw in replayed]
    assert [one["id"] for one in said["tool_calls"]] == ["call_a", "call_w", "call_b"]
    assert [one["tool_call_id"] for one in read_back] == ["call_a", "call_b"]
    assert results(read_back)[0].endswith(ORIGINAL[:30])


async def test_after_three_rounds_a_call_is_answered_with_a_note_and_the_last_round_may_call_nothing() -> None:
    planner = Reads()
    rounds = [answer("", own(f"call_{number}"), number=number) for number in range(5)]
    got, transport = await ask(planner, *map(sse, streamed(*rounds)))
    assert [json.loads(body(transport, at)).get("tool_choice") for at in range(5)] == [None] * 4 + ["none"]
    read_back = results(json.loads(body(transport, 4))["messages"])
    assert (len(read_back), read_back[3], USED_UP in read_back[:3]) == (MOST_ROUNDS + 1, USED_UP, False)
    seen = read(got.body)
    assert (seen.text, seen.called, seen.finishes, seen.roles) == ("", [], ["stop"], ["assistant"])
    assert planner.asked == [REF] * 3
    assert seen.usage[0]["completion_tokens"] == 25
    assert len(planner.recorded[0].before) == 8


async def test_usage_is_told_exactly_and_handed_to_the_planner() -> None:
    planner = Reads()
    got, _ = await ask(planner, *map(sse, streamed(answer("", own()), answer("7", number=1))))
    expected = {**usage(200, 10), "edgewise": {**usage(300, 10), "rounds": [usage(100, 5), usage(200, 5)]}}
    assert read(got.body).usage == [expected]
    assert planner.ends == [(200, expected)]


async def test_usage_that_the_client_did_not_ask_for_reaches_the_planner_alone() -> None:
    for count in (1, 2):
        planner = Reads(hides_usage=True)
        rounds = [answer("", own()), answer("7", number=1)][-count:]
        got, _ = await ask(planner, *map(sse, streamed(*rounds)))
        assert (read(got.body).usage, read(got.body).done) == ([], 1)
        assert planner.ends[0][1] is not None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"ref": "tr_ffffffffffffffff"}', "[nothing is stored under tr_ffffffffffffffff (any longer)"),
        ('{"ref": 1}', "[ref must be copied from where it is shown"),
        ('{"ref": "tr_', "[the arguments must be a JSON object"),
        ("", "[ref must be copied"),
    ],
)
async def test_what_cannot_be_read_is_said_to_the_model(arguments: str, said: str) -> None:
    _, transport = await ask(Reads(), *map(sse, streamed(answer("", own(arguments=arguments)), answer("7"))))
    assert results(json.loads(body(transport, 1))["messages"])[0].startswith(said)


async def test_a_store_that_breaks_costs_nobody_their_answer() -> None:
    planner, apps = Reads(), list[Any]()
    planner.store[REF], planner.recording = ValueError("secret"), ValueError("secret")
    got, transport = await ask(planner, *map(sse, streamed(answer("", own()), answer("7"))), app_of=apps)
    assert results(json.loads(body(transport, 1))["messages"]) == [BROKEN]
    assert (read(got.body).text, read(got.body).done, got.complete) == ("7", 1, True)
    assert apps[0].state.registry.get_sample_value("edgewise_planner_failures_total") == 2


async def test_reads_share_the_room_that_the_prompt_has() -> None:
    everything = json.dumps({"ref": REF})
    rounds = streamed(answer("", *[own(f"call_{at}", everything) for at in range(3)]), answer("7"))
    _, transport = await ask(Reads(room=1000), *map(sse, rounds))
    first, second, third = results(json.loads(body(transport, 1))["messages"])
    assert len(first) > 500
    assert (second, third) == (NO_ROOM, NO_ROOM)


async def test_calls_without_an_id_are_given_one_that_every_server_takes() -> None:
    _, transport = await ask(Reads(), *map(sse, streamed(answer("", own(""), own("")), answer("7"))))
    messages = json.loads(body(transport, 1))["messages"]
    assert [one["id"] for one in messages[1]["tool_calls"]] == ["call00000", "call00001"]
    assert [one["tool_call_id"] for one in messages[2:]] == ["call00000", "call00001"]


async def test_text_is_sent_while_the_upstream_is_still_thinking_about_its_next() -> None:
    raw, hold = streamed(answer("so", own()))[0], Wait()
    cut = raw.index(b'"tool_calls"')
    parts: list[Act] = [STREAM_HEAD + chunk(raw[:cut]), hold, chunk(raw[cut:]) + LAST_CHUNK]
    async with (
        scripted(parts, [stream(*streamed(answer("7")))]) as upstream,
        running(upstream.base, planner=Reads()) as proxy,
        proxy.client() as client,
    ):
        await client.send(post("/v1/chat/completions", BODY))
        await client.head()
        text = b""
        while read(text).text != "so":
            text += await client.chunk()
        hold.go()
        while (piece := await client.chunk()) != b"":
            text += piece
    assert read(text).text == "so7"


async def test_the_round_is_recorded_before_the_client_can_have_the_end() -> None:
    class Watched(Reads):
        async def record(self, hidden: Any) -> None:
            shown.append(len(got))
            await super().record(hidden)

    shown, got = list[int](), list[dict[str, Any]]()
    transport = Memory([sse(raw) for raw in streamed(answer("a", own()), answer("b"))])
    app = create_app(SETTINGS, transport=transport, planner=Watched())

    async def send(message: dict[str, Any]) -> None:
        got.append(message)

    async def receive() -> dict[str, Any]:
        if not received:
            received.append(True)
            return {"type": "http.request", "body": BODY, "more_body": False}
        return await asyncio.Future[dict[str, Any]]()

    received: list[bool] = []
    await app(scope_of("POST", "/v1/chat/completions"), receive, send)
    before = b"".join(message.get("body", b"") for message in got[: shown[0]])
    assert (read(before).text, read(before).finishes, read(before).done) == ("ab", [], 0)
