"""How well each tool of a catalogue answers a text, and which tools a conversation shows that it needs.

Scores are BM25 over names, descriptions and parameter names, with no list of synonyms: words as they are written in
Latin and other alphabets, pairs of characters where words are not spaced (Chinese, Japanese, Korean).
"""

import math
import re
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import msgspec

from policies.draft import Draft
from policies.request import Item
from policies.spans import Span
from policies.tools import Tool

K1, B = 1.2, 0.4  # saturation, and how much a long description is discounted
NAME_WEIGHT, REST_WEIGHT = 3.0, 1.0
QUERY_CHARS = 4_000  # of a message: head and tail of a longer one

_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_RUN = re.compile(rf"([{_UNSPACED}]+)|([^\W_{_UNSPACED}]+)")
_NAME = re.compile(r"\w+(?:[.:/-]\w+)*")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ENDINGS = ("ing", "ed", "es", "s")
_LEAST_STEM = 3  # characters
_COMMON = (
    "a about all an and any are as at be been but by can could did do does for from get had has have how i if in into "
    "is it its just me my need no not of on or our please should so that the their them then there these they this to "
    "us use used using want was we were what when where which who will with would you your"
)
_UNSAID = frozenset(_COMMON.split())


def words(text: str) -> Iterator[str]:
    """The terms of a text: stems of words, pairs of characters."""
    for unspaced, word in _RUN.findall(_HUMP.sub(" ", text)):
        if unspaced:
            yield from (unspaced[at : at + 2] for at in range(max(1, len(unspaced) - 1)))
        elif word.lower() not in _UNSAID:
            yield _stem(word.lower())


class Catalogue(msgspec.Struct, frozen=True):
    """Tools in their order, and for each term how much it says for which tool."""

    names: tuple[str, ...]
    weights: dict[str, list[tuple[int, float]]]

    def scores(self, text: str) -> list[float]:
        """One score a tool; 0 where no term of `text` speaks for it."""
        found = [0.0] * len(self.names)
        for term in set(words(shortened(text))):
            for at, weight in self.weights.get(term, ()):
                found[at] += weight
        return found

    def best(self, text: str, count: int) -> list[str]:
        """Names of at most `count` tools that `text` speaks for, the best first; among equals in their order."""
        scores = self.scores(text)
        ranked = sorted((-score, at) for at, score in enumerate(scores) if score > 0)
        return [self.names[at] for _, at in ranked[:count]]


@lru_cache(maxsize=16)
def catalogue(tools: tuple[Item, ...]) -> Catalogue:
    """The catalogue of an array of tools; that of an array seen lately costs nothing."""
    documents = [_document(item.raw) for item in tools]
    lengths = [sum(document.values()) for document in documents]
    average = sum(lengths) / len(lengths) if lengths else 0.0
    holders = Tally(term for document in documents for term in document)
    weights: dict[str, list[tuple[int, float]]] = {}
    for at, document in enumerate(documents):
        discount = K1 * (1 - B + B * lengths[at] / average) if average else K1
        for term, often in document.items():
            rare = math.log(1 + (len(tools) - holders[term] + 0.5) / (holders[term] + 0.5))
            weights.setdefault(term, []).append((at, rare * often * (K1 + 1) / (often + discount)))
    return Catalogue(tuple(Tool.of(item.raw).name for item in tools), weights)


def called(draft: Draft) -> set[str]:
    """Names of the functions that are called in what is left of the conversation."""
    return {name for span in draft.messages for name in draft.facts(span).call_names}


def named(draft: Draft, spans: Iterable[Span]) -> set[str]:
    """Names of tools that stand as words in the texts of `spans`."""
    names = {tool.name for tool in draft.tools if tool.name}
    return {word for span in spans for word in _NAME.findall(draft.original(span)) if word in names}


def shortened(text: str) -> str:
    """What of a text is asked about: all of it, or the head and tail of a long one."""
    return text if len(text) <= QUERY_CHARS else text[: QUERY_CHARS // 2] + "\n" + text[-QUERY_CHARS // 2 :]


def ranked(draft: Draft, spans: Sequence[Span]) -> list[tuple[int, tuple[int, float], int, Span]]:
    """`spans` of tools, the least needed first: called in the kept history, named in the newest user text, then the
    priority that the client gave, then how well they answer it, then the order in which the client lists them."""
    users = [span for span in draft.messages if span.is_user]
    text = draft.message(users[-1]).text if users else ""
    calls = called(draft)
    scores = catalogue(tuple(span.item for span in spans)).scores(text)
    keys = [
        (_need(span.name, calls, text), (span.priority, score), -int(span.id[1:]), span)
        for span, score in zip(spans, scores, strict=True)
    ]
    return sorted(keys, key=lambda key: key[:3])


def _need(name: str, calls: set[str], text: str) -> int:
    return 2 if name in calls else int(bool(name) and name in text)


def _stem(word: str) -> str:
    ending = next((one for one in _ENDINGS if word.endswith(one) and len(word) - len(one) >= _LEAST_STEM), "")
    return word.removesuffix(ending)


@lru_cache(maxsize=4096)
def _document(raw: bytes) -> dict[str, float]:
    """Terms of a definition with how often each stands there, names counted more."""
    tool = Tool.of(raw)
    terms: dict[str, float] = {}
    for text, weight in ((tool.name, NAME_WEIGHT), (tool.description, REST_WEIGHT), (tool.parameters, REST_WEIGHT)):
        for term in words(text):
            terms[term] = terms.get(term, 0.0) + weight
    return terms
