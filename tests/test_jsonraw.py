import inspect
import json
import sys
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.jsonraw import MAX_DEPTH, NotJSON, RawObject, TooDeep, array, dumps, elements, loads, whole

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def named(source: bytes) -> dict[str, bytes | None]:
    opened = RawObject.parse(source)
    return {member.name: opened.get(member.name) for member in opened.members}


def test_every_member_keeps_the_bytes_it_came_with() -> None:
    source = b' { "a" :1e5, "big":9007199254740993 ,\n"c":{"x": null}, "\\u0064": [1, 2], "e":"\\u0041\\/" } '
    assert named(source) == {
        "a": b"1e5",
        "big": b"9007199254740993",
        "c": b'{"x": null}',
        "d": b"[1, 2]",
        "e": b'"\\u0041\\/"',
    }


@pytest.mark.parametrize("source", [b"{}", b" { } ", b"{\n}"])
def test_an_empty_object_has_no_members(source: bytes) -> None:
    assert RawObject.parse(source).members == ()


def test_a_name_that_is_absent_is_none_and_the_last_of_two_counts() -> None:
    opened = RawObject.parse(b'{"a":1,"b":2,"a":3}')
    assert opened.get("c") is None
    assert opened.get("a") == b"3"
    assert [member.name for member in opened.members] == ["a", "b", "a"]
    assert named(b'{"a":12,"a":1,"b":3}') == {"a": b"1", "b": b"3"}


def test_a_name_that_stands_twice_is_told() -> None:
    opened = RawObject.parse(b'{"a":1,"b":2,"a":3}')
    assert opened.repeated(("b", "a")) == "a"
    assert opened.repeated(("b", "c")) is None


def test_what_msgspec_does_not_open_is_read_all_the_same() -> None:
    assert named(b'{"nan":NaN,"lone":"\\ud800","after":[1,{"x":-Infinity}]}') == {
        "nan": b"NaN",
        "lone": b'"\\ud800"',
        "after": b'[1,{"x":-Infinity}]',
    }
    assert named(b'{"bad utf-8":"\xff","n":NaN}')["bad utf-8"] == b'"\xff"'


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (b"[1]", "expected an object"),
        (b"", "expected an object"),
        (b'{"a" 1}', "expected ':' at byte 5"),
        (b'{"a":1 "b":2}', "expected ',' at byte 7"),
        (b'{"a":1} x', "more follows its end at byte 7"),
        (b'{"a":1', "expected ',' at byte 6"),
        (b"{1:2}", "a name is not a string at byte 1"),
        (b'{"a":}', "Expecting value"),
        (b'{"a":1,}', "Expecting value"),
        (b"{", "Expecting value"),
    ],
)
def test_what_is_no_object_is_told_with_its_place(source: bytes, why: str) -> None:
    with pytest.raises(NotJSON) as raised:
        RawObject.parse(source)
    assert str(raised.value).startswith("the body is not valid JSON: ")
    assert why in str(raised.value)


def test_what_is_no_array_is_told_too() -> None:
    with pytest.raises(NotJSON, match="expected an array"):
        elements(b"{}")


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_what_is_nested_too_deep_is_said_to_be(opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"}"
    deep = opening * 5000 + b"1" + closing * 5000
    with pytest.raises(TooDeep, match="nested deeper than 500 levels"):
        loads(deep)
    with pytest.raises(TooDeep):
        RawObject.parse(b'{"a":' + deep + b"}")
    with pytest.raises(TooDeep):
        elements(b"[" + deep + b"]")
    with pytest.raises(TooDeep):
        elements(b"[NaN," + deep + b"]")


@pytest.mark.parametrize("opening", [b"", b"[NaN,"], ids=["strict", "lenient"])
def test_a_stack_that_is_nearly_used_up_raises_nothing_else_either(opening: bytes) -> None:
    source = opening + b"[" * 400 + b"]" * 400 + b"]" * bool(opening)

    def below(frames: int) -> str:
        if frames:
            return below(frames - 1)
        try:
            return str(type(loads(source)))
        except TooDeep as error:
            return str(error)

    room = sys.getrecursionlimit() - len(inspect.stack(0))
    assert below(0) == "<class 'list'>"
    assert below(room - 100) in ("<class 'list'>", "the JSON is nested deeper than 500 levels")


def test_brackets_in_texts_are_no_depth() -> None:
    many = b'{"a":"' + b"[" * (MAX_DEPTH + 1) + b'","b":[' + b"{}," * MAX_DEPTH + b"{}]}"
    assert loads(many)["a"] == "[" * (MAX_DEPTH + 1)


def test_members_are_replaced_removed_and_appended_and_the_others_keep_their_bytes() -> None:
    opened = RawObject.parse(b'{ "a" : 1e5 , "b":[1, 2],"c":null }')
    assert opened.splice({"b": b'"new"', "c": None, "d": b"true", "e": None}) == b'{"a" : 1e5,"b":"new","d":true}'


def test_of_a_name_that_stands_twice_the_second_goes_with_the_change() -> None:
    assert RawObject.parse(b'{"a":1,"b":2,"a":3}').splice({"a": b"4"}) == b'{"a":4,"b":2}'


def test_elements_keep_their_bytes_whatever_they_are() -> None:
    assert elements(b' [1e5, {"a" : 1} ,"x",[ ]] ') == (b"1e5", b'{"a" : 1}', b'"x"', b"[ ]")
    assert elements(b'[NaN, "\\ud800" , {"a":[NaN]}]') == (b"NaN", b'"\\ud800"', b'{"a":[NaN]}')
    assert elements(b"[ ]") == ()
    assert array([b"1e5", b"[ ]"]) == b"[1e5,[ ]]"


def test_values_are_read_leniently_and_written_in_utf_8() -> None:
    assert loads(b'"\xff"') == "\ufffd"
    assert loads(b'["\\ud800", NaN]')[0] == "\ud800"
    with pytest.raises(NotJSON, match="the body is not valid JSON: Expecting"):
        loads(b"{")
    assert dumps({"a": "é", "b": [1, None]}) == '{"a":"é","b":[1,null]}'.encode()
    assert dumps("a\ud800") == b'"a\\ud800"'


@given(st.dictionaries(st.text(), JSON, max_size=6), st.sampled_from([None, 1]), st.booleans())
def test_any_object_opens_to_the_bytes_of_its_members(
    value: dict[str, object], indent: int | None, plain: bool
) -> None:
    source = json.dumps(value, indent=indent, ensure_ascii=plain).encode("utf-8", "backslashreplace")
    opened = RawObject.parse(source)
    assert [member.name for member in opened.members] == list(json.loads(source))
    for member in opened.members:
        assert source[member.start : member.end] == opened.get(member.name)
        assert repr(json.loads(opened.get(member.name) or b"")) == repr(json.loads(source)[member.name])
    assert repr(json.loads(opened.splice({}))) == repr(json.loads(source))


@given(st.lists(JSON, max_size=6))
def test_any_array_opens_to_the_bytes_of_its_elements(value: list[object]) -> None:
    source = json.dumps(value).encode()
    assert repr([json.loads(one) for one in elements(source)]) == repr(json.loads(source))
    assert repr(json.loads(array(elements(source)))) == repr(json.loads(source))


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_but_not_json(source: bytes) -> None:
    for read in (RawObject.parse, elements, loads):
        with suppress(NotJSON):
            read(source)


def test_an_integer_of_any_length_is_read() -> None:
    assert loads(b'{"a":' + b"9" * 6_000 + b"}") == {"a": float("inf")}
    assert loads(b"[" + b"9" * 100 + b",NaN]")[0] == int("9" * 100)


def test_a_lone_surrogate_becomes_a_question_mark() -> None:
    assert whole("gpt\ud800-é😀") == "gpt?-é😀"


@pytest.mark.parametrize(("items", "written"), [((), b"[]"), ((b"1",), b"[1]"), ((b"1", b"{}", b'"a"'), b'[1,{},"a"]')])
def test_an_array_is_its_elements_between_commas(items: tuple[bytes, ...], written: bytes) -> None:
    assert array(items) == written
