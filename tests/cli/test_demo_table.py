import json
from typing import Any

from proxy.cli.demo_table import Turn, heading, line, summary
from proxy.cli.tables import PLAIN

BUCKETS = {"system": 60, "tools": 900, "history": 10, "tool_results": 100, "current_turn": 30, "overhead": 15}
UNTOUCHED: dict[str, Any] = {
    "id": "ew_1",
    "outcome": "untouched",
    "level": "none",
    "limit": 1_200,
    "done": {},
    "received": 1_115,
    "sent": 1_115,
    "buckets": {"received": BUCKETS, "sent": BUCKETS},
}
GROWN = BUCKETS | {"tool_results": 5_000}
CUT = BUCKETS | {"tool_results": 90, "summary": 5}
EDITED = UNTOUCHED | {
    "outcome": "edited",
    "level": "history",
    "done": {"elide": 2, "inject": 1},
    "received": 6_015,
    "sent": 1_110,
    "buckets": {"received": GROWN, "sent": CUT},
}
TURNS = [Turn(1, "Why?", "get_runbook", UNTOUCHED), Turn(2, "And now?", "search_logs", EDITED)]


def test_an_untouched_turn_is_one_line() -> None:
    shown = line(TURNS[0], PLAIN)
    assert shown.split() == ["1", "as", "it", "came", "1,115", "60", "900", "10", "100", "30", "15", "Why?"]


def test_an_edited_turn_shows_both_and_what_was_done_and_its_columns_add_up() -> None:
    received, sent = line(TURNS[1], PLAIN).splitlines()
    assert received.split() == ["2", "received", "6,015", "60", "900", "10", "5,000", "30", "15", "And", "now?"]
    assert sent.split()[:8] == ["sent", "1,110", "60", "900", "10", "90", "30", "20"]
    assert sent.endswith("history: 2 stubbed, 1 added")


def test_columns_stand_under_their_titles() -> None:
    title = heading(16_000, 40, 12, PLAIN).splitlines()[-1]
    assert title.index("total") + len("total") == line(TURNS[0], PLAIN).index("1,115") + len("1,115")


def test_the_summary_says_who_was_heaviest_and_that_all_fits() -> None:
    told = summary(TURNS, kept=True)
    assert (told["received_over_limit"], told["sent_over_limit"], told["edited"]) == (1, 0, 1)
    assert "On turn 1 tools were 81% of what was received; on turn 2 tool_results were 83%" in told["text"]
    assert summary(TURNS, kept=False)["text"].splitlines()[-1].startswith("Not every prompt")


def test_a_turn_as_json_has_its_figures() -> None:
    told = json.loads(TURNS[1].as_json())
    assert (told["turn"], told["received_total"], told["sent_total"], told["level"]) == (2, 6_015, 1_110, "history")
    assert told["sent"] == CUT
