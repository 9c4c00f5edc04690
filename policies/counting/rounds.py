"""A parallel round: several calls of one assistant message and their results, which OpenAI's template packs into one.

The calls become `{"tool_uses": […]}`, the results one JSON list. Their tokens cannot be told apart exactly, so a round
is counted as one unit and shared out in proportion.
"""

import json
from collections.abc import Sequence
from typing import Any

from policies.counting import Encoding
from policies.counting.memo import REMEMBERED, Memo
from policies.jsonraw import NotJSON, loads
from policies.messages import Call


def arguments(call: Call) -> str:
    """The arguments as the template writes them: compact JSON, or as they are where they are no JSON."""
    value = _parsed(call.arguments)
    return call.arguments if value is None else _compact(value)


def calls_text(calls: Sequence[Call]) -> str:
    """The calls of a parallel round."""
    uses = [{"recipient_name": f"functions.{call.name}", "parameters": _or_text(call.arguments)} for call in calls]
    return _compact({"tool_uses": uses})


class Results:
    """Counts lists of results. `wide`: written with `\\uXXXX` escapes, None: not known, the larger is taken.

    No token of the encodings reaches over a comma and the space behind it, so that a list costs what its parts cost: a
    result that stays beside another that changed is not counted again.
    """

    def __init__(self, encoding: Encoding, *, wide: bool | None) -> None:
        self._encoding, self._wide = encoding, wide
        self._parts: Memo[tuple[bytes, bool, bool], tuple[int, int]] = Memo(REMEMBERED)

    def tokens(self, keys: Sequence[bytes], texts: Sequence[str]) -> int:
        """Tokens of the list. A key tells a text apart from all others."""
        last = len(texts) - 1
        parts = [
            self._part((key, at == 0, at == last), text) for at, (key, text) in enumerate(zip(keys, texts, strict=True))
        ]
        plain, wide = sum([part[0] for part in parts]), sum([part[1] for part in parts])
        return max(plain, wide) if self._wide is None else (wide if self._wide else plain)

    def _part(self, key: tuple[bytes, bool, bool], text: str) -> tuple[int, int]:
        found = self._parts.get(key)
        return found if found is not None else self._parts.set(key, self._count(text, first=key[1], last=key[2]))

    def _count(self, text: str, *, first: bool, last: bool) -> tuple[int, int]:
        """As it is, and with escapes; what nobody asks for is not counted."""
        value = _or_text(text)
        plain, wide = (_between(json.dumps(value, ensure_ascii=one), first=first, last=last) for one in (False, True))
        if self._wide is not None or plain == wide:
            tokens = self._encoding.count(wide if self._wide else plain)
            return tokens, tokens
        return self._encoding.count(plain), self._encoding.count(wide)


def shares(total: int, weights: Sequence[int]) -> list[int]:
    """`total` in proportion to `weights`, rounded down: what remains belongs to nobody."""
    whole = sum(weights)
    return [total * weight // whole if whole else 0 for weight in weights]


def _or_text(text: str) -> Any:
    value = _parsed(text)
    return text if value is None else value


def _parsed(text: str) -> Any:
    try:
        return loads(text.encode("utf-8", "surrogatepass"))
    except NotJSON:
        return None


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _between(value: str, *, first: bool, last: bool) -> str:
    return ("[" if first else " ") + value + ("]" if last else ",")
