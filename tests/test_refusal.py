import json
from typing import Any

import pytest
from support.prompts import balanced, budget, calls, chat, counter, lines, planned, result, round_of, system, tool, user

from policies.counting.scaled import Scaled
from policies.needs import solve
from policies.pipeline import plan_once
from policies.plan import Refusal
from policies.refusal import INLINE_BYTES, PART
from policies.request import ChatRequest

Message = dict[str, Any]


def refused(messages: list[Message], limit: int, **fields: Any) -> Refusal:
    refusal = planned(chat(messages, **fields), limit).refusal
    assert refusal is not None
    assert refusal.limit == limit < refusal.floor
    return refusal


def cost(request: Message) -> int:
    asked = ChatRequest.parse(json.dumps(request).encode())
    return counter(asked.model).bill(asked.prompt).total


LARGE = "\n\n".join(f"Chapter {n}\n{lines(12, f'chapter {n} station')}" for n in range(40))
JOB = [system("Be brief."), user(LARGE)]


def test_a_job_that_cannot_fit_is_split_into_parts_that_do() -> None:
    refusal = refused(JOB, 1500)
    assert refusal.reason == ""
    assert [unit["name"] for unit in refusal.units][:2] == ["part-1", "part-2"]
    for unit in refusal.units:
        assert unit["tokens"] == cost(unit["request"]) <= 1500
        assert unit["spans"] == ["m0", "m1"]
        assert unit["request"]["messages"][0] == system("Be brief.")
    assert sum(unit["tokens"] for unit in refusal.units[:-1]) > 0.6 * 1500 * (len(refusal.units) - 1)


def test_the_parts_together_are_the_text() -> None:
    units = refused(JOB, 1500).units
    starts, ends = zip(*(unit["chars"] for unit in units), strict=True)
    assert (starts[0], ends[-1]) == (0, len(LARGE))
    assert starts[1:] == ends[:-1]
    for number, unit in enumerate(units, 1):
        text = unit["request"]["messages"][1]["content"]
        assert text.startswith(LARGE[unit["chars"][0] : unit["chars"][1]])
        assert f"[Part {number} of {len(units)} of a longer message." in text


def test_the_answers_are_put_together_by_a_template() -> None:
    refusal = refused(JOB, 1500)
    assert refusal.aggregate is not None
    messages = refusal.aggregate["request"]["messages"]
    count = len(refusal.units)
    assert messages[0] == system("Be brief.")
    assert messages[1]["content"].startswith(f"A task was worked on in {count} parts. Combine these answers into one.")
    assert f"{{{{part-{count}}}}}" in messages[1]["content"]


def test_one_word_without_an_end_is_split_too() -> None:
    refusal = refused([user("名" * 6000)], 600)
    assert all(unit["tokens"] <= 600 for unit in refusal.units)
    assert refusal.units[-1]["chars"][1] == 6000


@pytest.mark.parametrize(
    ("messages", "limit", "reason"),
    [
        ([system(LARGE), user("a")], 1500, "system messages and overhead alone take "),
        ([system(LARGE)], 1500, "there is no user message that could be split"),
        (
            [user("go"), calls(("x", "f"), arguments=json.dumps({"q": LARGE})), result("x", "ok")],
            1500,
            "the newest round is over the budget, and only a user message can be split",
        ),
    ],
)
def test_where_nothing_can_be_split_the_reason_is_given(messages: list[Message], limit: int, reason: str) -> None:
    refusal = refused(messages, limit)
    assert refusal.units == ()
    assert refusal.aggregate is None
    assert refusal.reason.startswith(reason)


def test_a_picture_beside_the_text_is_no_part_of_the_parts() -> None:
    parts = [{"type": "text", "text": LARGE}, {"type": "image_url", "image_url": {"url": "http://127.0.0.1/a.png"}}]
    units = refused([user(parts)], 1500).units
    assert units
    assert all(unit["tokens"] <= 1500 for unit in units)


def test_where_one_character_is_too_much_nothing_is_split() -> None:
    asked = chat([user("𒀀" * 400)])
    scaled = Scaled(counter(), 150.0, asked.prompt, 200_000)
    frame = scaled.bill(chat([user(PART.format(number=9999, count=9999))]).prompt).total
    limit = frame + 250  # the sign costs four tokens, each times 150
    refusal = solve(plan_once(asked, balanced(), scaled, budget(limit))).refusal
    assert refusal is not None
    assert (refusal.units, refusal.reason) == ((), "no part of the newest user message fits beside the rest")


def test_units_beyond_what_a_body_should_hold_are_named_by_ranges() -> None:
    text = LARGE * 12
    assert len(text) > INLINE_BYTES
    refusal = refused([user(text)], 4000)
    assert all("request" not in unit and unit["chars"] for unit in refusal.units)
    assert all(unit["tokens"] <= 4000 for unit in refusal.units)


def test_tools_do_not_stand_in_the_parts() -> None:
    units = refused(JOB, 1500, tools=[tool("f")], tool_choice="required").units
    assert all(set(unit["request"]) == {"model", "messages"} for unit in units)


def test_what_was_said_before_does_not_stand_in_the_parts() -> None:
    units = refused([user("before"), *round_of(0, "x"), user(LARGE)], 1500).units
    assert all(unit["spans"] == ["m3"] for unit in units)
