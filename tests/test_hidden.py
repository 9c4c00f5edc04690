import json
from typing import Any

import msgspec
import pytest

from policies.hidden import Foreign, Hidden, Sibling, paired, spliced

CALL = b'{"id":"call_w","type":"function","function":{"name":"get_weather","arguments":"{}"}}'
OWN = b'{"id":"call_o","type":"function","function":{"name":"read_tool_result","arguments":"{}"}}'
BEFORE = (b'{"role":"assistant","content":"Let me see. ","tool_calls":[%b]}' % OWN, b'{"role":"tool","content":"7"}')
RESULT = b'{"role":"tool","tool_call_id":"call_o","content":"7"}'

SPOKEN = Hidden(before=BEFORE, visible="Let me see. It is 7.", text="It is 7.")
SILENT = Hidden(before=BEFORE, visible="It is 7.", text="It is 7.")
BESIDE = Hidden(siblings=(Sibling(0, OWN),), after=(RESULT,), visible="Hm", text="Hm", calls=(Foreign("call_w", "w"),))


def message(**members: Any) -> bytes:
    return json.dumps({"role": "assistant", **members}).encode()


def test_a_record_comes_back_from_its_bytes() -> None:
    for record in (SPOKEN, SILENT, BESIDE, Hidden(reasoning={"reasoning": "so"})):
        assert Hidden.decode(record.encode()) == record
    with pytest.raises(msgspec.DecodeError):
        Hidden.decode(b"\xff")


def test_a_message_of_which_all_is_its_own_stays_the_bytes_that_came() -> None:
    raw = b'{"role": "assistant", "content":\t"It is 7.", "x": 1e5}'
    assert spliced(SILENT, raw) == (*BEFORE, raw)


def test_text_that_was_said_before_our_call_goes_where_it_was_said() -> None:
    raw = b'{"role": "assistant", "content":\t"Let me see. It is 7.", "x": 1e5}'
    assert spliced(SPOKEN, raw) == (*BEFORE, b'{"role": "assistant","content":\t"It is 7.","x": 1e5}')


@pytest.mark.parametrize(
    "content",
    ["Let me see. It is 7.", "Let me see.  It is 7.\n", [{"type": "text", "text": "Let me see. It is 7."}]],
)
def test_white_space_and_parts_make_no_difference(content: object) -> None:
    found = spliced(SPOKEN, message(content=content))
    assert found is not None
    assert json.loads(found[-1])["content"] == "It is 7."


@pytest.mark.parametrize(
    "raw",
    [
        message(content="It is 8."),
        message(content=None),
        message(content="It is 7.", tool_calls=[json.loads(CALL)]),
        b'{"role":"user","content":"It is 7."}',
        b"no json",
    ],
)
def test_another_message_is_not_taken_for_it(raw: bytes) -> None:
    assert spliced(SILENT, raw) is None


def test_our_call_stands_among_the_clients_as_it_did_and_its_result_right_behind() -> None:
    raw = b'{"role":"assistant","content":"Hm","tool_calls":[ %b ]}' % CALL
    assert spliced(BESIDE, raw) == (
        b'{"role":"assistant","content":"Hm","tool_calls":[%b,%b]}' % (OWN, CALL),
        RESULT,
    )


def test_calls_are_known_by_their_ids_and_text_beside_them_may_be_left_out() -> None:
    assert spliced(BESIDE, b'{"role":"assistant","tool_calls":[%b]}' % CALL) is not None
    assert spliced(BESIDE, b'{"role":"assistant","tool_calls":[%b]}' % CALL.replace(b"call_w", b"call_v")) is None
    assert spliced(BESIDE, b'{"role":"assistant","content":"No","tool_calls":[%b]}' % CALL) is None


def test_calls_that_came_without_an_id_are_known_by_their_names() -> None:
    record = msgspec.structs.replace(BESIDE, calls=(Foreign("", "get_weather"),))
    assert spliced(record, message(content="Hm", tool_calls=[json.loads(CALL)])) is not None
    assert spliced(record, message(content="Hm", function_call={"name": "get_weather"})) == (
        b'{"role": "assistant","content": "Hm","function_call": {"name": "get_weather"},"tool_calls":[%b]}' % OWN,
        RESULT,
    )


NUMBERED = msgspec.structs.replace(BESIDE, calls=(Foreign("call_w", "get_weather"),))


def test_calls_that_the_client_numbers_anew_are_known_by_their_names_and_the_text() -> None:
    raw = b'{"role":"assistant","content":" Hm","tool_calls":[%b]}' % CALL.replace(b"call_w", b"D681PevKs")
    assert spliced(NUMBERED, raw) == (
        b'{"role":"assistant","content":" Hm","tool_calls":[%b,%b]}' % (OWN, CALL.replace(b"call_w", b"D681PevKs")),
        RESULT,
    )
    silent = msgspec.structs.replace(NUMBERED, visible="", text="")
    assert spliced(silent, message(tool_calls=[{**json.loads(CALL), "id": "x"}])) is not None


@pytest.mark.parametrize("content", ["Ha", None, ""])
def test_calls_numbered_anew_beside_another_text_are_other_calls(content: str | None) -> None:
    assert spliced(NUMBERED, message(content=content, tool_calls=[{**json.loads(CALL), "id": "x"}])) is None


def test_calls_numbered_anew_in_another_order_are_other_calls() -> None:
    record = msgspec.structs.replace(NUMBERED, calls=(Foreign("a", "get_weather"), Foreign("b", "bash")))
    calls = [{"id": name, "type": "function", "function": {"name": name}} for name in ("get_weather", "bash")]
    assert spliced(record, message(content="Hm", tool_calls=calls)) is not None
    assert spliced(record, message(content="Hm", tool_calls=calls[::-1])) is None


def test_a_call_of_ours_whose_id_the_client_gave_to_its_own_gets_another_and_so_does_its_result() -> None:
    other = OWN.replace(b"call_o", b"call_p")
    record = msgspec.structs.replace(
        NUMBERED,
        siblings=(Sibling(0, OWN), Sibling(2, other)),
        after=(RESULT, RESULT.replace(b"call_o", b"call_p")),
        calls=(Foreign("call_w", "get_weather"), Foreign("call_x", "get_weather")),
    )
    mine = [CALL.replace(b"call_w", b"call_o"), CALL.replace(b"call_w", b"read00000")]
    found = spliced(record, b'{"role":"assistant","content":"Hm","tool_calls":[%b,%b]}' % tuple(mine))
    assert found is not None
    said, *results = map(json.loads, found)
    assert [call["id"] for call in said["tool_calls"]] == ["read00001", "call_o", "call_p", "read00000"]
    assert [one["tool_call_id"] for one in results] == ["read00001", "call_p"]


def test_reasoning_of_the_rounds_before_is_not_said_twice() -> None:
    record = msgspec.structs.replace(SILENT, reasoning={"reasoning_content": "First. "})
    found = spliced(record, message(content="It is 7.", reasoning_content="First. Then."))
    assert found is not None
    assert json.loads(found[-1])["reasoning_content"] == "Then."
    for other in ("Then.", None, 7):
        found = spliced(record, message(content="It is 7.", reasoning_content=other))
        assert found is not None
        assert json.loads(found[-1])["reasoning_content"] == other


def test_halves_of_a_character_are_put_together() -> None:
    assert paired("\ud83d" + "\ude00") == "😀"
    assert paired("a\ud83d") == "a\ufffd"
    record = Hidden(before=BEFORE, visible=paired("\ud83d\ude00"), text="😀")
    assert spliced(record, b'{"role":"assistant","content":"\\ud83d\\ude00"}') is not None
