"""The content of a message: text in one piece, media by size, base64 never as text."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.recorded import png

from policies.counting import COUNTED_CHARS
from policies.counting.bodies import Body, body, ending, opened
from policies.counting.images import Tiles
from policies.jsonraw import TooDeep
from policies.request import Item
from proxy import ranks

IMAGES = Tiles(85, 170)


def body_of(content: Any, *, reasoning: bool = False, **more: Any) -> Body:
    item = Item.of(json.dumps({"role": "user", "content": content, **more}).encode())
    return body(item, opened(item), IMAGES, reasoning=reasoning)


def test_text_parts_are_joined_with_nothing_between() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, {"type": "refusal", "refusal": "c"}]
    assert body_of(parts) == Body("abc", 0, exact=True)


def test_a_refusal_is_text() -> None:
    assert body_of(None, refusal="No.") == Body("No.", 0, exact=True)


def test_reasoning_counts_only_where_it_is_shown() -> None:
    assert body_of("b", reasoning_content="a").text == "b"
    assert body_of("b", reasoning_content="a", reasoning=True).text == "ab"


@pytest.mark.parametrize(("detail", "tokens"), [("high", 425), ("low", 85)])
def test_an_image_with_a_header_is_exact(detail: str, tokens: int) -> None:
    image = {"type": "image_url", "image_url": {"url": png(640, 480), "detail": detail}}
    assert body_of([image, {"type": "text", "text": "a"}]) == Body("a", tokens, exact=True)


def test_a_remote_image_is_an_estimate() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}
    assert body_of([image]) == Body("", 765, exact=False)


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        ({"type": "input_audio", "input_audio": {"data": "A" * 80_000, "format": "mp3"}}, 80),
        ({"type": "file", "file": {"file_data": "A" * 80_000}}, 1_702),
    ],
)
def test_sounds_and_files_are_estimated_by_their_bytes(part: dict[str, Any], tokens: int) -> None:
    estimated = body_of([part, {"type": "text", "text": "Hear"}])
    assert (estimated.text, estimated.exact) == ("Hear", False)
    assert estimated.media == pytest.approx(tokens, abs=5)


def test_a_part_of_unknown_kind_is_counted_as_it_stands_and_not_exact() -> None:
    assert body_of([{"type": "video", "url": "x"}]) == Body('{"type":"video","url":"x"}', 0, exact=False)


def test_a_text_beyond_the_limit_is_not_exact() -> None:
    assert not body_of("a" * (COUNTED_CHARS + 1)).exact


@pytest.mark.parametrize("raw", [b"[1]", b"{", b"7", b'"text"'])
def test_what_is_no_message_is_one_text(raw: bytes) -> None:
    item = Item.of(raw)
    assert body(item, opened(item), IMAGES).text == raw.decode()


@pytest.mark.parametrize(
    ("text", "end"), [("a b.\n", ".\n"), ("a b", ""), ("a'.", "a'."), ("...", "..."), ("漢。 ", "漢。 ")]
)
def test_the_ending_begins_behind_the_last_letter(text: str, end: str) -> None:
    assert ending(text) == end


WORDS = st.sampled_from(
    ["word", "It's", "9", "漢", "é", "e\u0301", " ", "\n", ".", "'", "_", "/", "`", "。", "\t", "🎉"]
)


@settings(deadline=None)
@given(st.lists(WORDS, max_size=12), st.sampled_from(sorted(ranks.SOURCES)))
def test_the_ending_alone_says_what_a_newline_costs(words: list[str], name: str) -> None:
    text, count = "".join(words), ranks.load(name).count
    end = ending(text)
    assert count(end + "\n") - count(end) == count(text + "\n") - count(text)


def test_a_message_nested_too_deep_is_not_taken_for_text() -> None:
    with pytest.raises(TooDeep):
        opened(Item.of(b'{"role":"tool","content":' + b"[" * 501 + b"]" * 501 + b"}"))
