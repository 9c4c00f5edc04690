from typing import Any

from msgspec.structs import replace
from support.prompts import calls, draft, prompt, said, system, tool, user

from policies.tools_ranking import QUERY_CHARS, Catalogue, called, catalogue, named, ranked, words

WEATHER = tool("get_forecast", "Weather of the next days at a place.")
MAIL = tool("sendMail", "Sends a message to a colleague.")
TICKETS = tool("list_tickets", "Open tickets of a project.")
FLIGHTS = tool("search_flights", "查询航班的时间和价格。")


def of(*tools: dict[str, Any]) -> Catalogue:
    return catalogue(prompt([user("a")], tools=list(tools)).tools)


def test_words_are_stems_without_the_common_ones() -> None:
    assert list(words("The tickets were listed by sendMail, using IDs")) == ["ticket", "list", "send", "mail", "ids"]
    assert list(words("get_forecast_2")) == ["forecast", "2"]


def test_text_without_spaces_is_told_in_pairs_of_characters() -> None:
    assert list(words("查询航班 PDF 价")) == ["查询", "询航", "航班", "pdf", "价"]


def test_the_best_shares_most_words_and_names_count_more_than_descriptions() -> None:
    offered = of(WEATHER, MAIL, TICKETS, FLIGHTS)
    assert offered.best("which tickets of the project are open?", 2) == ["list_tickets"]
    assert offered.best("明天的航班", 9) == ["search_flights"]
    assert of(tool("a", "forecast"), tool("forecast", "a")).best("forecast", 2) == ["forecast", "a"]


def test_parameters_speak_for_their_tool() -> None:
    parameters = {"type": "object", "properties": {"iban": {"type": "string"}}}
    pay = {"type": "function", "function": {"name": "pay", "description": "Pays.", "parameters": parameters}}
    assert of(MAIL, pay).best("my iban is DE02", 3) == ["pay"]


def test_what_no_tool_speaks_of_scores_nothing() -> None:
    assert of(WEATHER, MAIL).scores("zebra") == [0.0, 0.0]
    assert of().scores("zebra") == []
    assert of(tool("", "")).best("zebra", 3) == []


def test_of_a_long_text_head_and_tail_are_asked_about() -> None:
    offered = of(WEATHER, MAIL)
    filler = "zebra " * QUERY_CHARS
    assert offered.best(f"forecast {filler} mail", 2) == ["get_forecast", "sendMail"]
    assert offered.best(f"{filler} forecast {filler}", 2) == []


def test_called_and_named_tools_are_found_in_the_conversation() -> None:
    made = draft(
        [system("Prefer list_tickets."), user("a"), calls(("x", "sendMail")), said("get_forecast.")],
        tools=[WEATHER, MAIL, TICKETS],
    )
    assert called(made) == {"sendMail"}
    assert named(made, made.messages) == {"list_tickets", "get_forecast"}
    assert named(made, made.messages[:1]) == {"list_tickets"}


def test_the_least_needed_ranks_first_and_called_tools_last() -> None:
    made = draft(
        [user("a"), calls(("x", "sendMail")), user("the weather? not search_flights")],
        tools=[MAIL, WEATHER, TICKETS, tool("other"), FLIGHTS],
    )
    assert [key[-1].name for key in ranked(made, made.tools)] == [
        "other", "list_tickets", "get_forecast", "search_flights", "sendMail",
    ]  # fmt: skip


def test_a_priority_that_the_client_gave_goes_before_words() -> None:
    made = draft([user("which tickets are open?")], tools=[WEATHER, MAIL, TICKETS])
    weather, mail, tickets = made.tools
    first = replace(mail, priority=2)
    assert [key[-1].name for key in ranked(made, [weather, first, tickets])][-1] == "sendMail"
    assert [key[-1].name for key in ranked(made, [weather, mail, tickets])][-1] == "list_tickets"
