import json
import random
import re

import pytest
from support.pieces import pieces

from policies.paging import LEAST, PAGE, answered, text_of
from policies.readback_tool import Amount, Ask, asked

REF = "tr_0123456789abcdef"
LINES = "\n".join(f"line {number}: 价格 {number * 7} 😀" for number in range(1, 3001))
ONE_LINE = json.dumps([{"id": f"ORD-{number:05d}", "note": "ünï" * (number % 9)} for number in range(2000)])


def read(original: str | None, cap: int = PAGE, /, **arguments: object) -> str:
    ask = asked(json.dumps({"ref": REF, **arguments}))
    return answered(
        ask, None if original is None else original.encode("utf-8", "surrogatepass"), measure=pieces, cap=cap
    )


def page(original: str, **arguments: object) -> tuple[str, str]:
    head, _, text = read(original, **arguments).partition("\n")
    return head, text


def onward(head: str) -> int | None:
    return int(head.rpartition('go on with offset="')[2].rstrip('"]')) if "go on" in head else None


@pytest.mark.parametrize("seed", range(20))
def test_pages_put_together_are_the_original_byte_for_byte_and_none_costs_more_than_4000_tokens(seed: int) -> None:
    chance = random.Random(seed)
    letters = chance.choice(
        ["ab \n", "价格表\n", "\u2028x\r\n", "😀é", '{}[]",:0123', " ", "\ud800a\n", "1234567890abcdef"]
    )
    text = "".join(chance.choices(letters, k=chance.choice([1, 300, 30_000, 120_000])))
    cap, limit = chance.choice([PAGE, 500]), chance.choice([None, 2000, "L7"])
    read_back, following = "", onward('go on with offset="0"]')
    while following is not None:
        at = following
        answer = read(text, cap, offset=at, limit=limit)
        assert pieces(answer) <= cap <= 4000
        head, _, part = answer.partition("\n")
        read_back += part
        following = onward(head)
        assert following is None or following > at
    assert read_back.encode("utf-8", "surrogatepass") == text.encode("utf-8", "surrogatepass")


def test_the_first_line_says_what_is_shown_of_how_much_and_how_to_go_on() -> None:
    assert page("one\ntwo\nthree", limit=6) == (
        '[characters 0 to 6, lines 1 to 2 of 13 characters in 3 lines; go on with offset="6"]',
        "one\ntw",
    )
    assert page("one\ntwo\nthree", offset="8") == (
        "[characters 8 to 13, lines 3 to 3 of 13 characters in 3 lines; the end]",
        "three",
    )


def test_lines_are_addressed_too() -> None:
    assert page("one\ntwo\nthree\nfour", offset="L2", limit="2 lines")[1] == "two\nthree\n"
    assert page("one\ntwo\nthree", offset="L0")[1] == "one\ntwo\nthree"
    assert page("one\ntwo\nthree", offset="L-1")[1] == "three"
    assert page("one\ntwo", offset="L9")[0] == "[7 characters in 2 lines: nothing stands at or behind 7]"


def test_a_negative_offset_counts_from_the_end() -> None:
    assert page("one\ntwo\nthree", offset=-5)[1] == "three"
    assert page("one", offset=-50)[1] == "one"


def test_a_page_that_is_full_ends_with_a_line_where_one_ends_near() -> None:
    head, text = page(LINES)
    assert text.endswith("\n")
    assert onward(head) == len(text)
    assert pieces(text) > PAGE // 2
    assert not page(ONE_LINE)[1].endswith("\n")


def test_an_offset_behind_the_end_and_an_empty_result_say_so() -> None:
    assert read("one", offset=7) == "[3 characters in 1 lines: nothing stands at or behind 7]"
    assert read("") == "[the result is empty]"


def test_what_is_not_stored_any_longer_is_said_plainly() -> None:
    assert read(None).startswith(f"[nothing is stored under {REF} (any longer): it has expired")


def test_a_search_shows_each_line_with_its_place() -> None:
    assert read("alpha\nbeta 7\ngamma 7", grep="\\d") == (
        "[2 matches in characters 0 to 20, lines 1 to 3 of 20 characters in 3 lines; the end]\n"
        "line 2, character 6: beta 7\n"
        "line 3, character 13: gamma 7"
    )
    assert (
        read("alpha", grep="x") == "[no match in characters 0 to 5, lines 1 to 1 of 5 characters in 1 lines; the end]"
    )


def test_a_search_that_shows_as_many_as_were_wanted_says_where_to_go_on() -> None:
    head, text = page(LINES, grep="line 1", limit=3)
    assert (head.partition(" in ")[0], text.count("\n")) == ("[3 matches", 2)
    following = onward(head)
    assert following is not None
    assert page(LINES, grep="line 1", limit=1, offset=following)[1].startswith("line 12, character ")


@pytest.mark.parametrize("text", [LINES, ONE_LINE])
def test_searching_on_finds_every_match_once_within_the_same_cap(text: str) -> None:
    found, at = list[str](), 0
    while True:
        answer = read(text, grep="00[37]\\d|9: ", offset=at)
        assert pieces(answer) <= PAGE
        head, *shown = answer.split("\n")
        found += shown
        following = onward(head)
        if following is None:
            break
        assert following > at
        at = following
    places = [int(line.partition("character ")[2].partition(":")[0]) for line in found]
    assert places == sorted(set(places))
    if text is LINES:
        assert [place for place in places if place] == [
            match.start() for match in re.finditer(r"^.*(00[37]\d|9: ).*$", LINES, re.MULTILINE)
        ]


def test_a_match_that_is_larger_than_a_page_is_cut() -> None:
    answer = read("价" * 399, LEAST, grep="价")
    assert pieces(answer) <= LEAST
    assert answer.startswith("[1 match in ")


def test_a_search_of_much_text_stops_where_its_work_is_done_and_says_so() -> None:
    head, _ = page("a" * 600_000, grep="a.*b")
    assert head.startswith("[no match in characters 0 to 9")
    assert onward(head) is not None


def test_what_was_no_utf_8_is_still_shown() -> None:
    assert text_of(b"a\xff") == "a\ufffd"
    assert Ask(REF).offset == Amount(0)
