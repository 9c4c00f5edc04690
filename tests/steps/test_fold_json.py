import json

from support.folding_check import check
from support.prompts import draft, edits, lines, round_of, rows, texts, user

from policies.plan import Rewrite
from policies.steps.fold_json import FoldJson

LARGE = rows(400)
IMAGE = {"type": "image_url", "image_url": {"url": "http://127.0.0.1/a.png"}}


def test_a_large_json_result_is_folded_and_true_to_its_source() -> None:
    made = draft([user("a"), *round_of(0, LARGE)], limit=4000)
    (edit,) = edits(FoldJson(), made)
    assert isinstance(edit, Rewrite)
    assert edit.span == "m2"
    folded = texts(made)[2]
    assert check(LARGE, folded) > 0
    assert made.total <= 4000


def test_no_more_is_folded_than_is_needed() -> None:
    before = draft([user("a"), *round_of(0, LARGE)])
    made = draft([user("a"), *round_of(0, LARGE)], limit=before.total - 500)
    edits(FoldJson(), made)
    assert before.total - 2000 < made.total <= before.total - 500


def test_when_enough_is_free_the_next_is_left_alone() -> None:
    received = draft([user("a"), *round_of(0, LARGE), *round_of(1, LARGE)])
    made = draft([user("a"), *round_of(0, LARGE), *round_of(1, LARGE)], limit=received.total - 300)
    assert [edit.span for edit in edits(FoldJson(), made) if isinstance(edit, Rewrite)] == ["m2"]
    assert texts(made)[4] == LARGE


def test_small_results_text_and_pictures_are_left_alone() -> None:
    small = draft([user("a"), *round_of(0, rows(20))], limit=100_000)
    small.target = 10
    assert edits(FoldJson(), small) == []
    text = draft([user("a"), *round_of(0, lines(400))], limit=4000)
    assert edits(FoldJson(), text) == []
    picture = round_of(0, "x")
    picture[1]["content"] = [{"type": "text", "text": LARGE}, IMAGE]
    assert edits(FoldJson(), draft([user("a"), *picture], limit=4000)) == []


def test_json_in_parts_is_folded_too() -> None:
    parts = round_of(0, "x")
    parts[1]["content"] = [{"type": "text", "text": LARGE}]
    made = draft([user("a"), *parts], limit=4000)
    assert len(edits(FoldJson(), made)) == 1
    json.loads(texts(made)[2])
