import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pieces import pieces

from policies.texts.stubs import AGAIN, Left, Naming, by_ref, pointer, reports_problem, stub, window_note

REF = "tr_0123456789abcdef"


def test_a_text_result_becomes_one_line() -> None:
    text = "\n---\nRESERVATION for Raj\nflight HAT123 on 2024-05-21\n" + "filler words\n" * 200
    assert stub("get_booking", text, 1234, measure=pieces) == (
        "[… get_booking succeeded and was used earlier; its 1,234 tokens are no longer shown;"
        " it began: RESERVATION for Raj; it named: HAT123 2024-05-21]"
    )


def test_a_json_result_becomes_an_object() -> None:
    text = json.dumps({"reservation_id": "4OG6T3", "flights": [{"number": "HAT123"}]})
    assert json.loads(stub("get_booking", text, 88, measure=pieces)) == {
        "…": "get_booking succeeded and was used earlier; its 88 tokens are no longer shown",
        "held": "an object with reservation_id, flights",
        "named": "4OG6T3 HAT123",
    }


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("{}", "an object with no members"),
        ("[]", "an array of 0 items"),
        ("[1, 2]", "an array of 2 items"),
        ('[{"id": 1, "n": 2}, {"id": 2}]', "an array of 2 objects with id, n"),
        (
            json.dumps({f"k{n}": n for n in range(10)}),
            "an object with " + ", ".join(f"k{n}" for n in range(8)) + " and 2 others",
        ),
    ],
)
def test_a_json_stub_says_what_the_result_held(text: str, held: str) -> None:
    assert json.loads(stub("f", text, 9, measure=pieces))["held"] == held


@pytest.mark.parametrize("text", ["{broken json HAT123", "[2024-05-21 10:00] HAT123 left", "[" * 600 + "HAT123"])
def test_what_only_looks_like_json_is_text(text: str) -> None:
    assert stub("f", text, 9, measure=pieces).startswith("[… f succeeded and was used earlier; its 9 tokens")


def test_the_way_back_is_named_when_there_is_one() -> None:
    assert f'no longer shown, read_tool_result(ref="{REF}") shows them; it began: some text]' in stub(
        "f", "some text", 9, measure=pieces, back=by_ref(REF)
    )
    assert json.loads(stub("f", "[1]", 9, measure=pieces, back=by_ref(REF)))["…"].endswith(f'(ref="{REF}") shows them')
    assert "no longer shown, calling it again shows them" in stub("f", "some text", 9, measure=pieces, back=AGAIN)


def test_a_result_that_was_a_problem_is_not_called_a_success() -> None:
    said = stub("read_file", "Error: no such file a/b.py\n", 9, measure=pieces)
    assert said == (
        "[… read_file was answered with a problem, seen earlier; its 9 tokens are no longer shown;"
        " it began: Error: no such file a/b.py]"
    )
    assert "answered with a problem" in stub("f", '{"error": "disk full"}', 9, measure=pieces)
    assert "answered with a problem" not in stub("f", '{"errors": [], "ok": true}', 9, measure=pieces)
    assert "answered with a problem" not in stub("f", '[{"error": "disk full"}]', 9, measure=pieces)
    assert "answered with a problem" not in stub("f", '{"a": 1, "a": 2}', 9, measure=pieces)


def test_a_long_first_line_is_cut_between_words_and_an_empty_result_has_none() -> None:
    said = stub("", "word " * 100, 100, measure=pieces)
    assert said == (
        "[… the call succeeded and was used earlier; its 100 tokens are no longer shown; it began: "
        + "word " * 24
        + "…]"
    )
    assert (
        stub("f", " \n--\n", 3, measure=pieces)
        == "[… f succeeded and was used earlier; its 3 tokens are no longer shown]"
    )


def test_older_rounds_leave_one_note_with_their_calls_and_identifiers() -> None:
    note = window_note(Left(12, 34567, {"read_file": 3, "search": 7}), names="HAT123 TCK-4821")
    assert note == (
        "[… 12 earlier rounds of this conversation (34,567 tokens) are no longer shown; all was answered and acted on."
        " Calls made: search ×7, read_file ×3. They named: HAT123 TCK-4821]"
    )
    assert window_note(Left(1, 50, {})) == (
        "[… 1 earlier round of this conversation (50 tokens) is no longer shown; all was answered and acted on.]"
    )
    assert window_note(Left(0, 50, {})).startswith("[… Earlier messages of this conversation (50 tokens)")


def test_many_tools_are_not_all_listed() -> None:
    note = window_note(Left(9, 9, {f"tool_{n}": 1 for n in range(20)}))
    assert note.endswith("tool_7 ×1 and 12 others.]")


@given(st.text(max_size=500), st.integers(0, 100))
def test_a_stub_is_short_the_same_again_and_reads_as_no_failure(text: str, cap: int) -> None:
    said = stub("f", text, 500, measure=pieces, naming=Naming(cap))
    assert said == stub("f", text, 500, measure=pieces, naming=Naming(cap))
    assert pieces(said) <= cap + 40 + 120
    assert not re.search("omitted|truncated", said.replace(text, ""))


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_the_stub_of_json_is_json(value: object) -> None:
    said = stub("f", json.dumps([value]), 500, measure=pieces)
    assert set(json.loads(said)) <= {"…", "held", "named"}


def test_what_stands_for_an_older_copy_says_where_the_newer_one_is() -> None:
    assert pointer("read", "some text", 1234, "it stands below") == (
        "[… read succeeded; its 1,234 tokens are no longer shown here: it stands below]"
    )
    assert pointer("", "some text", 9, "it stands below", "HAT123").endswith("it stands below; it named: HAT123]")
    assert json.loads(pointer("read", '{"a": 1}', 9, "it stands below", "HAT123")) == {
        "…": "read succeeded; its 9 tokens are no longer shown here: it stands below",
        "named": "HAT123",
    }
    assert json.loads(pointer("read", "[1]", 9, "below")).keys() == {"…"}


@pytest.mark.parametrize(
    ("text", "does"),
    [("ERROR: locked\nrows", True), ("rows\nERROR", False), ('{"error": "locked"}', True), ('{"rows": []}', False)],
)
def test_a_result_that_reports_a_problem_is_told_apart(text: str, does: bool) -> None:
    assert reports_problem(text) is does
