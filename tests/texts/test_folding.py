import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.documents import document
from support.folding_check import GONE, check, shown
from support.pieces import pieces
from support.shared import rows, shared

from policies.texts.folding import MARK, fold_json, fold_to_shape, tabulate
from policies.texts.stubs import by_ref

CODES = [[f"TCK-{index:04d}", "x" * 30] for index in range(90)]
REF = "tr_0123456789abcdef"
BACK = by_ref(REF)
WORD = st.sampled_from(["id", "name", "status", "error", "items", "data", "note", "ok", "meta", "价格", 'a"b'])
SCALAR = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.text("ab \n错误。", min_size=60, max_size=600),
    st.sampled_from(["ok", "failed", "TypeError: x", "HAT123", "\ud800"]),
)
ROWS = st.lists(st.fixed_dictionaries({"id": st.integers(), "status": st.sampled_from(["ok", "failed"]), "v": SCALAR}))
DOCUMENT: st.SearchStrategy[Any] = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=40) | st.dictionaries(WORD, inner, max_size=8) | ROWS, max_leaves=80
)


def folded(value: Any, keep: int, back: str = "") -> Any:
    source = value if isinstance(value, str) else json.dumps(value)
    made = fold_json(source, keep_tokens=keep, measure=pieces, back=back)
    assert made is not None
    check(source, made.text)
    return json.loads(made.text)


def test_a_shipment_keeps_its_scalars_and_names_its_trace() -> None:
    source = (
        '{"shipment_id": "SHP-88213", "status": "exception", "weight": 12.50, "value": 1e5, "customs": null, "trace": ['
        + ", ".join(f'{{"at": "2024-05-1{day}", "place": "HUB", "event": "scanned"}}' for day in range(6))
        + "]}"
    )
    made = fold_json(source, keep_tokens=65, measure=pieces)
    assert made is not None
    assert made.text == (
        '{"shipment_id":"SHP-88213","status":"exception","weight":12.50,"value":1e5,"customs":null,'
        '"trace":[{"…":"6 of 6 items not shown"}]}'
    )
    assert (made.tokens, made.lossless) == (pieces(made.text), False)
    assert check(source, made.text) == 5


def test_an_envelope_is_opened_and_its_status_stays() -> None:
    items = [{"id": index, "tag": "x" * 40} for index in range(300)]
    shown = folded({"result": {"status": "done", "items": items}}, 60)
    assert shown["result"]["status"] == "done"
    assert folded([{"result": {"status": "done", "items": items}}], 60)[0]["result"]["status"] == "done"


def test_white_space_goes_first_and_then_nothing_else_has_to() -> None:
    source = '{\n  "a" : [ 1.0, 1e5 ],\n  "b" : "two  spaces"\n}'
    made = fold_json(source, keep_tokens=30, measure=pieces)
    assert made is not None
    assert (made.text, made.lossless) == ('{"a":[1.0,1e5],"b":"two  spaces"}', True)


def test_alike_rows_become_a_table_before_any_is_dropped() -> None:
    source = json.dumps([{"identifier": index, "description": "x"} for index in range(50)])
    made = fold_json(source, keep_tokens=450, measure=pieces)
    assert made is not None
    assert made.lossless
    assert json.loads(made.text) == {
        MARK: "table of 50 rows",
        "columns": ["identifier", "description"],
        "rows": [[index, "x"] for index in range(50)],
    }


def test_errors_and_outliers_of_an_array_stand_at_their_index() -> None:
    items: list[dict[str, Any]] = [{"id": index, "ms": 20 + index % 3, "state": "ok"} for index in range(500)]
    items[317]["state"] = "failed"
    items[402]["ms"] = 90_000
    shown = folded(items, 200)
    assert shown[MARK].startswith("table of 500 rows; ")
    assert (shown["317"], shown["402"]) == ([317, 22, "failed"], [402, 90_000, "ok"])
    mixed = folded([*items[:100], "just text", *items[100:]], 120)
    assert mixed[-1]["100"] == "just text"


def test_errors_without_room_are_counted() -> None:
    shown = folded([{"id": index, "error": f"boom {index}"} for index in range(500)], 80)
    assert re.search(r"^\d+ of 500 items not shown, \d+ of them report problems", shown[-1][MARK])


def test_an_error_deep_below_survives_with_its_path() -> None:
    deep: dict[str, Any] = {"pad": ["x" * 30] * 40, "error": {"message": "disk full"}}
    for level in range(30):
        deep = {"level": level, "inner": deep, "pad": ["y" * 30] * 40}
    assert "disk full" in json.dumps(folded(deep, 700))


def test_a_long_string_is_an_excerpt_that_says_so() -> None:
    shown = folded({"log": "all is well. " * 500, "id": 7}, 120)
    assert shown["id"] == 7
    assert shown["log"][MARK] == "string of 6,500 characters"
    assert shown["log"]["excerpt"].startswith("all is well. ")
    assert " characters, are not shown here." in shown["log"]["excerpt"]


def test_a_map_of_many_members_keeps_plain_values_and_errors() -> None:
    source: dict[str, Any] = {f"host{index}": {"up": True, "load": [1, 2, 3] * 10} for index in range(400)}
    source["host333"] = {"up": True, "error": "disk full", "load": [1, 2, 3] * 10}
    source["total"] = 400
    shown = folded(source, 150)
    assert shown["total"] == 400
    assert shown["host333"]["error"] == "disk full"
    assert re.match(r"\d+ of 401 members not shown: host\d+, host\d+, .*, …", shown[MARK])


def test_a_name_too_long_to_list_is_cut() -> None:
    shown = folded({"a": {"k" * 90: [1] * 50, "b": [1] * 50}, "c": [2] * 300}, 40)
    assert f"{'k' * 40}…" in json.dumps(shown, ensure_ascii=False)


@pytest.mark.parametrize("source", [{"items": CODES}, CODES])
def test_the_ref_and_the_identifiers_that_went_stand_at_the_root(source: Any) -> None:
    shown = folded(source, 160, BACK)
    said = shown[MARK] if isinstance(shown, dict) else shown[-1][MARK]
    assert f'; read_tool_result(ref="{REF}") shows them; they name: ' in said


def test_the_root_of_an_array_that_lost_none_of_its_items_gets_a_note_of_its_own() -> None:
    shown = folded([{"log": "fine. " * 900, "id": 7}, {"id": 8}], 250, BACK)
    assert shown[-1] == {MARK: f'parts are not shown; read_tool_result(ref="{REF}") shows them'}


def test_the_root_of_an_array_gets_one_note() -> None:
    shown = folded([["A1234 " + "x. " * 900, "B5678"]], 260, BACK)
    assert shown[-1][MARK].startswith(f'parts are not shown; read_tool_result(ref="{REF}") shows them')
    assert len(shown) == 2


def test_what_is_small_stays_whole() -> None:
    assert folded({"a": {"b": {"c": [1, 2]}}, "d": [3] * 900}, 40)["a"] == {"b": {"c": [1, 2]}}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain text",
        '"a string"',
        "12",
        "{broken",
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        '{"…": "12 of 14 members not shown: x", "a": 1}',
        "[" * 101 + "]" * 101,
        "[" * 100_000,
        '{"a":1}',
        "[]",
    ],
)
def test_what_cannot_be_folded_truly_or_get_shorter_is_left(text: str) -> None:
    assert fold_json(text, keep_tokens=3, measure=pieces) is None


def test_a_fold_uses_most_of_its_target() -> None:
    source = json.dumps({"rows": [{"id": f"A-{index:04d}", "n": index, "tags": ["x", "y"]} for index in range(3000)]})
    for keep in (200, 1000, 5000):
        made = fold_json(source, keep_tokens=keep, measure=pieces)
        assert made is not None
        assert keep * 0.7 <= made.tokens <= keep


def test_a_fold_uses_most_of_its_target_where_the_rows_lie_deep() -> None:
    row = {"id": "rec_8fcc0050810d", "ok": True, "title": "valve checked near the pump", "tags": ["a b", "c d"]}
    source = json.dumps({"data": {"items": [row | {"index": index} for index in range(46)], "next": None}, "n": 1})
    whole = pieces(source)
    for share in (0.2, 0.3, 0.4, 0.5, 0.6):
        made = fold_json(source, keep_tokens=int(whole * share), measure=pieces)
        assert made is not None
        check(source, made.text)
        assert 0.7 * share * whole <= made.tokens <= share * whole


def test_deeper_levels_of_which_no_item_fits_stay_closed() -> None:
    source = json.dumps({"a": {"rows": [{"text": "word " * 400} for _ in range(9)], "n": 1}, "b": 2})
    made = fold_json(source, keep_tokens=40, measure=pieces)
    assert made is not None
    check(source, made.text)
    assert made.tokens <= 40


@settings(deadline=None)  # each example is folded several times, and the machine may be busy
@given(DOCUMENT, st.integers(10, 300), st.sampled_from(["", BACK]))
def test_any_fold_is_true_json_shorter_and_the_same_again(value: Any, keep: int, back: str) -> None:
    for source in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        made = fold_json(source, keep_tokens=keep, measure=pieces, back=back)
        if made is not None:
            check(source, made.text)
            assert len(made.text) < len(source)
            assert made == fold_json(source, keep_tokens=keep, measure=pieces, back=back)


def test_every_recorded_json_result_folds_truly() -> None:
    texts = [
        message["content"]
        for session in rows(shared("data/sessions.jsonl"))
        for message in session["messages"]
        if message["role"] == "tool" and isinstance(message["content"], str)
    ]
    made = [(text, fold_json(text, keep_tokens=keep, measure=pieces)) for text in texts for keep in (60, 200, 1000)]
    assert sum(check(text, one.text) for text, one in made if one is not None) > 1000


def test_generated_documents_fold_truly_by_size_by_shape_and_into_tables() -> None:
    for index in range(60):
        given_ = document(7, index)
        made = [fold_json(given_.text, keep_tokens=keep, measure=pieces) for keep in (60, 400)]
        made.append(fold_to_shape(given_.text, depth=2, items=1, measure=pieces))
        texts = [one.text for one in made if one is not None] + [text for text in [tabulate(given_.text)] if text]
        assert all(check(given_.text, text) >= 0 for text in texts)
        assert len(texts) < 2 or min(map(len, texts)) < len(given_.text)


def test_problems_and_outliers_of_a_large_array_survive_the_shape_of_the_textbook() -> None:
    ok = {"status": "ok", "ms": 100, "note": "as ever"}
    rows_ = [{"id": f"R-{index}", **ok} for index in range(200)]
    rows_[57] |= {"status": "timeout"}
    rows_[120] |= {"ms": 9_000_000}
    source = json.dumps({"data": {"rows": rows_, "next": None}})
    made = fold_to_shape(source, depth=2, items=1, measure=pieces)
    assert made is not None
    left = json.loads(made.text)
    assert shown(left, ("data", "rows", 57, "status")) == "timeout"
    assert shown(left, ("data", "rows", 120, "ms")) == 9_000_000
    assert shown(left, ("data", "rows", 58)) is GONE
    assert not made.lossless


def test_what_has_nothing_to_fold_or_to_tabulate_is_left() -> None:
    assert fold_to_shape("plain text", depth=2, items=1, measure=pieces) is None
    assert fold_to_shape('{"a":1}', depth=2, items=1, measure=pieces) is None
    assert tabulate("plain text") is None
    assert tabulate('{"a": 1}') is None


def test_what_only_lies_too_deep_goes_and_the_rest_stays_whole() -> None:
    value: Any = [f"deep {number}" for number in range(200)]
    for level in range(14):
        value = {"level": level, "next": value, "name": f"name of level {level}"}
    shown_ = folded(value, pieces(json.dumps(value)) // 2)
    assert shown(shown_, ("next",) * 10 + ("name",)) == "name of level 3"
    assert shown(shown_, ("next",) * 14) is GONE
