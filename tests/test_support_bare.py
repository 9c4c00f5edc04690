from typing import Any

from support.bare import bare_tokens


def words(text: str) -> int:
    return 100 * len(text.split())


def body(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"messages": list(messages), **fields}


def test_texts_arguments_results_and_tools_count_and_templates_do_not() -> None:
    call = {"id": "a", "function": {"name": "ls", "arguments": '{"in": "my home"}'}}
    tool = {"type": "function", "function": {"name": "ls", "description": "list all"}}
    user = {"role": "user", "content": [{"type": "text", "text": "one two"}, {"type": "image_url"}]}
    result = {"role": "tool", "content": '[ 1, 2,   3 ]', "tool_call_id": "a"}  # fmt: skip
    assert bare_tokens(body(user), words) == 170
    assert bare_tokens(body({"role": "assistant", "content": None, "tool_calls": [call]}), words) == 255
    assert bare_tokens(body(result), words) == 85
    assert bare_tokens(body(user, tools=[tool]), words) == 425


def test_odd_contents_count_nothing() -> None:
    assert (
        bare_tokens(body({"role": "user"}, {"role": "user", "content": None}, {"role": "user", "content": 7}), words)
        == 0
    )
