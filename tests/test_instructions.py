import pytest

from policies.instructions import rules, said_once

TEXT = """You are an agent for a harbour.
Rules:
1. Always answer in JSON.
2. File every ticket under 4417.
3. ALWAYS  answer in json!
- always answer in JSON
4. Never guess a price.
Be polite to everyone. Always answer in JSON.

Examples:
Q: which berth? A: {"berth": 4}

Close the ticket at last."""


def test_a_rule_that_stands_again_in_other_spelling_is_said_once() -> None:
    said = said_once(TEXT, set(), examples=True)
    assert said.duplicates == 3
    assert said.text.lower().count("answer in json") == 1
    assert rules(TEXT) == rules(said.text)


def test_the_numbers_of_a_list_close_up_behind_what_is_gone() -> None:
    said = said_once(TEXT, set(), examples=True).text.splitlines()
    assert said[2:6] == [
        "1. Always answer in JSON.",
        "2. File every ticket under 4417.",
        "3. Never guess a price.",
        "Be polite to everyone.",
    ]


def test_a_rule_that_differs_in_a_word_is_another_rule() -> None:
    text = "Never sell berth 4 today.\nNever sell berth 5 today."
    assert said_once(text, set(), examples=True).text == text


def test_a_rule_of_an_earlier_text_is_a_duplicate_too() -> None:
    seen: set[str] = set()
    said_once("Always answer in JSON.", seen, examples=True)
    assert said_once("Always answer in JSON.\nStay calm at all times.", seen, examples=True).text == (
        "Stay calm at all times."
    )


def test_examples_are_set_apart_up_to_the_blank_line() -> None:
    said = said_once(TEXT, set(), examples=False)
    assert said.examples == 2
    assert "berth?" not in said.text
    assert said.text.endswith("Close the ticket at last.")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a\n<example>\nQ\nA\n</example>\nb", "a\nb"),
        ("a\n<examples>one line</examples>\nb", "a\nb"),
        ("## Example\nQ\nA\n# Rules\nb", "# Rules\nb"),
        ("示例：问\n答\n\n结束", "\n结束"),
    ],
)
def test_examples_are_found_in_tags_under_headings_and_in_chinese(text: str, left: str) -> None:
    assert said_once(text, set(), examples=False).text == left


def test_chinese_rules_have_no_spaces_and_are_found_all_the_same() -> None:
    assert said_once("总是用中文回答。不要猜价格吧。总是用中文回答。", set(), examples=True).text == (
        "总是用中文回答。 不要猜价格吧。"
    )


def test_short_lines_may_repeat() -> None:
    text = "Notes:\na b\nNotes:\na b"
    assert said_once(text, set(), examples=True).text == text
