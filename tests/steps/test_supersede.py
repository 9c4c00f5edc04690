import json
from typing import Any

from support.prompts import calls, draft, edits, lines, result, rows, texts, user

from policies.plan import Elide
from policies.refs import Refs
from policies.steps.supersede import Supersede

OLD, NEW = lines(20) + "\nTCK-4821 was open", lines(22)


def read(number: int, text: str, arguments: str = '{"path": "a.log"}', name: str = "read_file") -> list[dict[str, Any]]:
    return [calls((f"c{number}", name), arguments=arguments), result(f"c{number}", text)]


def superseded(*rounds: list[dict[str, Any]], step: Supersede | None = None, free: int | None = None) -> list[str]:
    messages = [user("a"), *(message for one in rounds for message in one)]
    made = draft(messages, limit=5 if free is None else draft(messages).total - free)
    return [edit.span for edit in edits(step or Supersede(), made) if isinstance(edit, Elide)]


def test_an_older_read_of_the_same_resource_says_that_a_newer_one_stands_below() -> None:
    made = draft([user("a"), *read(0, OLD), *read(1, NEW)], limit=5)
    (edit,) = edits(Supersede(), made)
    assert isinstance(edit, Elide)
    assert (edit.because, edit.check) == ("superseded by m4", "a later result exists")
    assert texts(made)[2].startswith("[… read_file succeeded; its ")
    assert "it was read again, and the newer result stands further down; it named: " in texts(made)[2]
    assert "TCK-4821" in texts(made)[2]
    assert texts(made)[4] == NEW


def test_json_is_replaced_by_json() -> None:
    made = draft([user("a"), *read(0, rows(12)), *read(1, rows(9))], limit=5)
    edits(Supersede(), made)
    assert json.loads(texts(made)[2]).keys() == {"…", "named"}


def test_other_resources_other_parts_and_other_tools_do_not_replace_it() -> None:
    assert superseded(read(0, OLD), read(1, NEW, '{"path": "b.log"}')) == []
    assert superseded(read(0, OLD), read(1, NEW, '{"path": "a.log", "offset": 20}')) == []
    assert superseded(read(0, OLD), read(1, NEW, name="stat_file")) == []
    assert superseded(read(0, OLD, '{"query": "a"}'), read(1, NEW, '{"query": "a"}')) == []
    assert superseded(read(0, OLD, '{"path": "a.log", "limit": 9}'), read(1, NEW)) == ["m2"]


def test_a_failure_and_a_far_shorter_result_replace_nothing() -> None:
    assert superseded(read(0, OLD), read(1, "unchanged since your last read")) == []
    assert superseded(read(0, OLD), read(1, "ERROR: a.log is locked\n" + NEW)) == []
    failed = json.dumps({"error": "locked", "rows": json.loads(rows(20))})
    assert superseded(read(0, OLD), read(1, failed)) == []


def test_a_failure_in_between_does_not_hide_the_newer_result() -> None:
    assert superseded(read(0, OLD), read(1, NEW), read(2, "ERROR: a.log is locked")) == ["m2"]


def test_small_results_results_without_a_call_and_the_newest_round_stay() -> None:
    assert superseded(read(0, "ok"), read(1, "ok")) == []
    assert superseded([result("lost", OLD)], read(1, NEW)) == []
    twice = [calls(("c1", "read_file"), ("c2", "read_file"), arguments='{"path": "a"}')]
    assert superseded([*twice, result("c1", OLD), result("c2", NEW)]) == []


def test_when_enough_is_free_the_next_is_left_alone_unless_it_is_always_done() -> None:
    rounds = read(0, OLD), read(1, OLD), read(2, NEW)
    assert superseded(*rounds, free=30) == ["m2"]
    assert superseded(*rounds, step=Supersede(when="always"), free=30) == ["m2", "m4"]


def test_the_older_read_can_be_read_again() -> None:
    made = draft([user("a"), *read(0, OLD), *read(1, NEW)], limit=5)
    made.refs = Refs(b"key")
    edits(Supersede(), made)
    ref = made.refs.ref_of(OLD)
    assert f'stands further down; read_tool_result(ref="{ref}") shows them; it named: ' in texts(made)[2]
