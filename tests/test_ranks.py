"""The shipped ranks are OpenAI's to the byte, and counting with them never raises."""

import base64
import hashlib
import socket
import sys
from pathlib import Path
from typing import NoReturn

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from support.shared import ROOT

from policies.counting import COUNTED_CHARS
from proxy import ranks

sys.path.insert(0, str(ROOT / "tools"))
import build_ranks  # a script, not part of a package

URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"


@pytest.mark.parametrize("name", sorted(ranks.SOURCES))
def test_the_shipped_ranks_rebuild_the_published_file_to_the_byte(name: str) -> None:
    assert hashlib.sha256(build_ranks.unpack(name)).hexdigest() == build_ranks.PUBLISHED[name]


def test_packing_refuses_a_file_that_was_not_published() -> None:
    with pytest.raises(ValueError, match="not that of a published rank file"):
        build_ranks.pack(base64.b64encode(b"a") + b" 0\n")


def test_packing_the_rebuilt_file_gives_the_shipped_one() -> None:
    shipped = (ROOT / "proxy/data/cl100k_base.xz").read_bytes()
    assert build_ranks.pack(build_ranks.unpack("cl100k_base")) == shipped


@pytest.mark.parametrize("name", sorted(ranks.SOURCES))
def test_pattern_and_counts_are_those_of_tiktoken(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached = tmp_path / hashlib.sha1(URL.format(name).encode(), usedforsecurity=False).hexdigest()
    cached.write_bytes(build_ranks.unpack(name))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    theirs = tiktoken.get_encoding(name)
    ours = ranks.SOURCES[name]
    assert (ours.pattern, ours.special) == (theirs._pat_str, theirs._special_tokens)
    text = 'We\'ll   count\n\n{"a": [1, 2345]} naïve 漢字 <|endoftext|> 🎉'
    assert ranks.load(name).count(text) == len(theirs.encode_ordinary(text))


def test_loading_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(ranks, "_loaded", {})
    assert ranks.load("o200k_base").count("hello world") == 2


def test_an_encoding_that_is_not_shipped_is_named_with_those_that_are() -> None:
    with pytest.raises(KeyError, match="no ranks are shipped for 'p50k_base'; there are cl100k_base, o200k_base"):
        ranks.load("p50k_base")


def test_an_encoding_is_built_once() -> None:
    assert ranks.load("o200k_base") is ranks.load("o200k_base")


@pytest.mark.parametrize("unit", [" ", "\n", "a", "\ud800", "漢", "!", " \n", "🎉"])
def test_a_million_characters_in_a_row_do_not_raise(unit: str) -> None:
    assert 0 < ranks.load("o200k_base").count(unit * (1_000_000 // len(unit))) <= 4_000_000


def test_text_beyond_the_limit_is_bounded_from_above() -> None:
    short, over = "word " * 1000, "é" * 5
    count = ranks.load("o200k_base").count
    text = ("word " * (COUNTED_CHARS // 5 + 1))[:COUNTED_CHARS]
    assert count(text + over) == count(text) + 10
    assert count(short) == 2 * len(short.split()) - 1000 + 1


WORDS = st.sampled_from(
    [
        *("word", "ABc", "It's", "'s", "1", "23", "4567", "é", "e\u0301", "漢字", "ǅ", "ʰ", "🎉", "\ud83d"),
        *(" ", "  ", "\n", "\r\n", "\n\n", "\t", "_", "/", "//", ".", "-", "+", "=", "(", ")", "<", ">"),
        *("、", "。", "{", "}", '"', ",", ":"),
    ]
)


@settings(deadline=None)  # the first example loads the ranks
@given(st.lists(WORDS, min_size=1, max_size=80), st.sampled_from(sorted(ranks.SOURCES)))
def test_counts_on_both_sides_of_every_seam_add_up(words: list[str], name: str) -> None:
    text = "".join(words)
    count = ranks.load(name).count
    whole = count(text)
    for seam in ranks._SEAM.finditer(text):
        assert count(text[: seam.end()]) + count(text[seam.end() :]) == whole


def test_slices_join_to_the_text_and_end_at_seams() -> None:
    text = 'one two, "three": 4\n' * 60_000
    pieces = list(ranks.slices(text))
    assert "".join(pieces) == text
    assert len(pieces) > 3
    assert max(map(len, pieces)) <= ranks.SLICE
    assert ranks.load("o200k_base").count(text) == 60_000 * ranks.load("o200k_base").count('one two, "three": 4\n')
