"""A parallel round: several calls of one assistant message and their results, which OpenAI's template packs into one.

The calls become `{"tool_uses": […]}`, the results one JSON list. Their tokens cannot be told apart exactly, so a round
is counted as one unit and shared out in proportion.
"""

import json
from collections.abc import Sequence
from typing import Any

from policies.counting import Encoding
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


def results_tokens(texts: Sequence[str], encoding: Encoding, *, wide: bool | None) -> int:
    """Tokens of the list of results; `wide`: written with `\\uXXXX` escapes, None: not known, take the larger."""
    values = [_or_text(text) for text in texts]
    spellings = {_spaced(values, wide=one) for one in ([False, True] if wide is None else [wide])}  # ASCII: the same
    return max(encoding.count(text) for text in spellings)


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


def _spaced(values: Any, *, wide: bool) -> str:
    return json.dumps(values, ensure_ascii=wide)
