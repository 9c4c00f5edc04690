import pytest
from support.prompts import body, chat, planned, system, tool, user

from policies.annotated import SHORT, NoteReader
from policies.annotations import Annotation
from policies.request import BadRequest, ChatRequest

NOTE = {"bucket": "memory", "name": "facts"}


def test_a_request_without_annotations_is_the_same_object() -> None:
    reader, request = NoteReader(), chat([user('"edgewise"')], tools=[tool("f")])
    assert reader.bare(request) is request
    assert reader.bare(request) is request


def test_annotations_become_notes_by_span_and_everything_else_keeps_its_bytes() -> None:
    request = ChatRequest.parse(
        b'{ "model": "gpt-4o", "n": 1e0, "messages": [{"role":"system","content":"a" ,'
        b' "edgewise": {"bucket": "memory"}}, {"role" : "user", "content": "b"}] ,'
        b' "tools": [{"type":"function","function":{"name":"f"},"edgewise":{}}]}'
    )
    bare = NoteReader().bare(request)
    assert bare.body == (
        b'{"model": "gpt-4o","n": 1e0,"messages": [{"role":"system","content":"a"},{"role" : "user", "content": "b"}],'
        b'"tools": [{"type":"function","function":{"name":"f"}}]}'
    )
    assert bare.notes == {"m0": Annotation(bucket="memory"), "t0": Annotation()}
    assert bare.prompt.messages[1] == request.prompt.messages[1]


def test_an_annotated_request_that_fits_counts_and_leaves_without_its_annotations() -> None:
    plain = [system("Likes tea."), user("Which tea?")]
    bare = NoteReader().bare(chat([plain[0] | {"edgewise": NOTE}, plain[1]]))
    made = planned(bare, 8_000)
    assert bare.forward(made.prompt) is bare.body
    assert b"edgewise" not in bare.body
    assert made.received_total == planned(chat(plain), 8_000).received_total
    assert [(span.bucket, span.name) for span in made.received] == [("memory", "facts"), ("current_turn", "")]


def test_a_conversation_that_grows_is_looked_at_where_it_grew() -> None:
    reader, first = NoteReader(), [user("a" * SHORT)]
    for request in (chat(first), chat(first), chat([*first, user("c")])):
        assert reader.bare(request) is request
    grown = reader.bare(chat([*first, user("b") | {"edgewise": NOTE}]))
    assert grown.notes == {"m1": Annotation("facts", "memory")}


def test_an_object_of_that_name_elsewhere_is_not_ours() -> None:
    request = chat([user("a")], tools=[tool("f") | {"x": {"edgewise": {"evict": "pinned"}}}])
    assert NoteReader().bare(request) is request


def test_an_annotation_that_cannot_be_followed_is_the_clients_fault() -> None:
    with pytest.raises(BadRequest, match=r"'messages\[0\].edgewise': unknown key 'bukket'; did you mean 'bucket'"):
        NoteReader().bare(ChatRequest.parse(body([user("a") | {"edgewise": {"bukket": "memory"}}])))


def test_an_annotation_nested_too_deep_is_the_clients_fault() -> None:
    raw = b'{"messages":[{"role":"user","content":"a","edgewise":{"x":' + b"[" * 501 + b"]" * 501 + b"}}]}"
    with pytest.raises(BadRequest, match="nested deeper"):
        NoteReader().bare(ChatRequest.parse(raw))
