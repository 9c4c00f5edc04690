import json

from support.grammar import faults
from support.sessions import Conversation, album, batches, big_sessions, conversations, loop

TOOLS = [{"type": "function", "function": {"name": name}} for name in ("sort", "ls")]
TALK = [
    {"role": "user", "content": "one"},
    {"role": "assistant", "content": "two"},
    {"role": "user", "content": "three"},
    {"role": "assistant", "content": "four"},
]


def test_a_request_is_the_prefix_up_to_an_assistant_message() -> None:
    bodies = [json.loads(body) for body in Conversation("t", "gpt-4o", TALK, TOOLS).requests()]
    assert [[message["content"] for message in body["messages"]] for body in bodies] == [
        ["one"],
        ["one", "two", "three"],
    ]
    assert all(body["tools"] == TOOLS and body["model"] == "gpt-4o" for body in bodies)


def test_a_withheld_tool_is_offered_from_its_turn_on() -> None:
    talk = Conversation("t", "gpt-4o", TALK, TOOLS, [(0, frozenset({"sort"})), (2, frozenset())])
    first, second = [json.loads(body) for body in talk.requests()]
    assert [tool["function"]["name"] for tool in first["tools"]] == ["ls"]
    assert [tool["function"]["name"] for tool in second["tools"]] == ["sort", "ls"]


def test_every_recorded_request_is_valid() -> None:
    recorded = conversations()
    found = [faults(json.loads(body)) for conversation in recorded for body in conversation.requests()]
    assert len(recorded) == 32
    assert len(found) == 527
    assert not any(found)


def test_made_conversations_are_valid_and_as_large_as_asked() -> None:
    small = loop(1, 20, 40_000)
    assert 120_000 < len(small.request(len(small.messages) - 1)) < 220_000
    for conversation in (small, batches(1), album(1)):
        assert [faults(json.loads(body)) for body in conversation.requests()][-1] == []


def test_made_conversations_are_the_same_each_time() -> None:
    assert [c.request(9) for c in big_sessions(3)] == [c.request(9) for c in big_sessions(3)]
