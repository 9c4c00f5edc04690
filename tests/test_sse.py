import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.sse import MAX_BUFFER, STREAM_TAIL, Splitter, Tap, data_of

EVENTS = [
    b'data: {"choices":[{"delta":{"content":"\xe2\x82\xac"}}],"usage":null}\n\n',
    b": comment\n\n",
    b"event: x\r\nid: 1\r\ndata:{}\r\n\r\n",
    b"data: a\ndata: b\n\n",
    b'data: {"choices":[],"usage":{"prompt_tokens":5,"total_tokens":7}}\r\n\r\n',
    b"data: [DONE]\n\n",
]


def split(received: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(received) + 1) for cut in cuts), len(received)]
    return [received[start:end] for start, end in pairwise(edges)]


@given(st.lists(st.sampled_from(EVENTS), max_size=8), st.lists(st.integers(0, 10_000), max_size=40))
def test_events_are_the_same_whatever_the_cuts(events: list[bytes], cuts: list[int]) -> None:
    splitter = Splitter()
    seen = [event for piece in split(b"".join(events), cuts) for event in splitter.feed(piece)]
    assert seen == events
    assert splitter.rest() == b""


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=10))
def test_no_byte_is_lost_or_added_whatever_comes(received: bytes, cuts: list[int]) -> None:
    splitter = Splitter(max_buffer=16)
    seen = [event for piece in split(received, cuts) for event in splitter.feed(piece)]
    assert b"".join(seen) + splitter.rest() == received


def test_a_carriage_return_at_the_end_waits_for_its_line_feed() -> None:
    splitter = Splitter()
    assert splitter.feed(b"data: a\r\n\r") == []
    assert splitter.feed(b"\ndata: b\r\r") == [b"data: a\r\n\r\n"]
    assert splitter.feed(b"d") == [b"data: b\r\r"]


def test_an_event_beyond_the_buffer_comes_in_pieces() -> None:
    splitter = Splitter(max_buffer=10)
    assert splitter.feed(b"data: 12") == []
    assert splitter.feed(b"3456") == [b"data: 123456"]
    assert splitter.rest() == b""


def test_data_lines_are_joined_and_other_lines_left_out() -> None:
    assert data_of(b"event: x\ndata: a\r\ndata:b\rid: 1\n\n") == b"a\nb"
    assert data_of(b": ping\n\n") == b""
    assert data_of(b"data:  two spaces\n\n") == b" two spaces"


@given(st.lists(st.integers(0, 10_000), max_size=40))
def test_the_tap_finds_usage_whatever_the_cuts(cuts: list[int]) -> None:
    tap = Tap()
    for piece in split(b"".join(EVENTS), cuts):
        tap.feed(piece)
    assert tap.usage(stream=True) == {"prompt_tokens": 5, "total_tokens": 7}


def test_the_last_usage_of_a_stream_counts() -> None:
    tap = Tap()
    for tokens in (1, 2, 3):
        tap.feed(b'data: {"usage":{"completion_tokens":%d}}\n\n' % tokens)
    tap.feed(b'data: {"usage":null}\n\ndata: {"usage":{"completion_tokens":4}}')
    assert tap.usage(stream=True) == {"completion_tokens": 4}


def test_usage_is_found_in_an_event_whose_beginning_is_forgotten() -> None:
    tap = Tap(STREAM_TAIL)
    event = b'data: {"choices":[{"text":"' + b"x" * 2 * STREAM_TAIL + b'"}],"usage":{"prompt_tokens":9}}\n\n'
    for start in range(0, len(event), 1000):
        tap.feed(event[start : start + 1000])
    assert len(tap.kept()) <= STREAM_TAIL
    assert tap.usage(stream=True) == {"prompt_tokens": 9}


@pytest.mark.parametrize("blank", [b"\n\n", b"\r\n\r\n", b"\r\r", b"\n\r\n", b"\r\n\n"])
def test_events_are_told_apart_from_the_end_by_any_blank_line(blank: bytes) -> None:
    tap = Tap()
    tap.feed(b'data: {"usage":{"n":1}}' + blank + b'data: {"usage":{"n":2}}' + blank + b'data: {"usage":null}' + blank)
    assert tap.usage(stream=True) == {"n": 2}


def test_a_stream_or_body_without_usage_has_none() -> None:
    tap = Tap()
    assert tap.usage(stream=True) is None
    assert tap.usage(stream=False) is None
    tap.feed(b'data: {"usage":7}\n\ndata: "usage"\n\ndata: {"usage"\n\n')
    assert tap.usage(stream=True) is None


def test_usage_of_a_plain_body_stands_at_its_top_level() -> None:
    tap = Tap()
    tap.feed(b'{"choices":[{"message":{"content":"\\"usage\\": {\\"a\\":1}"},"usage":{"a":2}}],')
    tap.feed(b'"usage":{"prompt_tokens":3}}')
    assert tap.usage(stream=False) == {"prompt_tokens": 3}


def test_usage_is_found_behind_a_body_that_is_longer_than_the_buffer() -> None:
    said = json.dumps({"content": 'he said "usage": {"prompt_tokens": 0} ' * 20_000})
    body = b'{"message":' + said.encode() + b',"usage": {"prompt_tokens":9,"d":{"cached":1}}}'
    tap = Tap()
    for start in range(0, len(body), 1000):
        tap.feed(body[start : start + 1000])
    assert len(body) > 2 * MAX_BUFFER
    assert tap.usage(stream=False) == {"prompt_tokens": 9, "d": {"cached": 1}}


def test_usage_before_what_the_buffer_holds_is_unknown() -> None:
    tap = Tap()
    tap.feed(b'{"usage":{"prompt_tokens":9},"content":"')
    for _ in range(5):
        tap.feed(b"x" * (MAX_BUFFER // 2))
    assert tap.usage(stream=False) is None


def test_usage_that_is_cut_off_gives_way_to_the_one_before() -> None:
    tap = Tap()
    tap.feed(b'{"n":NaN,"a":{"usage":{"prompt_tokens":3}},"usage":{"prompt_tok')
    assert tap.usage(stream=False) == {"prompt_tokens": 3}


def test_usage_is_read_beside_what_msgspec_refuses() -> None:
    tap = Tap()
    tap.feed(b'{"content":"\\ud800","n":NaN,"usage":{"prompt_tokens":3}}')
    assert tap.usage(stream=False) == {"prompt_tokens": 3}
