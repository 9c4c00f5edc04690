"""Answers that are one JSON document."""

import json

from support.memory import Canned
from support.reading import (
    BODY,
    JSON,
    WEATHER,
    Reads,
    answer,
    ask,
    body,
    call_of,
    document,
    documents,
    own,
    usage,
)
from support.rounds import TOOL
from support.servers import running
from support.upstream import response, scripted

from policies.hidden import spliced
from policies.jsonraw import dumps


async def test_an_answer_in_one_document_is_read_back_into_as_well() -> None:
    planner = Reads()
    first, last = answer("Let me see. ", own()), answer("It is 7.", WEATHER, number=1)
    replies = [Canned(200, JSON, raw[:40], raw[40:]) for raw in documents(first, last)]
    got, transport = await ask(planner, *replies)
    expected = json.loads(document(last, 0))
    expected["choices"][0]["message"]["content"] = "Let me see. It is 7."
    expected["usage"] = {**usage(200, 10), "edgewise": {**usage(300, 10), "rounds": [usage(100, 5), usage(200, 5)]}}
    assert json.loads(got.body) == expected
    assert dict(got.headers)[b"content-length"] == b"%d" % len(got.body)
    assert len(transport.sent) == 2
    replayed = spliced(planner.recorded[0], json.dumps(expected["choices"][0]["message"]).encode())
    assert replayed is not None
    assert json.loads(replayed[-1])["content"] == "It is 7."


async def test_a_document_in_which_nothing_was_hidden_is_the_bytes_that_came() -> None:
    raw = document(answer("7", WEATHER)).replace(b'"stop"', b'"stop" ')
    for odd in (raw, b"no json", b'{"choices":[]}', b'{"choices":[{"message":1}]}', b"[]"):
        planner = Reads()
        got, _ = await ask(planner, Canned(200, [*JSON, (b"content-length", b"%d" % len(odd))], odd))
        assert (got.body, dict(got.headers)[b"content-length"], planner.recorded) == (odd, b"%d" % len(odd), [])


async def test_over_sockets_our_calls_beside_the_clients_are_hidden_in_a_document() -> None:
    raw = document(answer("Hm", own(), WEATHER))
    async with scripted([response(200, raw)]) as upstream, running(upstream.base, planner=Reads()) as proxy:
        got = await proxy.chat(BODY)
    assert got.json["choices"][0]["message"]["tool_calls"] == [call_of(*WEATHER)]
    assert got.json["choices"][0]["finish_reason"] == "tool_calls"


async def test_a_document_that_ends_in_our_calls_at_last_ends_in_none() -> None:
    rounds = documents(*[answer("", own()) for _ in range(5)])
    got, _ = await ask(Reads(), *[Canned(200, JSON, raw) for raw in rounds])
    choice = json.loads(got.body)["choices"][0]
    assert (choice["message"], choice["finish_reason"]) == (
        {"role": "assistant", "content": None, "refusal": None},
        "stop",
    )


async def test_reasoning_of_all_rounds_stands_in_one_document() -> None:
    rounds = documents(answer("", own()), answer("7"))
    told = [b'"reasoning_content": "First. ", "refusal"', b'"reasoning_content": "Then.", "refusal"']
    planner = Reads()
    replies = [Canned(200, JSON, raw.replace(b'"refusal"', said)) for raw, said in zip(rounds, told, strict=True)]
    got, transport = await ask(planner, *replies)
    message = json.loads(got.body)["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("First. Then.", "7")
    assert json.loads(body(transport, 1))["messages"][1]["reasoning_content"] == "First. "
    replayed = spliced(planner.recorded[0], json.dumps(message).encode())
    assert replayed is not None
    assert json.loads(replayed[-1])["reasoning_content"] == "Then."


async def test_a_document_without_usage_gets_none() -> None:
    rounds = [raw.replace(b'"usage"', b'"cost"') for raw in documents(answer("", own()), answer("7"))]
    planner = Reads()
    got, _ = await ask(planner, *[Canned(200, JSON, raw) for raw in rounds])
    assert "usage" not in json.loads(got.body)
    assert planner.ends == [(200, None)]


async def test_content_in_parts_is_text_too() -> None:
    parts = b'"content": [{"type":"thinking"}, {"type":"text","text":"so "}, 7]'
    rounds = documents(answer("", own()), answer("7"))
    got, _ = await ask(
        Reads(), Canned(200, JSON, rounds[0].replace(b'"content": null', parts)), Canned(200, JSON, rounds[1])
    )
    assert json.loads(got.body)["choices"][0]["message"]["content"] == "so 7"


async def test_of_several_choices_each_is_freed_of_our_calls_and_nothing_is_asked_again() -> None:
    planner = Reads()
    raws = [json.loads(raw)["choices"][0] for raw in documents(answer("a", own()), answer("b", own(), WEATHER))]
    plain = b'{"index": 2,\t"message": {"role": "assistant", "content": "c"}, "finish_reason": "stop"}'
    raw = b'{"id": "x", "choices": [%b, 7,\n %b, {"message": 1}]}' % (b", ".join(dumps(one) for one in raws), plain)
    got, transport = await ask(planner, Canned(200, JSON, raw))
    first, second, *others = json.loads(got.body)["choices"]
    assert (first["message"]["content"], first["finish_reason"]) == ("a", "stop")
    assert (second["message"]["tool_calls"], second["finish_reason"]) == ([call_of(*WEATHER)], "tool_calls")
    assert (plain in got.body, others[0], others[2]) == (True, 7, {"message": 1})
    assert (TOOL.encode() in got.body, len(transport.sent), planner.asked, planner.recorded) == (False, 1, [], [])


async def test_several_choices_of_which_nothing_is_ours_are_the_bytes_that_came() -> None:
    raw = document(answer("7", WEATHER)).replace(b'"choices": [', b'"choices": [{"message": {"content":  "8"}},\n')
    got, _ = await ask(Reads(), Canned(200, JSON, raw))
    assert got.body == raw


async def test_a_later_round_of_several_choices_goes_on_in_the_first_and_is_replayed() -> None:
    planner = Reads()
    first, last = documents(answer("a", own()), answer("b", number=1))
    beside = b'"choices": [%b, ' % last[last.index(b'"choices": [') + 12 : last.rindex(b'], "usage"')]
    last = last.replace(b'"choices": [', beside)
    got, _ = await ask(planner, Canned(200, JSON, first), Canned(200, JSON, last))
    told = json.loads(got.body)
    assert [one["message"]["content"] for one in told["choices"]] == ["ab", "b"]
    assert told["id"] == "chatcmpl-0"
    assert spliced(planner.recorded[0], b'{"role":"assistant","content":"ab"}') is not None
