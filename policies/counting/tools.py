"""What a tool costs, so that each can be counted by itself and the sum is still that of the whole namespace.

Declarations follow each other as `any;\\n\\n// …`. Encodings merge the separator with the comment that follows it, and
never with the letter before it: a tool is counted with the separator in front of it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from policies.counting import Encoding
from policies.counting.typescript import HEAD, TAIL, declaration
from policies.jsonraw import NotJSON, TooDeep, loads
from policies.tools import name_of

_OPEN, _BETWEEN = " {\n\n", ";\n\n"


class Tool(NamedTuple):
    """`tokens` with the separator in front of it; `first` is what it costs more (or less) at the head of the list."""

    tokens: int
    first: int
    exact: bool
    name: str = ""


def count_tool(raw: bytes, encoding: Encoding) -> Tool:
    """One element of `tools` (or of the legacy `functions`). What is no function is counted as JSON.
    Raises TooDeep, nothing else."""
    value = _value(raw)
    function = _function(value)
    text = declaration(function, len(raw)) if function is not None else raw.decode("utf-8", "replace") + ";\n\n"
    body = text.removesuffix(_BETWEEN)
    mark = "//" if body.startswith("//") else ""
    first = encoding.count(_OPEN + mark) - encoding.count(_BETWEEN + mark)
    return Tool(encoding.count(_BETWEEN + body), first, function is not None, name_of(value))


def frame(encoding: Encoding) -> int:
    """What opens and closes the namespace, without the separator of the first tool."""
    return encoding.count(HEAD.removesuffix(_OPEN)) + encoding.count(_BETWEEN + TAIL)


def _value(raw: bytes) -> object:
    try:
        return loads(raw)
    except TooDeep:
        raise
    except NotJSON:
        return None


def _function(value: object) -> Mapping[str, Any] | None:
    if not isinstance(value, Mapping):
        return None
    function = value.get("function") if "function" in value else value
    return function if isinstance(function, Mapping) and isinstance(function.get("name"), str) else None
