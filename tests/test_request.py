import msgspec
import pytest

from policies.request import BadRequest, ChatRequest, Item, Prompt

BODY = (
    b'{ "model" : "gpt-4o", "x":1e5, "messages":[ {"role":"user","content":"a","n":null} ,{"role":"assistant"}],\n'
    b'"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto","parallel_tool_calls":true,'
    b'"seed":9007199254740993,"stream":true}'
)


def parsed() -> ChatRequest:
    return ChatRequest.parse(BODY)


def test_a_request_is_opened_one_level_and_keeps_its_bytes() -> None:
    request = parsed()
    assert request.body is BODY
    assert (request.model, request.stream) == ("gpt-4o", True)
    assert [item.raw for item in request.prompt.messages] == [
        b'{"role":"user","content":"a","n":null}',
        b'{"role":"assistant"}',
    ]
    assert [item.raw for item in request.prompt.tools] == [b'{"type":"function","function":{"name":"f"}}']
    assert request.prompt.tool_choice == b'"auto"'
    assert request.prompt.response_format is None


def test_an_item_is_known_by_a_digest_of_its_bytes() -> None:
    assert Item.of(b"{}").key == Item.of(b"{}").key
    assert Item.of(b"{}").key != Item.of(b"{ }").key
    assert len(Item.of(b"{}").key) == 16


@pytest.mark.parametrize(
    ("body", "message", "param"),
    [
        (b"[]", "the body is not valid JSON: expected an object", None),
        (b"{}", "'messages' is missing: it must be an array of messages", "messages"),
        (b'{"messages":null}', "'messages' is missing: it must be an array of messages", "messages"),
        (b'{"messages":"hello"}', "'messages' must be an array", "messages"),
        (b'{"messages":[{},"hello"]}', "'messages[1]' must be an object", "messages[1]"),
        (b'{"messages":[],"tools":{}}', "'tools' must be an array", "tools"),
        (b'{"messages":[],"model":"a","model":"b"}', "'model' stands twice in the request body", "model"),
        (b'{"messages":[],"messages":[]}', "'messages' stands twice in the request body", "messages"),
        (b'{"messages":[],"model":"\xff', "the body is not valid JSON: ", None),
    ],
)
def test_a_body_that_is_no_chat_request_is_the_clients_fault(body: bytes, message: str, param: str | None) -> None:
    with pytest.raises(BadRequest) as raised:
        ChatRequest.parse(body)
    assert str(raised.value).startswith(message)
    assert raised.value.param == param


@pytest.mark.parametrize("tools", [b"", b',"tools":null', b',"tools":[]'])
def test_a_request_without_tools_has_none(tools: bytes) -> None:
    request = ChatRequest.parse(b'{"messages":[]' + tools + b"}")
    assert request.prompt.tools == ()


@pytest.mark.parametrize("model", [b"", b',"model":7', b',"model":null', b',"model":"' + b"x" * 5000 + b'"'])
def test_a_model_that_is_no_short_text_is_no_model(model: bytes) -> None:
    request = ChatRequest.parse(b'{"messages":[]' + model + b',"stream":1}')
    assert (request.model, request.stream) == ("", False)


def test_the_first_positive_whole_number_of_several_fields_counts() -> None:
    request = ChatRequest.parse(b'{"messages":[],"a":0,"b":true,"c":-5,"d":null,"e":"9","f":1.5,"g":7,"h":8}')
    assert request.number("a", "b", "c", "d", "e", "f", "absent", "g", "h") == 7
    assert request.number("a") is None


def test_what_was_not_changed_is_forwarded_as_the_received_object() -> None:
    request = parsed()
    assert request.forward(request.prompt) is BODY
    copy = Prompt("gpt-4o", request.prompt.messages, request.prompt.tools)
    assert request.forward(copy) is BODY


def test_a_changed_message_is_spliced_between_the_old_bytes() -> None:
    request = parsed()
    changed = Prompt("gpt-4o", (Item.of(b'{"role":"user","content":"b"}'),), request.prompt.tools)
    assert request.forward(changed) == (
        b'{"model" : "gpt-4o","x":1e5,"messages":[{"role":"user","content":"b"}],'
        b'"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto","parallel_tool_calls":true,'
        b'"seed":9007199254740993,"stream":true}'
    )


def test_fields_are_put_beside_edits_and_never_by_themselves() -> None:
    request = parsed()
    beside = {"stream_options": b'{"include_usage":true}'}
    assert request.forward(request.prompt, beside) is BODY
    assert request.forward(Prompt("gpt-4o", request.prompt.messages, request.prompt.tools), beside) is BODY
    changed = Prompt("gpt-4o", (), request.prompt.tools)
    assert request.forward(changed, beside) == (
        request.forward(changed)[:-1] + b',"stream_options":{"include_usage":true}}'
    )


def test_changed_tools_leave_the_messages_as_they_were() -> None:
    request = parsed()
    changed = Prompt("gpt-4o", request.prompt.messages, (Item.of(b'{"type":"custom"}'),), b'"auto"')
    assert request.forward(changed) == (
        b'{"model" : "gpt-4o","x":1e5,"messages":[ {"role":"user","content":"a","n":null} ,{"role":"assistant"}],'
        b'"tools":[{"type":"custom"}],"tool_choice":"auto","parallel_tool_calls":true,'
        b'"seed":9007199254740993,"stream":true}'
    )


def test_the_last_tool_takes_with_it_what_needs_tools() -> None:
    request = parsed()
    assert request.forward(Prompt("gpt-4o", request.prompt.messages)) == (
        b'{"model" : "gpt-4o","x":1e5,"messages":[ {"role":"user","content":"a","n":null} ,{"role":"assistant"}],'
        b'"seed":9007199254740993,"stream":true}'
    )


def test_an_edited_request_without_tools_loses_what_only_tools_allow() -> None:
    two = b'{"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}],'
    body = two + b'"tools":%b,"tool_choice":"auto","n":1}'
    for tools, kept in ((b"[]", b""), (b"null", b'"tools":null,')):
        request = ChatRequest.parse(body % tools)
        shorter = msgspec.structs.replace(request.prompt, messages=request.prompt.messages[1:])
        assert request.forward(shorter) == b'{"messages":[{"role":"user","content":"b"}],' + kept + b'"n":1}'


def test_a_number_nested_without_end_is_no_number() -> None:
    body = b'{"messages":[],"max_tokens":' + b"[" * 600 + b"]" * 600 + b',"max_completion_tokens":7}'
    assert ChatRequest.parse(body).number("max_tokens", "max_completion_tokens") == 7


def test_fields_that_are_no_json_are_refused_also_where_the_body_was_opened_before() -> None:
    opened = ChatRequest.parse(b'{"messages":[]}')
    with pytest.raises(BadRequest, match="not valid JSON"):
        ChatRequest.of(opened.object, {"tools": b"[1 2]"}, ())
