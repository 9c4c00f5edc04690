import random
import warnings

import pytest

from policies.texts.grepping import AROUND, MOST_COST, hits, pattern_of

TEXT = "alpha ORD-0012 ok\nbeta ord-0345 FAILED\n\ndef foo(bar): return 7\n价格 = 12.50\n"


def lines(grep: str, text: str = TEXT, start: int = 0) -> list[str]:
    return [text[hit.start : hit.end] for hit in hits(text, pattern_of(grep), start, len(text))]


@pytest.mark.parametrize(
    ("grep", "found"),
    [
        ("failed", ["beta ord-0345 FAILED"]),
        ("ORD-\\d+", ["alpha ORD-0012 ok", "beta ord-0345 FAILED"]),
        ("ok$|^def", ["alpha ORD-0012 ok", "def foo(bar): return 7"]),
        ("foo(", ["def foo(bar): return 7"]),
        ("foo(bar)", ["def foo(bar): return 7"]),
        ("(alpha|beta) ord-0{2}", ["alpha ORD-0012 ok"]),
        ("b(?:eta)?", ["beta ord-0345 FAILED", "def foo(bar): return 7"]),
        ("[^a-z\\s=]+\\s*=\\s*\\d+[.]50", ["价格 = 12.50"]),
        ("\\bfo{1,}\\(", ["def foo(bar): return 7"]),
        ("a.*?12", ["alpha ORD-0012 ok"]),
        ("nothing", []),
    ],
)
def test_a_line_is_found_by_its_text_or_by_a_simple_expression(grep: str, found: list[str]) -> None:
    assert lines(grep) == found


@pytest.mark.parametrize(
    "grep",
    ["(a+)+$", "(a|b)*", "a**", "a.*b.*c.*d.*e.*f", "((a?){30}){30}", "\\1", "(?i)a", "[[a]", "[a--b]", "a)", "(a", 
     "[z-a]",      "a{,5}", "*a", "x{1,999}y{1,999}", ")|(", "(?P<n>a)", "{", "]"],
)  # fmt: skip
def test_an_expression_that_is_not_simple_is_looked_for_as_it_stands(grep: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pattern = pattern_of(grep)
    assert pattern.cost == 1
    assert lines(grep, f"before\nsee {grep} here\nafter") == [f"see {grep} here"]


@pytest.mark.parametrize("seed", range(5))
def test_what_was_made_of_any_expression_is_bounded_and_finds_it_written_out(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(400):
        grep = "".join(chance.choices("ab(|)[]{}1,2*+?.^$\\dw-", k=chance.randrange(1, 12)))
        pattern = pattern_of(grep)
        assert pattern.cost <= MOST_COST + 1
        assert pattern.compiled.search(f"so {grep} it") is not None


def test_a_long_line_is_shown_around_each_match() -> None:
    text = "x" * 1000 + "needle" + "y" * 1000 + "needle" + "z" * 50
    shown = [(hit.start, hit.end, hit.after) for hit in hits(text, pattern_of("needle"), 0, len(text))]
    assert shown == [(1000 - AROUND, 1006 + AROUND, 1006 + AROUND), (2006 - AROUND, 2062, 2063)]


def test_a_search_begins_and_ends_where_it_is_told() -> None:
    assert lines("o", start=TEXT.index("def")) == ["def foo(bar): return 7"]
    assert [hit.start for hit in hits(TEXT, pattern_of("7"), 0, 20)] == []


def test_an_expression_that_matches_nothing_at_all_comes_to_an_end() -> None:
    assert len(lines("x*", "a\nb\n" + "c" * 1000)) == 2 + 9


def test_a_match_across_two_steps_of_a_search_is_found() -> None:
    for before in range(1900, 2010):
        text = "x" * before + "begin, middle, end" + "x" * 3000
        assert [hit.start for hit in hits(text, pattern_of("begin.*middle.* end"), 0, len(text))] == [before - AROUND]
        text = "x\n" * (before // 2) + "begin and end\n" + "x" * 3000
        assert lines("begin.*and.* end", text) == ["begin and end"]
