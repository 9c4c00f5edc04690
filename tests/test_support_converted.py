"""Other formats become the chat request that a client would have sent."""

import json
from typing import Any

import pytest
from support.converted import chat_of, sayable

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
ANTHROPIC: dict[str, Any] = {
    "model": "m",
    "system": [{"type": "text", "text": "Be brief."}],
    "tools": [{"name": "look", "description": "Looks.", "input_schema": SCHEMA}],
    "tool_choice": {"type": "any"},
    "messages": [
        {"role": "user", "content": "Look."},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm."},
                {"type": "tool_use", "id": "t1", "name": "look", "input": {"path": "a"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "Seen."}]},
                {"type": "text", "text": "Well?"},
            ],
        },
    ],
}
GEMINI: dict[str, Any] = {
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "tools": [{"functionDeclarations": [{"name": "look", "parameters": {"type": "OBJECT"}}]}],
    "contents": [
        {"role": "user", "parts": [{"text": "Look."}]},
        {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}, "thoughtSignature": "s"}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"seen": 1}}}]},
    ],
}


def test_anthropic_s_format() -> None:
    chat = chat_of("anthropic", ANTHROPIC)
    roles = [message["role"] for message in chat["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "user"]
    called = chat["messages"][2]
    assert called["reasoning_content"] == "Hm."
    assert json.loads(called["tool_calls"][0]["function"]["arguments"]) == {"path": "a"}
    assert chat["messages"][3] == {"role": "tool", "tool_call_id": "t1", "content": "Seen."}
    assert chat["tools"][0]["function"] == {"name": "look", "description": "Looks.", "parameters": SCHEMA}
    assert chat["tool_choice"] == "required"


def test_gemini_s_format() -> None:
    chat = chat_of("gemini", GEMINI)
    assert [message["role"] for message in chat["messages"]] == ["system", "user", "assistant", "tool"]
    call = chat["messages"][2]["tool_calls"][0]
    assert call["extra_content"] == {"google": {"thought_signature": "s"}}
    assert chat["messages"][3]["tool_call_id"] == call["id"]
    assert chat["tools"][0]["function"]["parameters"] == {"type": "object"}


def test_a_chat_request_stays_as_it_is() -> None:
    request: dict[str, Any] = {"model": "m", "messages": []}
    assert chat_of("chat", request) is request
    assert sayable("chat", request)


@pytest.mark.parametrize(("api", "request_"), [("anthropic", ANTHROPIC), ("gemini", GEMINI)])
def test_what_a_chat_request_can_say(api: str, request_: dict[str, Any]) -> None:
    assert sayable(api, request_)


@pytest.mark.parametrize(
    ("api", "changed"),
    [
        ("anthropic", ANTHROPIC | {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
        ("anthropic", ANTHROPIC | {"messages": [{"role": "user", "content": [{"type": "container_upload"}]}]}),
        ("gemini", GEMINI | {"tools": [{"googleSearch": {}}]}),
        ("gemini", GEMINI | {"contents": [{"role": "user", "parts": [{"fileData": {"mimeType": "video/mp4"}}]}]}),
    ],
)
def test_what_it_cannot_say(api: str, changed: dict[str, Any]) -> None:
    assert not sayable(api, changed)
