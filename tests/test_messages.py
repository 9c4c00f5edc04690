import json
from typing import Any

import pytest

from policies.jsonraw import NotJSON
from policies.messages import Call, Message, Part, merged, with_part, with_text


def of(value: Any) -> Message:
    return Message.of(json.dumps(value).encode())


@pytest.mark.parametrize(
    ("message", "content", "text"),
    [
        ({"role": "user"}, "absent", ""),
        ({"role": "user", "content": None}, "null", ""),
        ({"role": "user", "content": "hello"}, "text", "hello"),
        ({"role": "user", "content": 7}, "other", "7"),
        ({"role": "user", "content": {"a": 1}}, "other", '{"a":1}'),
        ({"role": "user", "content": []}, "parts", ""),
        (
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}]},
            "parts",
            "ab",
        ),
        ({"role": "user", "content": ["a", {"type": "output_text", "text": "b"}]}, "parts", "ab"),
    ],
)
def test_content_is_named_and_its_text_joined(message: dict[str, Any], content: str, text: str) -> None:
    opened = of(message)
    assert (opened.role, opened.content, opened.text) == ("user", content, text)


@pytest.mark.parametrize(
    ("part", "opened"),
    [
        ({"type": "refusal", "refusal": "No."}, Part("refusal", "No.")),
        (
            {"type": "image_url", "image_url": {"url": "http://x/a.png", "detail": "low"}},
            Part("image", source="http://x/a.png", detail="low"),
        ),
        (
            {"type": "input_image", "image_url": "http://x/a.png", "detail": "high"},
            Part("image", source="http://x/a.png", detail="high"),
        ),
        ({"type": "image_url"}, Part("image")),
        ({"type": "input_audio", "input_audio": {"data": "AAAA"}}, Part("audio")),
        ({"type": "file", "file": {"file_id": "f"}}, Part("file")),
        ({"type": "odd", "x": 1}, Part("other", '{"type":"odd","x":1}')),
        ({"x": 1}, Part("other", '{"x":1}')),
    ],
)
def test_each_part_is_named_by_its_kind(part: dict[str, Any], opened: Part) -> None:
    assert of({"role": "user", "content": [part]}).parts == (opened,)


def test_calls_of_every_kind_are_opened() -> None:
    opened = of(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "b", "type": "custom", "custom": {"name": "g", "input": "free"}},
                {"id": "c"},
                "odd",
            ],
            "function_call": {"name": "h", "arguments": {"x": 1}},
        }
    )
    assert opened.calls == (
        Call("a", "f", "{}"),
        Call("b", "g", "free", custom=True),
        Call("c", "", ""),
        Call("", "h", '{"x":1}'),
    )


@pytest.mark.parametrize("calls", [None, "odd", 7, {}])
def test_calls_that_are_no_list_are_none(calls: object) -> None:
    assert of({"role": "assistant", "tool_calls": calls, "function_call": 7}).calls == ()


def test_the_other_fields_that_cost_or_matter_are_read() -> None:
    opened = of(
        {
            "role": "assistant",
            "name": "ann",
            "refusal": "No.",
            "reasoning_content": "Because.",
            "tool_call_id": "call_1",
        }
    )
    assert (opened.name, opened.refusal, opened.reasoning, opened.call_id) == ("ann", "No.", "Because.", "call_1")
    assert of({"role": "user", "reasoning": "Hm."}) == Message("user", "absent", reasoning="Hm.")


def test_a_message_that_is_no_json_raises() -> None:
    with pytest.raises(NotJSON):
        Message.of(b"{")


ODD = b'{"role":"tool", "n":1e5,"content":"old","z":null}'


def test_a_text_is_replaced_and_the_rest_keeps_its_bytes() -> None:
    assert with_text(ODD, 'new "é"') == '{"role":"tool","n":1e5,"content":"new \\"é\\"","z":null}'.encode()
    assert with_text(b'{"role":"tool"}', "new") == b'{"role":"tool","content":"new"}'


def test_a_text_is_merged_before_or_behind_what_was_there() -> None:
    assert merged(ODD, "new", at_end=True) == b'{"role":"tool","n":1e5,"content":"old\\n\\nnew","z":null}'
    assert merged(ODD, "new", at_end=False) == b'{"role":"tool","n":1e5,"content":"new\\n\\nold","z":null}'


@pytest.mark.parametrize("content", [b"", b',"content":null', b',"content":""'])
def test_a_message_without_text_gets_it(content: bytes) -> None:
    assert merged(b'{"role":"user"' + content + b"}", "new", at_end=True) == b'{"role":"user","content":"new"}'


def test_an_array_of_parts_grows_by_one() -> None:
    raw = b'{"role":"user","content":[ {"type":"text","text":"a" },{"type":"x","n":1e5}]}'
    new = b'{"type":"text","text":"new"}'
    old = b'{"type":"text","text":"a" },{"type":"x","n":1e5}'
    assert merged(raw, "new", at_end=True) == b'{"role":"user","content":[' + old + b"," + new + b"]}"
    assert merged(raw, "new", at_end=False) == b'{"role":"user","content":[' + new + b"," + old + b"]}"
    assert with_part(raw, "new") == b'{"role":"user","content":[' + old + b"," + new + b"]}"


def test_content_of_no_known_kind_becomes_one_part_of_many() -> None:
    assert merged(b'{"content":7}', "new", at_end=True) == (
        b'{"content":[{"type":"text","text":"7"},{"type":"text","text":"new"}]}'
    )


def test_a_part_of_its_own_leaves_the_text_as_it_was() -> None:
    part = b'{"type":"text","text":"new"}'
    assert with_part(b'{"content":"{\\"a\\":1}"}', "new") == (
        b'{"content":[{"type":"text","text":"{\\"a\\":1}"},' + part + b"]}"
    )
    assert with_part(b'{"role":"tool"}', "new") == b'{"role":"tool","content":[' + part + b"]}"


@pytest.mark.parametrize(
    ("content", "before"),
    [(b"null", []), (b'""', [""]), (b"7", ["7"]), (b'{"a": 1e5}', ['{"a": 1e5}'])],
)
def test_a_part_stands_behind_the_json_of_what_is_no_text(content: bytes, before: list[str]) -> None:
    made = json.loads(with_part(b'{"content":' + content + b"}", "new"))["content"]
    assert made == [{"type": "text", "text": text} for text in [*before, "new"]]
