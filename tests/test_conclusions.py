import json

import pytest
from support.prompts import calls, draft, lines, planned, result, said, system, user
from support.prompts import chat as chat_of

from policies.conclusions import MOST_CHARS, conclusions
from policies.draft import Draft

TALK = [
    system("Be brief."),
    user("Move the pumps to the new bus.\nNever restart pump 7. It is old. You may use the spare valve."),
    calls(("a", "move")),
    result("a", "moved"),
    said("All nine pumps are on bus B.\nPump 7 was left running."),
    user("把阀门 12 关上。必须先泄压。"),
    said("阀门 12 已关。"),
    user("What is left?"),
]


def told(made: Draft, *indexes: int, cap: int = 500) -> list[str]:
    spans = {span.id: span for span in made.messages}
    return conclusions(made, [spans[f"m{at}"] for at in indexes], cap).splitlines()


def test_a_turn_is_told_by_what_was_asked_what_binds_and_what_it_came_to() -> None:
    assert told(draft(TALK), 1, 2, 3, 4, 5, 6) == [
        '- asked: "Move the pumps to the new bus."; it bound: "Never restart pump 7.";'
        ' it was answered: "All nine pumps are on bus B."',
        '- asked: "把阀门 12 关上。必须先泄压。"; it was answered: "阀门 12 已关。"',
    ]


def test_what_still_stands_is_not_repeated() -> None:
    assert told(draft(TALK), 1, 5) == [
        '- asked: "Move the pumps to the new bus."; it bound: "Never restart pump 7."',
        '- asked: "把阀门 12 关上。必须先泄压。"',
    ]
    assert told(draft(TALK), 2, 3, 4, 6) == []


def test_the_newest_turns_come_first_where_not_all_fit() -> None:
    made = draft(TALK)
    _, newest = told(made, 1, 2, 3, 4, 5, 6)
    size = made.measure(newest) + 1
    assert told(made, 1, 2, 3, 4, 5, 6, cap=size) == [newest]
    assert told(made, 1, 2, 3, 4, 5, 6, cap=size - 1) == []


def test_long_sentences_are_cut_and_few_are_told() -> None:
    rules = [f"Rule {number}: never open valve {number} {'while it rains ' * 20}." for number in range(5)]
    (line,) = told(draft([user("\n".join(["Begin.", *rules])), user("now")]), 0)
    assert line.count("it bound") == 2
    assert all(len(part) <= MOST_CHARS + 20 for part in line.split("; "))


def test_a_rule_is_told_once_where_it_was_said_last() -> None:
    messages = [user(f"Look at station {n}.\nNever open its hatch.") for n in range(3)]
    assert told(draft([*messages, user("now")]), 0, 1, 2) == [
        '- asked: "Look at station 0."',
        '- asked: "Look at station 1."',
        '- asked: "Look at station 2."; it bound: "Never open its hatch."',
    ]


@pytest.mark.parametrize("turns", [12, 40])
def test_where_older_questions_leave_the_note_says_what_they_came_to(turns: int) -> None:
    talk = [user("the task")]
    for n in range(turns):
        talk += [
            said(f"Station {n} is dry. {lines(9)}"),
            user(f"Look at station {n + 1}. \n{lines(16)}\nNever open its hatch."),
        ]
    plan = planned(chat_of(talk), 2_500)
    assert plan.sent_total <= 2_500
    texts = "\n".join(json.loads(item.raw)["content"] for item in plan.prompt.messages)
    note = texts.partition("- asked: ")[2].partition("]")[0]
    assert 'it bound: "Never open its hatch."' in note
    assert 'it was answered: "Station' in note
