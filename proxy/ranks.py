"""The tokenizers that ship in the wheel. No network, ever: `tiktoken` itself would download at first use.

A rank file is an xz stream of tokens in order of rank, each one length byte and the token's bytes. `tools/
build_ranks.py` makes it from OpenAI's published file and can rebuild that file from it, sha256 and all. The ranks and
patterns are OpenAI's (MIT, see NOTICE).
"""

import lzma
import re
import threading
from collections.abc import Iterator
from importlib import resources
from typing import NamedTuple

import tiktoken

from policies.counting import COUNTED_CHARS

SLICE = 256 * 1024  # characters encoded in one go: other threads get the interpreter in between
_REACH = SLICE // 4  # how far before the end of a slice a good place to cut is looked for

# Places at which every pattern below starts a new piece whatever follows, so that counts on both sides add up exactly:
# a letter or digit before most punctuation or white space, and a newline before a letter or digit.
_SEAM = re.compile(r"""[^\W_](?=[\n "(){}\[\],:;.<>=+/、。，！？])|\n(?=[^\W_])""")

_CL100K = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|"""
    r"""\s+(?!\S)|\s"""
)
_O200K = "|".join(
    [
        r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
        r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
        r"""\p{N}{1,3}""",
        r""" ?[^\s\p{L}\p{N}]+[\r\n/]*""",
        r"""\s*[\r\n]+""",
        r"""\s+(?!\S)""",
        r"""\s+""",
    ]
)


class _Source(NamedTuple):
    pattern: str
    special: dict[str, int]


SOURCES = {
    "o200k_base": _Source(_O200K, {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}),
    "cl100k_base": _Source(
        _CL100K,
        {
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
}

_loaded: dict[str, "Ranks"] = {}
_loading = threading.Lock()


class Ranks:
    """A byte-pair encoding, ready to count. Safe to share between threads."""

    def __init__(self, encoding: tiktoken.Encoding) -> None:
        self.name = encoding.name
        self._encoding = encoding

    def count(self, text: str) -> int:
        """Ordinary tokens of `text`; never raises.

        Exact up to `SLICE` characters, and beyond where the text can be cut at places that do not matter (nearly
        always: a run of 64k letters without a space has none, and costs a few tokens of error a cut). Characters past
        `COUNTED_CHARS` are not encoded but bounded from above: a token for each of their UTF-8 bytes.
        """
        if len(text) <= SLICE:
            return len(self._encoding.encode_ordinary(text))
        tail = len(text[COUNTED_CHARS:].encode("utf-8", "surrogatepass"))
        return tail + sum(len(self._encoding.encode_ordinary(piece)) for piece in slices(text[:COUNTED_CHARS]))


def slices(text: str) -> Iterator[str]:
    """Pieces of at most `SLICE` characters, cut at seams where there are any. Joined, they are the text."""
    start = 0
    while len(text) - start > SLICE:
        seam = _SEAM.search(text, start + SLICE - _REACH, start + SLICE)
        end = seam.end() if seam else start + SLICE
        yield text[start:end]
        start = end
    yield text[start:]


def tokens(name: str) -> list[bytes]:
    """The tokens of a shipped encoding in order of rank. Raises KeyError for an encoding that is not shipped."""
    if name not in SOURCES:
        raise KeyError(f"no ranks are shipped for '{name}'; there are {', '.join(sorted(SOURCES))}")
    packed = lzma.decompress(resources.files("proxy").joinpath(f"data/{name}.xz").read_bytes())
    found: list[bytes] = []
    at = 0
    while at < len(packed):
        end = at + 1 + packed[at]
        found.append(packed[at + 1 : end])
        at = end
    return found


def is_loaded(name: str) -> bool:
    """Whether `load` answers at once."""
    return name in _loaded


def load(name: str) -> Ranks:
    """The encoding called `name`, built at the first call (0.3 s) and kept. Raises KeyError when it is not shipped."""
    with _loading:
        if name not in _loaded:
            ranks = {token: rank for rank, token in enumerate(tokens(name))}
            source = SOURCES[name]
            encoding = tiktoken.Encoding(
                name, pat_str=source.pattern, mergeable_ranks=ranks, special_tokens=source.special
            )
            ranks.clear()  # the encoder has its own copy; this one, which only decoding needs, is 22 MB of o200k_base
            _loaded[name] = Ranks(encoding)
        return _loaded[name]
