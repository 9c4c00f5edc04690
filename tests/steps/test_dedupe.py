import json

from support.prompts import calls, draft, edits, lines, result, round_of, rows, texts, user

from policies.plan import Elide
from policies.steps.dedupe import Dedupe

LOG, OTHER, ROWS = lines(20), lines(21), rows(12)


def test_older_copies_of_a_result_point_to_the_newest() -> None:
    made = draft([user("a"), *round_of(0, LOG), *round_of(1, OTHER), *round_of(2, LOG), *round_of(3, LOG)], limit=5)
    done = edits(Dedupe(), made)
    assert [edit.span for edit in done if isinstance(edit, Elide)] == ["m2", "m6"]
    left = texts(made)
    assert left[2].startswith("[… read_log succeeded; its ")
    assert left[2].endswith("are no longer shown here: the same text was returned again and stands further down]")
    assert (left[4], left[8]) == (OTHER, LOG)


def test_json_is_replaced_by_json_and_another_tool_is_named() -> None:
    made = draft([user("a"), *round_of(0, ROWS, "list"), *round_of(1, ROWS, "find")], limit=5)
    edits(Dedupe(), made)
    assert json.loads(texts(made)[2])["…"].endswith("stands further down, from find")


def test_copies_within_the_newest_round_small_ones_and_single_ones_stay() -> None:
    newest = [calls(("c1", "read_log"), ("c2", "read_log")), result("c1", LOG), result("c2", LOG)]
    for messages in (newest, [*round_of(0, "ok"), *round_of(1, "ok")], [*round_of(0, LOG), *round_of(1, OTHER)]):
        assert edits(Dedupe(), draft([user("a"), *messages], limit=5)) == []


def test_when_enough_is_free_the_next_is_left_alone_unless_it_is_always_done() -> None:
    messages = [user("a"), *round_of(0, LOG), *round_of(1, LOG), *round_of(2, LOG)]
    limit = draft(messages).total - 50
    assert len(edits(Dedupe(), draft(messages, limit=limit))) == 1
    assert len(edits(Dedupe(when="always"), draft(messages, limit=limit))) == 2
