import json
from typing import Any

import pytest

from policies.annotations import PINNED, Annotation, WrongAnnotation, read_message, read_tool


def test_an_annotation_is_read_and_taken_out_and_all_other_bytes_stay() -> None:
    raw = b'{"role": "user",  "edgewise": {"bucket": "memory", "priority": 3}, "content": "a\\u00e9", "x": 1e5}'
    assert read_message(raw, "messages[0]") == (
        b'{"role": "user","content": "a\\u00e9","x": 1e5}',
        Annotation(bucket="memory", priority=3),
    )


def test_a_message_without_one_is_the_same_object() -> None:
    raw = b'{"role":"user","content":"\\"edgewise\\" is a word"}'
    assert read_message(raw, "messages[0]")[0] is raw
    other = b'{"role":"user","content":"x","edgewise":"not ours"}'
    assert read_message(other, "messages[0]") == (other, None)
    deep = b'{"content":["x",{"type":"text","text":"x","more":{"edgewise":{}}}]}'
    assert read_message(deep, "messages[0]") == (deep, None)


def parts(*notes: dict[str, Any] | None, own: dict[str, Any] | None = None) -> tuple[Any, Annotation | None]:
    content = [{"type": "text", "text": "a"} | ({"edgewise": note} if note is not None else {}) for note in notes]
    message = {"role": "user", "content": content} | ({"edgewise": own} if own is not None else {})
    bare, told = read_message(json.dumps(message).encode(), "messages[2]")
    return json.loads(bare), told


def test_what_all_parts_say_alike_is_said_of_the_message() -> None:
    bare, told = parts({"bucket": "memory"}, {"bucket": "memory"})
    assert told == Annotation(bucket="memory")
    assert bare == {"role": "user", "content": [{"type": "text", "text": "a"}] * 2}


def test_one_pinned_part_pins_the_message() -> None:
    assert parts({"evict": "pinned", "name": "plan"}, None)[1] == PINNED


def test_parts_that_differ_say_nothing_of_the_message() -> None:
    assert parts({"bucket": "memory"}, {"bucket": "summary"}, None)[1] is None


def test_what_the_message_says_itself_goes_before_its_parts() -> None:
    bare, told = parts({"evict": "pinned"}, own={"name": "plan"})
    assert told == Annotation("plan")
    assert "edgewise" not in json.dumps(bare)


def test_a_tool_has_a_priority_but_no_bucket() -> None:
    raw = b'{"type":"function","edgewise":{"priority":2},"function":{"name":"f"}}'
    assert read_tool(raw, "tools[0]") == (b'{"type":"function","function":{"name":"f"}}', Annotation(priority=2))
    with pytest.raises(WrongAnnotation, match=r"'tools\[0\].edgewise': a tool has no other bucket than tools"):
        read_tool(b'{"edgewise":{"bucket":"memory"}}', "tools[0]")


@pytest.mark.parametrize(
    ("note", "message"),
    [
        ('{"evct": "pinned"}', "'messages[1].edgewise': unknown key 'evct'; did you mean 'evict'?"),
        ('{"zzz": 1}', "'messages[1].edgewise': unknown key 'zzz'; known are name, bucket, evict, priority"),
        ('{"evict": "never"}', "'messages[1].edgewise': Invalid enum value 'never' - at `$.evict`"),
        ('{"bucket": "tools"}', "'messages[1].edgewise': Invalid enum value 'tools' - at `$.bucket`"),
        ('{"priority": "high"}', "'messages[1].edgewise': Expected `int`, got `str` - at `$.priority`"),
    ],
)
def test_a_wrong_annotation_is_told_with_its_place(note: str, message: str) -> None:
    with pytest.raises(WrongAnnotation) as raised:
        read_message(b'{"role":"user","content":"x","edgewise":%b}' % note.encode(), "messages[1]")
    assert str(raised.value) == message
