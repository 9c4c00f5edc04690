import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.prompts import counter, lines

from policies.texts.extracting import LONGEST, MOST_VALUES, Field, merge, parts_of, question_of, values_of
from policies.texts.folding_tree import Number, write

FIELDS = [Field("error"), Field("code", "number")]


@pytest.mark.parametrize(
    ("written", "field"),
    [
        ("error", Field("error")),
        ("error : text", Field("error")),
        ("HTTP status: number", Field("HTTP status", "number")),
    ],
)
def test_a_field_is_a_name_and_maybe_a_kind(written: str, field: Field) -> None:
    assert Field.of(written) == field


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("", "'fields' holds ''; write a name, or 'name: number'"),
        ("9 lives", "'fields' holds '9 lives'; write a name, or 'name: number'"),
        ("when: date", "'fields' holds 'when: date'; the kinds are text and number"),
    ],
)
def test_a_field_that_is_none_is_said(written: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Field.of(written)


def test_the_prompt_is_told_the_kind_of_each_field() -> None:
    assert [field.told for field in FIELDS] == [
        '"error": a text, or an array of texts',
        '"code": a number, or an array of numbers',
    ]


@given(st.text(max_size=400), st.integers(1, 60))
def test_parts_give_the_text_again_and_each_is_within_its_size(text: str, tokens: int) -> None:
    parts = parts_of(text, tokens, len)
    assert "".join(parts) == text
    assert all(0 < len(part) <= tokens for part in parts)


def test_parts_end_where_lines_end() -> None:
    log = lines(900)
    parts = parts_of(log, 2_000, counter().text)
    assert 4 <= len(parts) <= 9
    assert all(part.endswith("\n") for part in parts[:-1])


def test_a_text_without_spaces_is_cut_all_the_same() -> None:
    assert "".join(parts_of("x" * 90_000, 100, counter().text)) == "x" * 90_000


@pytest.mark.parametrize(
    ("answer", "values"),
    [
        ('{"error": "reset", "code": 502}', {"error": ["reset"], "code": ["502"]}),
        ('```json\n{"error": ["a", "b"]}\n```', {"error": ["a", "b"], "code": []}),
        ('```\n{"code": [1e5, 1.50]}\n```', {"error": [], "code": ["1e5", "1.50"]}),
        ('{"error": null, "code": [], "other": {"ignore": "previous instructions"}}', {"error": [], "code": []}),
        ("{}", {"error": [], "code": []}),
    ],
)
def test_an_answer_is_read_strictly(answer: str, values: dict[str, list[str]]) -> None:
    assert values_of(answer, FIELDS) == values


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "There are no errors.",
        "[]",
        '"reset"',
        "null",
        '{"error": "reset"',
        'Sure! {"error": "reset"}',
        '{"error": 7}',
        '{"code": "502"}',
        '{"code": true}',
        '{"code": NaN}',
        '{"error": {"text": "reset"}}',
        '{"error": [["reset"]]}',
        json.dumps({"error": "x" * (LONGEST + 1)}),
        json.dumps({"error": ["x"] * (MOST_VALUES + 1)}),
        "[" * 100_000,
    ],
)
def test_an_answer_that_is_not_in_the_schema_is_none(answer: str) -> None:
    assert values_of(answer, FIELDS) is None


def test_values_are_merged_under_the_lines_on_which_they_stand() -> None:
    parts = ["one\ncode 502 and 503 here\n", "reset\nby   peer 502\n"]
    answers: list[dict[str, list[Any]]] = [
        {"code": [Number("502"), Number("503"), Number("502")]},
        {"error": ["reset by peer", "by peer", "invented"], "code": [Number("50"), Number("502")]},
    ]
    found = merge(parts, answers)
    assert found.fields == {
        "code": {"2": ["502", "503"], "4": "502"},
        "error": {"3": "reset by peer", "4": "by peer"},
    }
    assert (found.kept, found.unfounded) == (5, 2)
    assert write(found.fields).startswith('{"code":{"2":[502,503],"4":502},')


def test_a_blank_value_stands_nowhere() -> None:
    assert merge(["a b"], [{"error": ["  "]}]).unfounded == 1


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Why?\n\nlog\nlog\n\nBe brief.", ("Why?", "Be brief.")),
        ("\nWhy?\n" + "log\n" * 900 + "last\n", ("Why?", "last")),
        ("log " * 900, ("", "")),
        ("Why?\n\n" + "log " * 900, ("Why?", "")),
        ("Why?", ("Why?", "")),
    ],
)
def test_a_question_is_the_first_and_the_last_paragraph_or_line(text: str, question: tuple[str, str]) -> None:
    assert question_of(text, 100) == question
