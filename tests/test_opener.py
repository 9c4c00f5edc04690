import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies import opener
from policies.grown import before, leave, now
from policies.opener import REMEMBERED, SHORT, Opener
from policies.request import BadRequest, ChatRequest, Item

LONG = {"role": "system", "content": "x" * SHORT}
MESSAGES = st.lists(
    st.builds(lambda role, text: {"role": role, "content": text}, st.sampled_from(["user", "assistant"]), st.text()),
    max_size=4,
)
TOOLS = [{"type": "function", "function": {"name": "find"}}]


def body_of(*messages: Any, **fields: Any) -> bytes:
    return json.dumps({"model": "gpt-4o", "messages": [LONG, *messages], **fields}).encode()


def said(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


@given(MESSAGES, MESSAGES, MESSAGES, st.sampled_from([None, 1]), st.booleans())
def test_a_conversation_that_grows_opens_like_one_that_is_read_in_full(
    first: list[Any], second: list[Any], third: list[Any], indent: int | None, tools_first: bool
) -> None:
    opened = Opener()
    for messages in (first, first, [*first, *second], [*first, *third], [*first, *third, *second]):
        before, behind = ({"tools": TOOLS}, {}) if tools_first else ({}, {"tools": TOOLS, "stream": True})
        asked = {"model": "gpt-4o", **before, "messages": [LONG, *messages], **behind, "prompt_cache_key": "k"}
        body = json.dumps(asked, indent=indent, ensure_ascii=False).encode()
        assert opened.parse(body) == ChatRequest.parse(body)


def test_messages_that_came_before_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def counted(raws: tuple[bytes, ...]) -> Any:
        read.append(len(raws))
        return elements(raws)

    elements = Item.all
    opened = Opener()
    opened.parse(body_of(said("a"), said("b")))
    monkeypatch.setattr(Item, "all", counted)
    opened.parse(body_of(said("a"), said("b"), said("c")))
    opened.parse(body_of(said("a"), said("b"), said("c"), said("d"), said("e")))
    assert read == [1, 2]


def test_what_was_changed_inside_is_read_in_full() -> None:
    opened = Opener()
    opened.parse(body_of(said("one"), said("y" * 100)))
    body = body_of(said("two"), said("y" * 100), said("z"))
    assert opened.parse(body) == ChatRequest.parse(body)


@pytest.mark.parametrize(
    ("rest", "fault"),
    [
        (b', {"role": "user"}], "messages": []}', "'messages' stands twice"),
        (b', 7], "n": 1}', r"'messages\[2\]' must be an object"),
        (b', {"role": ], "n": 1}', "not valid JSON"),
        (b'], "tools": 7}', "'tools' must be an array"),
        (b'], "tools": [' + b"[" * 2000, "nested deeper"),
        (b'], "model": 1, "model": "x"}', "'model' stands twice"),
    ],
)
def test_what_is_wrong_behind_known_messages_is_said_as_ever(rest: bytes, fault: str) -> None:
    begun = b'{"messages": [' + json.dumps(LONG).encode() + b', {"role": "user", "content": "a"}'
    opened = Opener()
    opened.parse(begun + b"]}")
    with pytest.raises(BadRequest, match=fault) as ours:
        opened.parse(begun + rest)
    with pytest.raises(BadRequest) as plain:
        ChatRequest.parse(begun + rest)
    assert (str(ours.value), ours.value.param) == (str(plain.value), plain.value.param)


def test_a_request_without_messages_is_not_remembered() -> None:
    opened = Opener()
    body = json.dumps({"model": "m", "messages": [], "pad": "x" * SHORT}).encode()
    assert opened.parse(body) == opened.parse(body) == ChatRequest.parse(body)


def test_short_requests_are_read_in_full() -> None:
    opened = Opener()
    body = json.dumps({"messages": [said("a")]}).encode()
    assert opened.parse(body) == ChatRequest.parse(body)
    assert not opened._known


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Opener()
    for number in range(REMEMBERED + 5):
        opened.parse(body_of(said(str(number))))
    assert len(opened._known) == REMEMBERED
    monkeypatch.setattr(opener, "REMEMBERED_MESSAGES", 5)
    opened.parse(body_of(said("last"), said("of"), said("all")))
    assert [len(one.items) for one in opened._known.values()] == [4]


def test_the_texts_that_are_remembered_are_bounded_and_the_newest_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Opener()
    monkeypatch.setattr(opener, "REMEMBERED_BYTES", 3 * SHORT)
    for number in range(5):
        opened.parse(body_of(said(f"valve {number} is open")))
    texts = [json.loads(one.items[1].raw)["content"] for one in opened._known.values()]
    assert texts == ["valve 3 is open", "valve 4 is open"][-len(texts) :]
    assert len(texts) == 2
    monkeypatch.setattr(opener, "REMEMBERED_BYTES", 10)
    opened.parse(body_of(said("valve 5 is open")))
    assert len(opened._known) == 1


def test_a_conversation_that_goes_on_keeps_its_messages_and_is_remembered_once() -> None:
    opened = Opener()
    first = opened.parse(body_of(said("a"))).prompt.messages
    again = opened.parse(body_of(said("a"))).prompt.messages
    longer = opened.parse(body_of(said("a"), said("b"))).prompt.messages
    assert longer[0] is again[0] is first[0]
    assert len(opened._known) == 1


def test_what_was_worked_out_for_a_request_is_found_by_the_next_one_alone() -> None:
    opened = Opener()
    first, other = opened.parse(body_of(said("a"))), opened.parse(body_of(said("x")))
    leave(first.prompt.messages, "length", 2)
    again, longer = opened.parse(body_of(said("a"))), opened.parse(body_of(said("a"), said("b")))
    assert now(again.prompt.messages, "length") == 2
    assert before(longer.prompt.messages, "length") == (2, 2)
    assert now(longer.prompt.messages, "length") is None
    assert before(other.prompt.messages, "length") == (0, None)
