import io
import json
import logging
from collections.abc import Iterator

import msgspec
import pytest
from support.plans import SECRET, hopeless, long, plan, record, small

from proxy.observe import REQUESTS, Ending, Record, headers, log_line, log_requests, log_to, usage_figures


def shown(of: Record) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in headers(of)}


def test_an_untouched_request_shows_what_was_received_and_sent() -> None:
    assert shown(record(plan(small()))) == {
        "edgewise-tokens": "system=13, tools=21, current_turn=7, overhead=16",
        "edgewise-budget": "received=57, sent=57, limit=3457, level=none",
    }


def test_tokens_add_up_to_what_was_sent() -> None:
    told = shown(record(plan(long())))
    tokens = sum(int(part.split("=")[1]) for part in told["edgewise-tokens"].split(", "))
    budget = dict(part.split("=") for part in told["edgewise-budget"].split(", "))
    assert tokens == int(budget["sent"]) <= int(budget["limit"]) < int(budget["received"])


def test_an_unknown_window_has_no_limit() -> None:
    assert shown(record(plan(small(model="nobody-knows"), None)))["edgewise-budget"].count("limit") == 0


def test_an_estimate_is_labelled() -> None:
    assert "estimated" in shown(record(plan(small(model="claude-sonnet-4-5"))))["edgewise-budget"]


def test_what_the_side_model_cost_is_told_beside_the_rest() -> None:
    of = record(msgspec.structs.replace(plan(long()), side_tokens=123))
    assert shown(of)["edgewise-budget"].endswith(", side=123")
    assert json.loads(log_line(of, Ending(200, None, 0.1, 0.2)))["side"] == 123


def test_observing_sends_what_was_received_and_shows_what_was_planned() -> None:
    made = plan(long())
    budget = shown(record(made, mode="observe"))["edgewise-budget"]
    assert budget.startswith(f"received={made.received_total}, sent={made.received_total}, planned={made.sent_total}, ")


def test_a_refused_request_sends_nothing() -> None:
    budget = shown(record(plan(hopeless())))["edgewise-budget"]
    assert ", sent=0, " in budget
    assert budget.endswith(", refused")


def test_a_session_cannot_break_a_header() -> None:
    assert shown(record(plan(small()), session="späte\r\nX: 1"))["edgewise-session"] == "sp%C3%A4te%0D%0AX:%201"


def test_a_log_line_is_one_json_object_with_figures_and_no_text() -> None:
    made = plan(long())
    line = log_line(record(made, session="s1"), Ending(200, {"prompt_tokens": 9, "secret": SECRET}, 0.00123, 1.5))
    told = json.loads(line)
    assert "\n" not in line
    assert SECRET not in line
    assert told["received"] == made.received_total
    assert told["sent"] == sum(told["buckets"]["sent"].values())
    assert (told["overhead_ms"], told["upstream_ms"], told["status"]) == (1.23, 1500.0, 200)
    assert told["usage"] == {"prompt_tokens": 9}
    assert told["tenant"] == "t1"
    assert told["time"] == "2026-11-03T10:00:00.250+00:00"


def test_a_refusal_keeps_ranges_and_no_texts() -> None:
    told = record(plan(hopeless())).refused
    assert told is not None
    assert len(told.units) > 1
    assert all("request" not in unit and unit["chars"] for unit in told.units)


def test_cached_tokens_are_told_apart() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": True, "prompt_tokens_details": {"cached_tokens": 3}}
    assert usage_figures(usage) == {"prompt_tokens": 5, "cached_tokens": 3}


@pytest.fixture
def _as_it_was() -> Iterator[None]:
    yield
    REQUESTS.handlers.clear()
    REQUESTS.propagate = True
    REQUESTS.setLevel(logging.NOTSET)


@pytest.mark.usefixtures("_as_it_was")
def test_request_lines_have_no_prefix_and_obey_the_level() -> None:
    stream = io.StringIO()
    log_to(stream)
    made = record(plan(small()))
    REQUESTS.setLevel(logging.WARNING)
    log_requests([(made, Ending(200, None, 0.001, None))])
    REQUESTS.setLevel(logging.INFO)
    log_requests([(made, Ending(499, None, 0.001, None))])
    assert [json.loads(line)["status"] for line in stream.getvalue().splitlines()] == [499]


@pytest.mark.usefixtures("_as_it_was")
def test_a_stream_that_nobody_reads_fails_no_request(capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.StringIO()
    log_to(stream)
    stream.close()
    REQUESTS.setLevel(logging.INFO)
    log_requests([(record(plan(small())), Ending(200, None, 0.001, None))])
    assert "closed file" in capsys.readouterr().err


@pytest.mark.usefixtures("_as_it_was")
def test_without_a_stream_of_their_own_request_lines_are_logged_like_others(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    log_requests([(record(plan(small())), Ending(200, None, 0.001, None))])
    assert [json.loads(one.getMessage())["status"] for one in caplog.records] == [200]
