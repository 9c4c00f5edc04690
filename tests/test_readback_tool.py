import json

import pytest
from support.pieces import pieces

from policies.readback_tool import DEFINITION, NAME, Amount, Ask, Unclear, asked, barred
from policies.request import Item, Prompt
from policies.tools import Tool

REF = "tr_0123456789abcdef"
BASH = Item.of(b'{"type":"function","function":{"name":"bash"}}')
OURS = Item.of(DEFINITION)


def test_the_definition_is_a_function_tool_of_four_arguments_and_few_tokens() -> None:
    assert Tool.of(DEFINITION).name == NAME
    assert Tool.of(DEFINITION).parameters == "ref offset limit grep"
    assert json.loads(DEFINITION)["function"]["parameters"]["required"] == ["ref"]
    assert pieces(DEFINITION.decode()) < 300


@pytest.mark.parametrize(
    ("prompt", "choices", "reason"),
    [
        (Prompt("m", (), (BASH,)), None, ""),
        (Prompt("m", (), (BASH,), b'"auto"'), 1, ""),
        (Prompt("m", (), (BASH,), b"null"), None, ""),
        (Prompt("m", ()), None, "no tools"),
        (Prompt("m", (), (BASH, OURS)), None, "name taken"),
        (Prompt("m", (), (BASH,)), 2, "several choices"),
        (Prompt("m", (), (BASH,), b'"none"'), None, "tool choice"),
        (Prompt("m", (), (BASH,), b'"required"'), None, "tool choice"),
        (Prompt("m", (), (BASH,), b'{"type":"function","function":{"name":"bash"}}'), None, "tool choice"),
        (Prompt("m", (), (BASH,), b'{"type":"allowed_tools","allowed_tools":{}}'), None, "tool choice"),
    ],
)
def test_it_is_offered_only_where_a_model_may_call_it_and_nobody_would_see(
    prompt: Prompt, choices: int | None, reason: str
) -> None:
    assert barred(prompt, choices) == reason


@pytest.mark.parametrize(
    ("arguments", "ask"),
    [
        ({"ref": REF}, Ask(REF)),
        ({"ref": REF, "offset": None, "limit": "", "grep": None}, Ask(REF)),
        ({"ref": REF, "offset": 100, "limit": 20}, Ask(REF, Amount(100), Amount(20))),
        ({"ref": REF, "offset": "100", "limit": "20.0"}, Ask(REF, Amount(100), Amount(20))),
        ({"ref": REF, "offset": 100.0, "limit": "20 characters"}, Ask(REF, Amount(100), Amount(20))),
        ({"ref": REF, "offset": "L120", "limit": "40 lines"}, Ask(REF, Amount(120, True), Amount(40, True))),
        ({"ref": REF, "offset": "line 120"}, Ask(REF, Amount(120, True))),
        ({"ref": REF, "offset": -500}, Ask(REF, Amount(-500))),
        ({"ref": f'ref="{REF.upper()}"', "grep": "Total"}, Ask(REF, grep="Total")),
    ],
)
def test_numbers_may_be_strings_and_a_ref_may_stand_in_what_was_copied(arguments: object, ask: Ask) -> None:
    assert asked(json.dumps(arguments)) == ask
    assert asked(json.dumps(json.dumps(arguments))) == ask


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "ref must be copied from where it is shown, tr_ and at least 16 hex digits; it is missing"),
        ('{"ref": "tr_12"}', "'tr_12' is none"),
        ('{"ref": 7}', "it is missing"),
        ("[1]", 'the arguments must be a JSON object such as {"ref": "tr_…", "offset": "0"}'),
        ('{"ref": "tr_', "the arguments must be a JSON object"),
        (
            f'{{"ref": "{REF}", "page": 2}}',
            "there is no argument 'page'; read_tool_result takes ref, offset, limit, gr",
        ),
        (f'{{"ref": "{REF}", "offset": true}}', "offset must be a whole number of characters such as 2000, or of"),
        (f'{{"ref": "{REF}", "offset": 1.5}}', "offset must be a whole number"),
        (f'{{"ref": "{REF}", "offset": NaN}}', "offset must be a whole number"),
        (f'{{"ref": "{REF}", "offset": Infinity}}', "offset must be a whole number"),
        (f'{{"ref": "{REF}", "offset": "soon"}}', "offset must be a whole number"),
        (f'{{"ref": "{REF}", "limit": 0}}', "limit must be 1 or more"),
        (f'{{"ref": "{REF}", "grep": ["a"]}}', "grep must be a string"),
        (f'{{"ref": "{REF}", "grep": "{"a" * 201}"}}', "grep must be 200 characters or shorter"),
    ],
)
def test_what_cannot_be_read_is_answered_with_what_would_be_right(arguments: str, said: str) -> None:
    with pytest.raises(Unclear) as raised:
        asked(arguments)
    assert said in str(raised.value)


def test_a_number_beyond_all_bounds_is_none() -> None:
    for number in ("9" * 400, "1e999", "-" + "9" * 20):
        with pytest.raises(Unclear):
            asked(f'{{"ref": "{REF}", "limit": {number}}}')


def test_half_a_character_in_the_arguments_does_no_harm() -> None:
    assert asked(f'{{"ref": "{REF}", "grep": "\\ud83d"}}').grep == "\ud83d"


def test_a_number_among_much_white_space_costs_no_more_than_its_length() -> None:
    white = " " * 200_000
    assert asked(f'{{"ref": "{REF}", "limit": "{white}L7{white}"}}').limit == Amount(7, lines=True)
    with pytest.raises(Unclear):
        asked(f'{{"ref": "{REF}", "limit": "7{white}x"}}')
