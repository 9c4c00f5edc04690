import json
from typing import Any

import pytest
from support.plans import engine, hopeless, plan, small

from policies.request import ChatRequest
from proxy.refusals import answer, error_object, wants_usage


def body(of: ChatRequest, on_refuse: str = "error") -> Any:
    return json.loads(answer(of, plan(of), on_refuse, "ew_1", 7).body)


def test_a_refusal_is_an_error_that_agents_know() -> None:
    told = answer(hopeless(), plan(hopeless()), "error", "ew_1", 7)
    error = json.loads(told.body)["error"]
    assert (told.status, list(told.headers)) == (400, [(b"content-type", b"application/json")])
    assert (error["code"], error["type"], error["param"]) == (
        "context_length_exceeded",
        "invalid_request_error",
        "messages",
    )
    assert error["message"].startswith(
        "This model's maximum context length is 4000 tokens. However, your messages resu"
    )


def test_the_bill_adds_up_and_every_unit_fits() -> None:
    told = body(hopeless())["error"]["edgewise"]
    assert told["request_id"] == "ew_1"
    assert sum(told["buckets"].values()) == told["floor"] > told["limit"]
    assert told["heaviest"][0] == {"span": "m0", "bucket": "current_turn", "tokens": told["buckets"]["current_turn"]}
    assert len(told["units"]) > 1
    for unit in told["units"]:
        counted = engine().count(ChatRequest.parse(json.dumps(unit["request"]).encode()), None).received_total
        assert counted == unit["tokens"] <= told["limit"]
    assert "{{part-1}}" in json.dumps(told["aggregate"])


def test_a_floor_that_cannot_be_split_gives_its_reason() -> None:
    error = json.loads(answer(small(), plan(small(), 30), "error", "ew_1", 7).body)["error"]
    assert error["edgewise"]["units"] == []
    assert error["edgewise"]["reason"] in error["message"]


def test_a_polite_answer_stops_for_length_and_bills_nothing() -> None:
    told = body(hopeless(), "message")
    assert told["object"] == "chat.completion"
    assert told["choices"][0]["finish_reason"] == "length"
    assert "ew_1" in told["choices"][0]["message"]["content"]
    assert told["usage"] == {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def test_every_choice_that_was_asked_for_is_answered() -> None:
    assert [choice["index"] for choice in body(hopeless(n=3), "message")["choices"]] == [0, 1, 2]


def chunks(of: ChatRequest) -> list[Any]:
    told = answer(of, plan(of), "message", "ew_1", 7)
    assert told.headers[0] == (b"content-type", b"text/event-stream; charset=utf-8")
    events = told.body.decode().split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    return [json.loads(event.removeprefix("data: ")) for event in events[:-2]]


def test_a_stream_gets_the_polite_answer_as_events() -> None:
    told = chunks(hopeless(stream=True))
    assert [chunk["choices"][0]["finish_reason"] for chunk in told] == [None, None, "length"]
    assert "too long" in told[1]["choices"][0]["delta"]["content"]
    assert all("usage" not in chunk for chunk in told)


def test_a_stream_that_asked_for_usage_ends_with_it() -> None:
    told = chunks(hopeless(stream=True, stream_options={"include_usage": True}))
    assert told[-1]["choices"] == []
    assert told[-1]["usage"]["total_tokens"] == 0
    assert told[0]["usage"] is None


@pytest.mark.parametrize("options", [None, 7, {"include_usage": 1}, {}])
def test_only_true_asks_for_usage(options: object) -> None:
    assert not wants_usage(small(stream_options=options))


def test_options_that_are_no_json_ask_for_nothing() -> None:
    deep = b"[" * 600 + b"]" * 600
    whole = small(stream_options={}).body.replace(b'"stream_options": {}', b'"stream_options": ' + deep)
    assert not wants_usage(ChatRequest.parse(whole))


def test_a_plan_that_fits_is_no_refusal() -> None:
    with pytest.raises(ValueError, match="fits"):
        answer(small(), plan(small()), "error", "ew_1", 7)


def test_an_error_object_wants_a_refusal() -> None:
    with pytest.raises(ValueError, match="fits"):
        error_object(plan(small()))
