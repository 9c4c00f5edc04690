import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.pieces import pieces
from support.prompts import lines, rows

from policies.texts.shrinking import shrink


def test_what_is_short_enough_is_left_alone() -> None:
    text = lines(5)
    assert shrink(text, "f", 1000, pieces) is text


def test_text_is_clipped() -> None:
    made = shrink(lines(200), "f", 300, pieces)
    assert pieces(made) <= 330
    assert made.startswith("station 0 pressure")
    assert "characters, are not shown here" in made


def test_json_is_folded_and_stays_json() -> None:
    made = shrink(rows(200), "f", 400, pieces)
    assert pieces(made) <= 400
    assert "TCK-00000" in json.dumps(json.loads(made))


NESTED = "[" * 300 + "]" * 300


def test_json_that_cannot_be_folded_so_far_becomes_a_stub_with_an_excerpt() -> None:
    made = json.loads(shrink(NESTED, "search", 200, pieces))
    assert made["…"].startswith("search succeeded")
    assert made["held"] == "an array of 1 items"
    assert made["excerpt"].startswith("[[[")


def test_where_there_is_no_room_for_an_excerpt_the_stub_stands_alone() -> None:
    assert json.loads(shrink(NESTED, "search", 100, pieces)).keys() == {"…", "held"}


@pytest.mark.parametrize("text", ["[2024-01-01 10:00] " + lines(100), "{" * 3 + lines(100)])
def test_what_only_looks_like_json_is_clipped(text: str) -> None:
    made = shrink(text, "f", 200, pieces)
    assert pieces(made) <= 240
    assert made.startswith(text[:10])


@settings(deadline=None)
@given(st.integers(1, 120), st.sampled_from([lines, rows]), st.integers(20, 900))
def test_the_form_is_about_as_long_as_asked_for_and_json_stays_json(
    count: int, kind: Callable[[int], str], keep: int
) -> None:
    text = kind(count)
    made = shrink(text, "f", keep, pieces)
    assert made == text or pieces(made) <= max(keep * 1.2 + 20, 90)
    if text.startswith("["):
        json.loads(made)


@pytest.mark.parametrize("text", [lines(200), rows(200), NESTED])
def test_every_form_says_the_way_back_and_stays_as_short(text: str) -> None:
    made = shrink(text, "f", 200, pieces, "there is a way")
    assert pieces(made) <= 220
    assert made.count("there is a way") == 1
