import json

from support.folding_check import check
from support.prompts import calls, draft, edits, lines, result, round_of, rows, texts, user

from policies.plan import Rewrite
from policies.refs import Refs
from policies.steps.fold_json import FoldJson

LARGE = rows(400)
IMAGE = {"type": "image_url", "image_url": {"url": "http://127.0.0.1/a.png"}}


def test_a_large_json_result_is_folded_and_true_to_its_source() -> None:
    made = draft([user("a"), *round_of(0, LARGE), *round_of(1, "ok")], limit=4000)
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


SHIPMENT = json.dumps(
    {
        "shipment_id": "SHP-99312",
        "status": "in_transit",
        "weight_kg": 12.5,
        "trace": [{"at": f"2026-11-2{day}T10:00:00Z", "hub": "Leipzig"} for day in range(4)],
    }
)


def test_by_characters_a_shipment_folds_to_its_scalars_whatever_the_pressure() -> None:
    made = draft([user("a"), *round_of(0, SHIPMENT)])
    assert len(SHIPMENT) < 300
    assert made.excess == 0
    (edit,) = edits(FoldJson(over_chars=200, when="always"), made)
    assert isinstance(edit, Rewrite)
    folded = json.loads(texts(made)[2])
    assert (folded["shipment_id"], folded["status"], folded["weight_kg"]) == ("SHP-99312", "in_transit", 12.5)
    assert folded["trace"][-1] == {"…": "3 of 4 items not shown"}
    assert check(SHIPMENT, texts(made)[2]) == 5


def test_by_characters_an_envelope_keeps_its_status() -> None:
    text = json.dumps({"result": {"status": "delivered", "scans": [f"scan {number} at gate" for number in range(20)]}})
    made = draft([user("a"), *round_of(0, text)])
    edits(FoldJson(over_chars=200, when="always"), made)
    assert json.loads(texts(made)[2])["result"]["status"] == "delivered"


def test_by_characters_shorter_results_text_and_what_has_nothing_to_fold_are_left_alone() -> None:
    for text in (
        '{"a": [1, 2, 3, 4, 5, 6, 7, 8, 9]}',
        lines(40),
        json.dumps({"a": "x" * 250}, separators=(",", ":")),
    ):
        assert edits(FoldJson(over_chars=200, when="always"), draft([user("a"), *round_of(0, text)])) == []


def test_always_folds_a_large_result_to_the_size_that_makes_it_large() -> None:
    made = draft([user("a"), *round_of(0, LARGE)], limit=100_000)
    edits(FoldJson(over_tokens=2000, when="always"), made)
    assert 1000 < made.total <= 2100


def test_the_newest_result_stays_whole_while_it_is_not_large_by_itself() -> None:
    newest = rows(250)
    made = draft([user("a"), *round_of(0, LARGE), *round_of(1, newest)], limit=4000)
    assert [edit.span for edit in edits(FoldJson(), made) if isinstance(edit, Rewrite)] == ["m2"]
    assert texts(made)[4] == newest


def test_what_was_folded_to_that_size_is_not_folded_to_it_again() -> None:
    parallel = [calls(*((f"c{number}", "list") for number in range(3))), *(result(f"c{n}", LARGE) for n in range(3))]
    made = draft([user("a"), *parallel, *round_of(9, "ok")], limit=4000)
    made.target = 100
    assert len(edits(FoldJson(), made)) == 3
    assert edits(FoldJson(), made) == []


def test_a_fold_says_the_way_back_and_stays_true_json() -> None:
    made = draft([user("a"), *round_of(0, LARGE), *round_of(1, "ok")], limit=4000)
    made.refs = Refs(b"key")
    edits(FoldJson(), made)
    folded = texts(made)[2]
    assert check(LARGE, folded) > 0
    assert json.loads(folded)
    assert made.refs.ref_of(LARGE) in folded
    assert made.total <= 4000


def test_a_fold_that_loses_nothing_has_no_way_back() -> None:
    source = json.dumps(json.loads(LARGE), indent=8)
    made = draft(
        [user("a"), *round_of(0, source), *round_of(1, "ok")], limit=draft([user("a"), *round_of(0, LARGE)]).total + 60
    )
    made.refs = Refs(b"key")
    edits(FoldJson(), made)
    assert json.loads(texts(made)[2]) == json.loads(LARGE) or "table of 400 rows" in texts(made)[2]
    assert "tr_" not in texts(made)[2]


def test_a_fold_to_a_shape_says_the_way_back_where_something_went() -> None:
    step = FoldJson(over_chars=200, when="always")
    made = draft(
        [user("a"), *round_of(0, LARGE), *round_of(1, json.dumps({"text": "x" * 90, "more": "y" * 200}, indent=9))]
    )
    made.refs = Refs(b"key")
    edits(step, made)
    assert made.refs.ref_of(LARGE) in texts(made)[2]
    assert "tr_" not in texts(made)[4]
