import json
from typing import Any

from support.plans import SECRET, engine, hopeless, long, plan, record, request, small

from policies.report import Report
from policies.request import ChatRequest
from proxy.objects import count_object, one_line, plan_object, record_object


def counted(of: ChatRequest) -> Any:
    return json.loads(count_object(engine().count(of, 4_000)))


def planned(of: ChatRequest) -> Any:
    return json.loads(plan_object(of, plan(of)))


def test_a_count_has_total_limit_buckets_and_spans_that_add_up() -> None:
    told = counted(long())
    assert told["total"] == sum(told["buckets"].values())
    assert told["limit"] < told["total"]
    assert told["exact"] is True
    assert sum(span["tokens"] for span in told["spans"]) + told["buckets"]["overhead"] == told["total"]


def test_a_plan_says_what_would_be_forwarded() -> None:
    told = planned(long())
    assert sum(told["received"].values()) == told["total"] == told["received_total"]
    assert sum(told["sent"].values()) == told["sent_total"] <= told["limit"]
    assert told["level"] != "none"
    assert any(decision["outcome"] == "applied" for decision in told["decisions"])
    again = ChatRequest.parse(json.dumps(told["request"]).encode())
    assert engine().count(again, 4_000).received_total == told["sent_total"]


def test_the_forwarded_request_keeps_its_bytes() -> None:
    body = b'{\n "model": "gpt-4o",\r\n "temperature": 1e0, "seed": 9007199254740993, "messages": []}'
    received = ChatRequest.parse(body)
    assert b'"request":{  "model": "gpt-4o",   "temperature": 1e0, "seed": 9007199254740993, "messages": []}}' in (
        plan_object(received, plan(received))
    )


def test_a_plan_that_cannot_fit_has_an_error_in_place_of_a_request() -> None:
    told = planned(hopeless())
    assert "request" not in told
    assert told["error"]["code"] == "context_length_exceeded"
    assert told["error"]["edgewise"]["units"]


def test_tools_are_named() -> None:
    assert [row.name for row in Report.of(plan(small())).rows if row.bucket == "tools"] == ["read_log"]


def test_a_past_request_has_spans_and_decisions_but_no_text() -> None:
    made = plan(long())
    told = json.loads(record_object(record(made)))
    assert told["sent"] == made.sent_total
    assert sum(told["buckets"]["received"].values()) == told["received"]
    touched = {span for decision in told["decisions"] if decision["outcome"] == "applied" for span in decision["spans"]}
    assert {span["id"] for span in told["spans"] if span["what"]} == touched
    assert SECRET not in json.dumps(told)


def test_a_line_is_utf_8_whatever_came() -> None:
    assert one_line(b'{"a":\n"\xff"}\n') == '{"a": "\ufffd"}'.encode()


def test_an_empty_request_is_counted_too() -> None:
    assert counted(request([]))["spans"] == []
