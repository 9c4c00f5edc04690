import json

import pytest

from proxy.cli.demo_tools import ANSWERS, TOOLS, pick, run


def test_every_tool_that_is_offered_answers() -> None:
    assert [tool["function"]["name"] for tool in TOOLS] == list(ANSWERS)
    assert len(TOOLS) == 12


@pytest.mark.parametrize("name", [name for name in ANSWERS if name != "post_update"])
def test_answers_are_about_as_long_as_asked_and_the_same_each_time(name: str) -> None:
    answer = run(name, {"service": "pricing"}, 3_000)
    assert 3_000 <= len(answer) < 3_600
    assert run(name, {"service": "pricing"}, 3_000) == answer


def test_answers_depend_on_what_was_asked() -> None:
    assert run("search_logs", {"service": "pricing"}, 900) != run("search_logs", {"service": "ledger"}, 900)


def test_rows_are_json_and_counted() -> None:
    told = json.loads(run("query_metrics", {"service": "pricing"}, 1_000))
    assert told["count"] == len(told["points"]) > 5
    assert told["query"] == {"service": "pricing"}


def test_the_same_seed_picks_the_same_number_on_every_machine() -> None:
    assert pick("log", 1) == 2_474_395_790
