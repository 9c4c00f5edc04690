"""Which messages are the same message, and which requests continue which conversation."""

import json
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.identity import CanonicalHashes, canonical, chain, hashed, longest_first, model_family, root
from policies.request import Item

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ASSISTANT = {"role": "assistant", "tool_calls": [CALL]}
USER = {"role": "user", "content": "hi"}
CACHED = {"cache_control": {"type": "ephemeral"}}


def raw(message: Any) -> bytes:
    return json.dumps(message).encode()


def parts(*texts: str, **more: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text, **more} for text in texts]


SAME: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "cache_control of the message": (USER, USER | CACHED),
    "cache_control of a part": (
        {"role": "user", "content": parts("a", "b")},
        {"role": "user", "content": parts("a", "b", **CACHED)},
    ),
    "one text part": (USER, {"role": "user", "content": parts("hi")}),
    "one text part with cache_control": (USER, {"role": "user", "content": parts("hi", **CACHED)}),
    "annotation of the message": (USER, USER | {"edgewise": {"bucket": "memory"}}),
    "annotation of a part": (USER, {"role": "user", "content": parts("hi", edgewise={"name": "x"})}),
    "content null": (ASSISTANT, ASSISTANT | {"content": None}),
    "content empty": (ASSISTANT, ASSISTANT | {"content": ""}),
    "content without parts": (ASSISTANT, ASSISTANT | {"content": []}),
    "content of an empty part": (ASSISTANT, ASSISTANT | {"content": parts("")}),
    "index of a call": (ASSISTANT, {"role": "assistant", "tool_calls": [CALL | {"index": 0}]}),
    "cache_control of a call": (ASSISTANT, {"role": "assistant", "tool_calls": [CALL | CACHED]}),
    "cache_control of a custom call": (
        {"role": "assistant", "tool_calls": [{"id": "c1", "custom": {"name": "f"}}]},
        {"role": "assistant", "tool_calls": [{"id": "c1", "custom": {"name": "f"}} | CACHED]},
    ),
    "cache_control of a function": (
        ASSISTANT,
        {"role": "assistant", "tool_calls": [CALL | {"function": {**CACHED, "name": "f", "arguments": "{}"}}]},
    ),
    "null members": (USER, USER | dict.fromkeys(["name", "refusal", "audio", "function_call", "reasoning_content"])),
    "no calls": (USER, USER | {"tool_calls": [], "annotations": []}),
    "legacy call": (
        {"role": "assistant", "function_call": {"name": "f"}},
        {"role": "assistant", "function_call": {"name": "f"}, "content": None, "tool_calls": None},
    ),
}

DIFFERENT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "text": (USER, {"role": "user", "content": "hi "}),
    "role": (USER, {"role": "system", "content": "hi"}),
    "unknown member": (USER, USER | {"x": 1}),
    "unknown null member": (USER, USER | {"x": None}),
    "name": (USER, USER | {"name": "bob"}),
    "edgewise that is no annotation": (USER, USER | {"edgewise": 1}),
    "split into parts": (USER, {"role": "user", "content": parts("h", "i")}),
    "a part with more": (USER, {"role": "user", "content": parts("hi", x=1)}),
    "a part that is no text": (USER, {"role": "user", "content": [{"type": "refusal", "text": "hi"}]}),
    "a text that is none": (USER, {"role": "user", "content": [{"type": "text", "text": 1}]}),
    "parts that are strings": (USER, {"role": "user", "content": ["hi"]}),
    "empty content of a user": (USER | {"content": ""}, {"role": "user"}),
    "empty answer": ({"role": "assistant", "content": ""}, {"role": "assistant"}),
    "calls of another id": (ASSISTANT, {"role": "assistant", "tool_calls": [CALL | {"id": "c2"}]}),
    "calls that are none": (ASSISTANT, {"role": "assistant", "tool_calls": ["c1"]}),
    "arguments in other spelling": (
        ASSISTANT,
        {"role": "assistant", "tool_calls": [CALL | {"function": {"name": "f", "arguments": "{ }"}}]},
    ),
    "reasoning": (ASSISTANT, ASSISTANT | {"reasoning_content": "hm"}),
    "cache_control deep in what the client made": (USER | {"x": {}}, USER | {"x": CACHED}),
}


@pytest.mark.parametrize("name", SAME)
def test_what_clients_change_between_turns_is_left_out(name: str) -> None:
    one, other = SAME[name]
    assert canonical(raw(one)) == canonical(raw(other))


@pytest.mark.parametrize("name", DIFFERENT)
def test_everything_else_counts(name: str) -> None:
    one, other = DIFFERENT[name]
    assert hashed(raw(one)) != hashed(raw(other))


def test_key_order_white_space_and_escapes_do_not_count() -> None:
    one = b'{"role":"user","content":"\xc3\xa9/"}'
    other = b'{ "content" : "\\u00e9\\/" ,\n "role":"user"}'
    assert canonical(one) == canonical(other) == '{"content":"é/","role":"user"}'.encode()


@pytest.mark.parametrize(
    ("one", "other"), [("1e5", "100000.0"), ("1.0", "1"), ("9007199254740993", "9007199254740992")]
)
def test_numbers_count_as_they_are_spelt(one: str, other: str) -> None:
    assert hashed(f'{{"role":"user","x":{one}}}'.encode()) != hashed(f'{{"role":"user","x":{other}}}'.encode())


@pytest.mark.parametrize(
    "odd",
    [
        b'{"role":"user","content":"\\ud800"}',
        b'{"role":"user","content":"\xff"}',
        b'{"role":"user","x":NaN}',
        b'{"x":' + b"1" * 5000 + b"}",
        b'{"x":' + b"[" * 3000 + b"]" * 3000 + b"}",
    ],
)
def test_what_a_strict_parser_refuses_is_equal_to_itself_alone(odd: bytes) -> None:
    assert canonical(odd) == odd


def test_a_message_that_is_no_object_is_hashed_too() -> None:
    assert canonical(b' "hi" ') == b'"hi"'


def test_canonical_hashes_are_sixteen_bytes_and_remembered_by_the_bytes_that_came() -> None:
    hashes = CanonicalHashes(limit=2)
    plain, spaced, other = Item.of(raw(USER)), Item.of(b" " + raw(USER)), Item.of(raw(ASSISTANT))
    first = hashes.of([plain, spaced, other, plain])
    assert first == [hashed(plain.raw), first[0], hashed(other.raw), first[0]]
    assert {len(one) for one in first} == {16}
    assert hashes.of([plain, spaced, other, plain]) == first
    assert hashes.of([Item(b"not looked at", plain.key)]) == [first[0]]


def test_a_root_is_of_tenant_upstream_and_family_and_no_name_reaches_into_the_next() -> None:
    roots = {root("t", "u", "gpt-4o"), root("tu", "", "gpt-4o"), root("t", "ug", "pt-4o"), root("s", "u", "gpt-4o")}
    assert len(roots) == 4
    assert (
        root("t", "u", "gpt-4o").hex() == "c4a057fabde14bef2dd5915384a8f41d"
    )  # a changed root forgets every conversation
    assert len(root("\ud800", "", "")) == 16


def test_a_chain_goes_on_from_any_of_its_links() -> None:
    hashes = [hashed(raw(USER)), hashed(raw(ASSISTANT)), hashed(raw(USER))]
    links = chain(root("t", "u", "m"), hashes)
    assert links == [*chain(root("t", "u", "m"), hashes[:1]), *chain(links[0], hashes[1:])]
    assert len(set(links)) == 3
    assert links[1] == blake2b(links[0] + hashes[1], digest_size=16).digest()
    assert chain(root("t", "u", "m"), []) == []


@given(st.lists(st.binary(min_size=16, max_size=16)), st.lists(st.binary(min_size=16, max_size=16)))
def test_chains_agree_exactly_as_far_as_their_messages_do(one: list[bytes], other: list[bytes]) -> None:
    start = root("t", "u", "m")
    first, second = chain(start, one), chain(start, other)
    for at, (link, its) in enumerate(zip(first, second, strict=False)):
        assert (link == its) == (one[: at + 1] == other[: at + 1])


@pytest.mark.parametrize("count", [0, 1, 8, 9, 3000])
def test_every_key_is_asked_for_once_and_the_longest_first(count: int) -> None:
    links = chain(root("t", "u", "m"), [bytes(16)] * count)
    lists = list(longest_first(links))
    assert [key for keys in lists for key in keys] == [link.hex() for link in reversed(links)]
    assert [len(keys) for keys in lists][:2] == [min(count, 8), min(count - 8, 64)][: len(lists)]
    assert len(lists) <= 5


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("openai/gpt-4o-2024-08-06", "gpt-4o"),
        ("ft:gpt-4o-2024-08-06:acme::x1", "gpt-4o"),
        ("gpt-4-0613", "gpt-4"),
        ("gpt-4o", "gpt-4o"),
        ("GPT-4.1-mini", "gpt-4.1-mini"),
        ("claude-3-5-sonnet-20241022", "claude-3-5-sonnet"),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", "anthropic.claude-3-5-sonnet"),
        ("claude-sonnet-4@20250514", "claude-sonnet-4"),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet"),
        ("mistral-large-2411", "mistral-large"),
        ("gemini-2.5-pro-preview-05-06", "gemini-2.5-pro-preview"),
        ("gemini-2.5-flash-preview-09-2025", "gemini-2.5-flash-preview"),
        ("llama3.1:latest", "llama3.1"),
        ("llama3.1:8b-instruct-q4_0", "llama3.1:8b-instruct-q4_0"),
        ("qwen/qwen3-32b", "qwen3-32b"),
        ("model-9999", "model-9999"),
        ("-latest", "-latest"),
        ("", ""),
    ],
)
def test_a_family_is_the_model_without_provider_and_date(model: str, family: str) -> None:
    assert model_family(model) == family


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
CALLS = st.fixed_dictionaries({"id": TEXT, "function": st.fixed_dictionaries({"name": TEXT, "arguments": TEXT})})
PARTS = st.fixed_dictionaries({"type": st.sampled_from(["text", "image_url"]), "text": TEXT})
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool"])},
    optional={
        "content": TEXT | st.lists(PARTS, max_size=3),
        "tool_calls": st.lists(CALLS, max_size=3),
        "x": VALUE,
    },
)


def reordered(value: Any, mixed: Callable[[list[Any]], list[Any]]) -> Any:
    if isinstance(value, dict):
        return {name: reordered(value[name], mixed) for name in mixed(list(value))}
    return [reordered(one, mixed) for one in value] if isinstance(value, list) else value


def marked(message: dict[str, Any]) -> dict[str, Any]:
    content, calls = message.get("content"), message.get("tool_calls")
    changed = message | CACHED
    if isinstance(content, list):
        changed["content"] = [part | CACHED for part in content]
    if calls:
        changed["tool_calls"] = [call | CACHED | {"index": at} for at, call in enumerate(calls)]
    return changed


@given(MESSAGE, st.randoms(use_true_random=False), st.integers(0, 3), st.booleans())
def test_a_hash_outlives_order_space_escapes_and_cache_marks(
    message: dict[str, Any], chance: Any, indent: int, escaped: bool
) -> None:
    changed = reordered(marked(message), lambda names: chance.sample(names, len(names)))
    written = json.dumps(changed, indent=indent, ensure_ascii=escaped).encode()
    assert hashed(written) == hashed(raw(message))


@given(TEXT, TEXT, st.sampled_from(["user", "tool"]))
def test_a_hash_tells_two_texts_apart_however_they_are_written(one: str, other: str, role: str) -> None:
    first = hashed(raw({"role": role, "content": one}))
    assert (hashed(raw({"content": parts(other), "role": role})) == first) == (one == other)
