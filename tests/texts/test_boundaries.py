import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.texts.boundaries import cut_after, cut_before, whole_after, whole_before

FAMILY = "👨‍👩‍👧🏽"  # six code points, one grapheme


@pytest.mark.parametrize(
    ("text", "at", "head"),
    [
        ("One para.\n\nTwo lines and more of it.", 14, "One para.\n\n"),
        ("one line\ntwo words more", 12, "one line\n"),
        ("First is. Second one goes on", 12, "First is."),
        ("alpha beta gamma", 12, "alpha beta "),
        ("一二三四五。六七八", 7, "一二三四五。"),
        ("一二三四五六七八九", 5, "一二三四五"),
        ("abcdefghij", 5, "abcde"),
        ("short", 10, "short"),
    ],
)
def test_a_head_ends_at_the_best_boundary_in_reach(text: str, at: int, head: str) -> None:
    assert text[: cut_before(text, at)] == head


@pytest.mark.parametrize(
    ("text", "at", "tail"),
    [
        ("aaaa\n\nbbbb cccc dddd eeee", 3, "bbbb cccc dddd eeee"),
        ("aaaa\nbbbb cccc", 3, "bbbb cccc"),
        ("aaaa\nbbbb cccc", 5, "bbbb cccc"),
        ("It is. Two words here", 4, " Two words here"),
        ("alpha beta gamma", 6, "beta gamma"),
        ("alpha beta gamma", 4, "beta gamma"),
        ("一二三。四五六七八", 3, "四五六七八"),
        ("abcdefghij", 5, "fghij"),
        ("short", 0, "short"),
    ],
)
def test_a_tail_begins_at_the_best_boundary_in_reach(text: str, at: int, tail: str) -> None:
    assert text[cut_after(text, at) :] == tail


@pytest.mark.parametrize(
    ("text", "at", "before", "after"),
    [
        ("ab", 1, 1, 1),
        (FAMILY + "x", 3, 0, len(FAMILY)),
        ("e\u0301x", 1, 0, 2),
        ("a\r\nb", 2, 1, 3),
        ("a\rb", 2, 2, 2),
        ("🇩🇪🇫🇷", 1, 0, 2),
        ("🇩🇪🇫🇷", 2, 2, 2),
        ("\ud83d\ude80", 1, 0, 2),
        ("\u1100\u1161\u11a8", 1, 0, 3),
        ("☎\ufe0f!", 1, 0, 2),
        ("x" + "\u0301" * 200, 100, 36, 164),
        ("ab", 0, 0, 0),
        ("ab", 2, 2, 2),
    ],
)
def test_a_grapheme_is_not_cut_unless_it_is_a_prank(text: str, at: int, before: int, after: int) -> None:
    assert (whole_before(text, at), whole_after(text, at)) == (before, after)


@given(st.text(max_size=300), st.integers(0, 320))
def test_a_cut_stays_within_a_third_and_on_its_side(text: str, at: int) -> None:
    assert cut_before(text, at) <= min(at, len(text))
    assert cut_before(text, at) >= min(at, len(text)) * 2 // 3 - 64
    assert min(at, len(text)) <= cut_after(text, at) <= len(text)


CODE = """\
import os


def first(path):
    with open(path) as lines:

        return [line for line in lines]


# What the second one does.
@cache
def second(path):
    return first(path)
""".replace("return [", "return [" + "0, " * 150)
LOG = "2026-11-30 10:00:01 INFO started\n" * 20 + "2026-11-30 10:00:02 ERROR boom\n" + "    at a.b(C.java:1)\n" * 5
LOG += "2026-11-30 10:00:03 INFO went on\n" * 20


def test_code_is_cut_between_functions_with_what_leads_in_to_them() -> None:
    second = CODE.index("@cache")
    assert cut_before(CODE, second + 20) < second
    assert CODE[cut_after(CODE, 5) :].startswith("def first(path)")
    plain = CODE.replace("# What the second one does.\n@cache\n", "")
    assert plain[cut_before(plain, plain.index("def second") + 20) :].startswith("def second")


def test_a_log_is_cut_between_records_and_not_inside_a_trace() -> None:
    inside = LOG.index("    at a.b") + 60
    assert LOG[cut_before(LOG, inside) :].startswith("2026-11-30 10:00:02 ERROR boom")
    assert LOG[cut_after(LOG, inside) :].startswith("2026-11-30 10:00:03 INFO went on")
