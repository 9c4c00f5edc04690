from support.prompts import draft, edits, lines, system, texts, tool, user

from policies.plan import Drop, Level, Rewrite
from policies.steps.topics import Topics


def test_older_user_messages_go_oldest_first_and_the_task_stays() -> None:
    messages = [user("the task"), *(user(f"question {n}: {lines(20)}") for n in range(6)), user("now")]
    made = draft(messages, limit=draft(messages).total // 2, level=Level.TOPICS)
    dropped = [edit.spans for edit in edits(Topics(), made) if isinstance(edit, Drop)]
    assert dropped == [("m1",), ("m2",), ("m3",), ("m4",)]
    assert texts(made)[0] == "the task"
    assert texts(made)[-1] == "now"
    assert made.total <= made.limit


def test_one_long_message_is_said_shorter_where_that_is_enough() -> None:
    messages = [system("Be brief."), user(lines(300)), user("now")]
    made = draft(messages, limit=draft(messages).total // 2, level=Level.TOPICS)
    (edit,) = edits(Topics(), made)
    assert isinstance(edit, Rewrite)
    assert made.total <= made.limit


def test_nothing_goes_from_a_prompt_that_fits() -> None:
    messages = [user("a"), user("b")]
    assert edits(Topics(), draft(messages, limit=1000, level=Level.TOPICS)) == []


def test_tools_that_are_forced_have_nothing_to_spare_for_user_messages() -> None:
    tools = [tool("read_log", "reads " * 400)]
    forced = {"type": "function", "function": {"name": "read_log"}}
    messages = [user("the task"), *(user(f"question {n}: {lines(9)}") for n in range(6)), user("now")]
    received = draft(messages, tools=tools, tool_choice=forced).total
    made = draft(messages, tools=tools, tool_choice=forced, limit=received - 100, level=Level.TOPICS)
    assert edits(Topics(), made) == [Drop(("m1",), "an older user message")]
    assert edits(Topics(), draft(messages, tools=tools, limit=received - 100, level=Level.TOPICS)) == []
