import json

import pytest

from policies.texts.projecting import MatchesNothing, by_jmespath, by_regex, faults

ORDER = '{"status": "open", "eta": null, "cost": 1e5, "id": 12345678901234567890123, "rows": [{"n": 2.50}, {"n": 7}]}'
GREP = "src/a.py:12:def run():\nsrc/b.py:007:    pass\n\nBinary file c.so matches"


@pytest.mark.parametrize(
    ("expression", "projected"),
    [
        ("{status: status, eta: eta}", '{"status":"open","eta":null}'),
        ("{cost: cost, id: id}", '{"cost":1e5,"id":12345678901234567890123}'),
        ("rows[].n", "[2.50,7]"),
        ("rows[?n > `2.4`].n | [0]", "2.50"),
        ("[max(rows[].n), cost]", "[7,1e5]"),
        ("[sum(rows[].n), length(rows), to_number('3')]", "[9.5,2,3]"),
        ("status == 'open'", "true"),
    ],
)
def test_an_expression_selects_and_numbers_keep_their_spelling(expression: str, projected: str) -> None:
    assert by_jmespath(ORDER, expression).text == projected


def test_what_is_the_sources_and_what_was_computed_is_told_apart() -> None:
    made = by_jmespath(ORDER, "{status: status, rows: length(rows), all: rows[].n}")
    assert (made.kept, made.computed) == (3, 1)
    assert made.check == "3 values are the source's, 1 computed"
    assert by_jmespath(ORDER, "status").check == "1 values are the source's"


def test_a_number_that_python_cannot_read_keeps_its_digits() -> None:
    digits = "9" * 5000
    assert by_jmespath(f'{{"n": {digits}, "m": 1e999}}', "{n: n, m: m}").text == f'{{"n":{digits},"m":1e999}}'


@pytest.mark.parametrize(
    ("text", "expression", "because"),
    [
        (ORDER, "{price: price}", "it selects nothing"),
        ("[[]]", "[0]", "it selects nothing"),
        ("no JSON", "status", "the result is no JSON object or array"),
        (ORDER, "sum(status)", "it cannot be applied: "),
        ('{"n": [1e308, 1e308]}', "sum(n)", "what it computes is no number of JSON"),
    ],
)
def test_an_expression_that_finds_nothing_says_why(text: str, expression: str, because: str) -> None:
    with pytest.raises(MatchesNothing) as nothing:
        by_jmespath(text, expression)
    assert str(nothing.value).startswith(because)


def test_the_named_groups_of_each_line_become_a_table() -> None:
    made = by_regex(GREP, r"(?P<path>[^:]+):(?P<line>\d+):(?P<match>.*)")
    assert json.loads(made.text) == {
        "…": "1 of 3 lines do not match",
        "columns": ["path", "line", "match"],
        "rows": [["src/a.py", 12, "def run():"], ["src/b.py", "007", "    pass"]],
    }
    assert made.kept == 6


def test_a_group_that_takes_no_part_is_null_and_nothing_left_out_is_not_mentioned() -> None:
    made = by_regex("a=1\nb", r"(?P<name>\w)(?:=(?P<value>.))?")
    assert made.text == '{"columns":["name","value"],"rows":[["a",1],["b",null]]}'
    assert made.kept == 3


def test_a_pattern_that_no_line_matches_says_so() -> None:
    with pytest.raises(MatchesNothing, match="none of its 3 lines matches"):
        by_regex(GREP, r"(?P<port>:\d{5})")


@pytest.mark.parametrize(
    ("expression", "pattern", "fault"),
    [
        ("{a: b}", "", ""),
        ("", "(?P<a>.)", ""),
        ("{a: ", "", "'jmespath' is no expression: "),
        ("", "(.)", "'regex' needs a named group, like (?P<path>…), for each field"),
        ("", "(?P<a>", "'regex' is no regular expression: "),
    ],
)
def test_a_wrong_rule_is_told_in_one_line(expression: str, pattern: str, fault: str) -> None:
    said = faults(expression, pattern)
    assert said.startswith(fault)
    assert bool(said) == bool(fault)
    assert "\n" not in said
