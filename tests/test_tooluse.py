from typing import Any

from support.plans import TOOL, hopeless, plan, record, request
from support.prompts import calls, result, said, tool, user

from proxy.observe import Mode, Record
from proxy.tooluse import MOST_LISTED, ToolUse, UnknownTool, nearest, tools_used

ASKED = user("Which station?")
CALLED = [calls(("c1", "read_log")), result("c1", "low")]


def seen(*messages: Any, tools: Any = (TOOL,), mode: Mode = "enforce") -> Record:
    return record(plan(request(list(messages), tools=list(tools))), mode=mode)


def test_each_call_counts_once_however_often_the_history_is_sent_again() -> None:
    turns = [
        (ASKED,),
        (ASKED, *CALLED),
        (ASKED, *CALLED, said("Seven.")),
        (ASKED, *CALLED, said("Seven."), user("Why?")),
    ]
    used = tools_used([seen(*turn) for turn in reversed(turns)])
    cost = used.tools[0].tokens
    assert used.requests == 4
    assert used.tools == [ToolUse("read_log", cost, 4 * cost, 4, 4, 1, never_called=False)]
    assert used.unknown == []


def test_parallel_calls_count_each() -> None:
    both = [calls(("a", "read_log"), ("b", "read_log")), result("a", "x"), result("b", "y")]
    assert tools_used([seen(ASKED, *both)]).tools[0].called == 2


def test_the_most_expensive_tools_come_first_and_those_never_called_are_told() -> None:
    other = tool("restart", "Restarts a station. " * 20)
    used = tools_used([seen(ASKED, *CALLED, tools=[TOOL, other, {"type": "web_search"}])])
    assert [(one.name, one.never_called) for one in used.tools] == [("restart", True), ("read_log", False)]


def test_a_name_that_no_tool_has_is_told_with_the_nearest() -> None:
    misspelt = [calls(("a", "read_logs"), ("b", "xyzzy")), result("a", "no such tool"), result("b", "no such tool")]
    assert tools_used([seen(ASKED, *misspelt)]).unknown == [
        UnknownTool("read_logs", 1, "read_log"),
        UnknownTool("xyzzy", 1, None),
    ]
    assert nearest("reed_log", ["read_log", "restart"]) == "read_log"


def test_tools_that_were_not_forwarded_cost_nothing() -> None:
    crowd = [tool(f"tool_{number}", "Does this") for number in range(60)]
    cut, observed = (seen(ASKED, user("a " * 2900), tools=crowd, mode=mode) for mode in ("enforce", "observe"))
    used = tools_used([cut])
    assert {one.offered for one in used.tools} == {1}
    assert 0 < sum(one.forwarded for one in used.tools) < 60
    assert all((one.spent > 0) == bool(one.forwarded) for one in used.tools)
    assert sum(one.forwarded for one in tools_used([observed]).tools) == 60
    assert tools_used([record(plan(hopeless(tools=[TOOL])))]).tools[0].spent == 0


def test_lists_are_bounded() -> None:
    crowd = [tool(f"tool_{number}") for number in range(MOST_LISTED + 20)]
    assert len(tools_used([seen(ASKED, tools=crowd)]).tools) == MOST_LISTED
    assert tools_used([]).tools == []
