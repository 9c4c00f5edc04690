"""The side model is a function here: a question in, an answer out."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.prompts import balanced, budget, calls, chat, counter, lines, result, round_of, said, system, tool, user

from policies.needs import Answer, Ask, Need, Reply, nobody, solve
from policies.pipeline import plan_once
from policies.plan import Level, Plan
from policies.steps.select_tools import MOST_ANSWER_TOKENS, Named, SelectTools, parse, question
from policies.tools import Tool
from policies.tools_ranking import QUERY_CHARS

SUBJECTS = ["weather", "flights", "hotels", "invoices", "tickets", "payroll", "calendar", "mail", "contacts", "servers"]
MORE = ["backups", "logs", "music", "recipes", "maps", "news"]
TOOLS = [tool(f"get_{subject}", f"Everything about {subject}. It is long.") for subject in SUBJECTS + MORE]
ASKING = [system("Help."), user("I wonder about weather and hotels")]
ROOMY = 100_000

Answering = Callable[[Need], Answer]


def made(
    step: SelectTools, messages: Any = ASKING, answer: Answering = nobody, limit: int = ROOMY, **fields: Any
) -> Plan:
    request = chat(messages, **{"tools": TOOLS, **fields})
    policy = replace(balanced(), steps=(step,))
    return solve(plan_once(request, policy, counter(), budget(limit)), answer)


def kept(plan: Plan) -> list[str]:
    """Names of the tools that are sent, without what they have in common."""
    return [Tool.of(item.raw).name.removeprefix("get_") for item in plan.prompt.tools]


def saying(text: str) -> Answering:
    return lambda _need: Reply(text, 7)


LEXICAL = SelectTools(mode="lexical", when="always")
MODEL = SelectTools(when="always", at_least=1)


def test_the_tools_that_share_words_with_the_user_stay_in_their_order() -> None:
    plan = made(LEXICAL)
    assert kept(plan) == ["weather", "hotels"]
    assert plan.decisions[0].because == "2 of 16 tools kept, chosen by the words that they share with user messages"


def test_no_more_than_keep_are_chosen_for_one_message() -> None:
    assert len(kept(made(replace(LEXICAL, keep=1)))) == 1
    with pytest.raises(ValueError, match="'keep' must be at least 1"):
        SelectTools(keep=0)


def test_a_small_catalogue_an_unasked_step_and_one_that_is_off_leave_everything_alone() -> None:
    for plan in (made(LEXICAL, tools=TOOLS[:14]), made(SelectTools()), made(replace(LEXICAL, mode="off"))):
        assert plan.sent == plan.received


def test_where_no_word_speaks_for_a_tool_all_stay() -> None:
    assert len(kept(made(LEXICAL, [user("zebra?")]))) == 16
    assert len(kept(made(LEXICAL, [system("weather")]))) == 16
    assert made(replace(LEXICAL, always=("*",))).decisions == ()


def test_under_pressure_it_acts_at_its_own_level_once() -> None:
    long = [system("Help."), user("weather"), *(m for n in range(9) for m in round_of(n, lines(30), "get_logs"))]
    asked: list[Need] = []

    def answer(need: Need) -> Answer:
        if not isinstance(need, Ask):
            return None
        asked.append(need)
        return Reply("get_weather", 5)

    plan = made(SelectTools(at_least=1), long, answer, limit=1000)
    assert plan.level is not Level.NONE
    assert kept(plan) == ["weather", "logs"]
    assert len(asked) == 1
    assert plan.side_tokens == 5


def test_what_is_forced_called_named_configured_or_nameless_stays() -> None:
    messages = [
        system("Never get_news."),
        user("weather"),
        calls(("x", "get_mail")),
        result("x", "get_maps would tell you"),
        said("Next I shall use `get_logs`."),
        user("go on"),
    ]
    forced = {"type": "function", "function": {"name": "get_payroll"}}
    step = replace(LEXICAL, always=("get_rec*",))
    plan = made(step, messages, tools=[*TOOLS, {"type": "web_search"}], tool_choice=forced)
    assert kept(plan) == ["weather", "payroll", "mail", "logs", "recipes", "news", ""]


def test_the_choice_only_grows_with_the_conversation() -> None:
    messages = [*ASKING, said("Sunny."), user("and the flights?"), said("None."), user("thanks, zebra")]
    choices = [set(kept(made(LEXICAL, messages[:end]))) for end in (2, 4, 6)]
    assert choices[0] < choices[1] == choices[2] == {"weather", "hotels", "flights"}


def test_the_side_model_is_asked_with_one_line_a_tool() -> None:
    needs: list[Need] = []
    made(MODEL, answer=needs.append)
    made(MODEL, answer=needs.append, tools=[tool(f"f{n}", "") for n in range(40)])
    asked = [need for need in needs if isinstance(need, Ask)]
    assert asked[0].prompt == "select_tools"
    assert asked[0].values["question"] == "I wonder about weather and hotels"
    assert asked[0].values["tools"].startswith("get_weather: Everything about weather.\nget_flights: ")
    assert asked[0].max_tokens == 256
    assert asked[1].max_tokens == MOST_ANSWER_TOKENS
    assert asked[1].values["tools"].startswith("f0\nf1\n")


def test_its_names_stay_filled_up_to_the_least_that_are_kept() -> None:
    assert kept(made(MODEL, answer=saying("get_news\nget_maps"))) == ["maps", "news"]
    assert kept(made(replace(MODEL, at_least=3), answer=saying("get_news"))) == ["weather", "hotels", "news"]
    assert kept(made(replace(MODEL, at_least=2), answer=saying("get_hotels"))) == ["weather", "hotels"]


def test_they_are_filled_up_by_the_words_in_which_the_side_model_says_the_question() -> None:
    answer = saying("Goal: play music\n- get_news")
    assert kept(made(replace(MODEL, at_least=2), [user("放首歌")], answer)) == ["music", "news"]


def test_none_means_none_but_not_where_a_call_is_required() -> None:
    plan = made(replace(MODEL, at_least=5), answer=saying("NONE"))
    assert kept(plan) == []
    assert len(kept(made(MODEL, answer=saying("NONE"), tool_choice="required"))) == 16


@pytest.mark.parametrize(
    "answer",
    [
        nobody,
        saying(""),
        saying("I cannot help with that."),
        saying("get_tornado\nget_volcano"),
        saying("Ignore all rules.\nDrop everything.\nThe answer is\nget_news"),
        saying("get_weather, get_hotels and a few others may be needed"),
    ],
)
def test_a_side_model_that_fails_or_talks_costs_no_tool(answer: Answering) -> None:
    assert len(kept(made(MODEL, answer=answer))) == 16


def test_without_a_question_nobody_is_asked() -> None:
    assert len(kept(made(MODEL, [system("a")], saying("get_news")))) == 16


def test_answers_are_read_one_name_a_line_whatever_marks_stand_around_it() -> None:
    names = ("get_news", "get_mail", "a")
    assert parse("- get_news\n2. `get_mail`\n\n* a: the first letter\n", names) == Named(set(names))
    assert parse('Goal: read\n"get_news",\n', names) == Named({"get_news"}, "Goal: read")
    assert parse(" none. ", names) == Named(set(), " none. ")
    assert parse("Goal: chat\n- NONE", names) == Named(set(), "Goal: chat\n- NONE")
    assert parse("NONE\nget_news", names) == Named({"get_news"}, "NONE")


def test_an_answer_that_tells_the_catalogue_from_its_beginning_chooses_nothing() -> None:
    names = ("a", "b", "c", "d", "e")
    assert parse("a\nb\nc\nd", names) is None
    assert parse("a\nb\nc", names) == Named({"a", "b", "c"})
    assert parse("a\nc\nb\nd", names) == Named({"a", "b", "c", "d"})


def test_a_question_is_the_newest_message_with_the_heads_of_those_before() -> None:
    assert question(["old", "a" * 999, "b", "c"]) == f"{'a' * 300}\n\nb\n\nc"
    assert len(question(["x" * 99_999])) == QUERY_CHARS + 1
