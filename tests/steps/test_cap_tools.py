from typing import Any

from support.prompts import calls, draft, edits, ids, result, tool, user

from policies.draft import Draft
from policies.plan import Drop, Level, Rewrite
from policies.steps.cap_tools import CapTools
from policies.tools import Tool

LONG = "Reads the log of a station. " + "It can do many other things that are told at length here. " * 9
NAMES = ("search", "read", "write", "list")


def offered(level: Level, limit: int, text: str = "hello", **fields: Any) -> Draft:
    tools = [tool(name, LONG) for name in NAMES]
    messages = [user("a"), calls(("x", "write")), result("x", "ok"), user(text)]
    return draft(messages, limit=limit, level=level, tools=tools, **fields)


def descriptions(made: Draft) -> list[str]:
    return [Tool.of(span.item.raw).description for span in made.tools]


def test_descriptions_are_cut_to_one_line_first() -> None:
    made = offered(Level.TOOL_RESULTS, 100)
    found = edits(CapTools(), made)
    assert [type(edit) for edit in found] == [Rewrite] * 4
    assert descriptions(made) == ["Reads the log of a station."] * 4


def test_a_small_catalogue_or_a_prompt_that_fits_is_left_alone() -> None:
    assert edits(CapTools(cap_share=0.99), offered(Level.HISTORY, 1000)) == []
    assert edits(CapTools(), offered(Level.HISTORY, 100_000)) == []


def test_only_as_many_are_cut_as_are_over_the_cap() -> None:
    received = offered(Level.TOOL_RESULTS, 10_000)
    made = offered(Level.TOOL_RESULTS, received.total - 10)
    edits(CapTools(), made)
    assert descriptions(made).count(LONG) == 3


def test_then_whole_tools_leave_the_lowest_in_rank_first() -> None:
    made = offered(Level.HISTORY, 100, "please list them")
    edits(CapTools(cap_share=0.7), made)
    order = [edit.spans[0] for edit in edits(CapTools(cap_share=0.0), offered(Level.HISTORY, 50, "please list them"))
             if isinstance(edit, Drop)]  # fmt: skip
    assert order == ["t1", "t0", "t3", "t2"]
    assert ids(made)[-1] == "t3"


def test_what_tool_choice_forces_stays() -> None:
    made = offered(Level.EMERGENCY, 10, tool_choice={"type": "function", "function": {"name": "read"}})
    edits(CapTools(), made)
    assert [span.id for span in made.tools] == ["t1"]


def test_in_an_emergency_tools_under_their_cap_go_too() -> None:
    made = draft([user("a " * 100)], limit=90, level=Level.EMERGENCY, tools=[tool("f")])
    edits(CapTools(cap_share=0.99), made)
    assert made.tools == []


def test_under_the_cap_tools_that_the_prompt_names_stay_until_an_emergency() -> None:
    def left(level: Level) -> list[str]:
        made = draft(
            [calls(("x", "read")), result("x", "ok"), user("please list them " * 20)],
            limit=60,
            level=level,
            tools=[tool(name) for name in NAMES],
        )
        edits(CapTools(cap_share=9.0), made)
        return [span.id for span in made.tools]

    assert left(Level.HISTORY) == ["t1", "t3"]
    assert left(Level.EMERGENCY) == []


def test_without_a_user_message_tools_are_ranked_all_the_same() -> None:
    made = draft([calls(("x", "read"))], limit=10, level=Level.HISTORY, tools=[tool(name) for name in NAMES])
    found = edits(CapTools(cap_share=0.0), made)
    assert [edit.spans[0] for edit in found if isinstance(edit, Drop)] == ["t3", "t2", "t0", "t1"]


def test_of_tools_that_nothing_names_the_one_that_answers_the_question_worst_leaves_first() -> None:
    tools = [tool("alpha", "Open invoices."), tool("beta", "Weather."), tool("gamma", "Open tickets of a project.")]
    made = draft([user("which tickets are open?")], limit=10, level=Level.HISTORY, tools=tools)
    found = edits(CapTools(cap_share=0.0), made)
    assert [edit.spans[0] for edit in found if isinstance(edit, Drop)] == ["t1", "t0", "t2"]


def test_what_is_pinned_is_left_out_of_it() -> None:
    made = offered(Level.TOOL_RESULTS, 100, tool_choice={"type": "function", "function": {"name": "read"}})
    assert [edit.span for edit in edits(CapTools(), made) if isinstance(edit, Rewrite)] == ["t0", "t2", "t3"]
