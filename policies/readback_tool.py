"""The proxy's own tool, by which a model reads again what was taken out: how it is offered, when it may be, and what a
call of it asks for (DESIGN 7)."""

import re
from typing import Any

import msgspec

from policies.jsonraw import NotJSON, dumps, loads
from policies.request import Prompt
from policies.tools import Tool

NAME = "read_tool_result"
DEFINITION = dumps(
    {
        "type": "function",
        "function": {
            "name": NAME,
            "description": "Reads the full text of an earlier tool result of which this conversation shows only a part,"
            " by the ref that stands there. Changes nothing. Long texts come in pages.",
            "parameters": {
                "type": "object",
                "properties": {
                    "ref": {"type": "string", "description": "As it is shown: tr_ and hex digits."},
                    "offset": {
                        "type": "string",
                        "description": "Where to begin: a character such as 8000, or a line such as L120.",
                    },
                    "limit": {
                        "type": "string",
                        "description": "How much at most: characters such as 2000, or lines such as L40.",
                    },
                    "grep": {
                        "type": "string",
                        "description": "Show only lines with this text or simple regular expression.",
                    },
                },
                "required": ["ref"],
            },
        },
    }
)
ARGUMENTS = ("ref", "offset", "limit", "grep")
MOST_GREP = 200  # characters of a pattern

_FREE = (None, b"null", b'"auto"')  # values of `tool_choice` under which a model may call any tool
_REF = re.compile(r"tr_[0-9a-f]{16,}", re.IGNORECASE)
_AMOUNT = re.compile(
    r"\s*(?P<line>l(?:ines?)?\s*)?(?P<sign>[+-]?)(?P<count>\d{1,15})(?:\.0*)?(?:\s*(?P<unit>lines?|chars?|characters?))?\s*",
    re.IGNORECASE,
)


class Amount(msgspec.Struct, frozen=True):
    """Characters, or lines; lines count from 1. As a place, a negative number counts from the end."""

    count: int
    lines: bool = False


class Ask(msgspec.Struct, frozen=True):
    """What a call asks for. With `grep`, `limit` says how many matches are shown."""

    ref: str
    offset: Amount = Amount(0)
    limit: Amount | None = None
    grep: str = ""


class Unclear(ValueError):
    """The message is for the model: what is wrong with its arguments, and how to put it right."""


def barred(prompt: Prompt, choices: int | None) -> str:
    """Why the tool may not be offered for the first time with this request; "" when it may. `choices` is `n`."""
    if not prompt.tools:
        return "no tools"
    if any(Tool.of(tool.raw).name == NAME for tool in prompt.tools):
        return "name taken"
    if choices is not None and choices > 1:
        return "several choices"
    return "" if prompt.tool_choice in _FREE else "tool choice"


def asked(arguments: str) -> Ask:
    """The arguments of a call. Numbers may be strings, and absent where they are null or empty. Raises Unclear."""
    values = _object(arguments)
    unknown = next((name for name in values if name not in ARGUMENTS), None)
    if unknown is not None:
        raise Unclear(f"there is no argument {unknown[:40]!r}; {NAME} takes {', '.join(ARGUMENTS)}")
    limit = _amount("limit", values.get("limit"))
    if limit is not None and limit.count < 1:
        raise Unclear("limit must be 1 or more")
    return Ask(_ref(values.get("ref")), _amount("offset", values.get("offset")) or Amount(0), limit, _grep(values))


def _object(arguments: str) -> dict[str, Any]:
    try:
        value = loads(arguments.encode("utf-8", "surrogatepass")) if arguments.strip() else {}
        if isinstance(value, str):  # some servers encode twice
            value = loads(value.encode("utf-8", "surrogatepass"))
    except NotJSON:
        value = None
    if not isinstance(value, dict):
        raise Unclear('the arguments must be a JSON object such as {"ref": "tr_…", "offset": "0"}')
    return value


def _ref(value: object) -> str:
    found = _REF.search(value) if isinstance(value, str) else None
    if found is None:
        said = f"{value[:60]!r} is none" if isinstance(value, str) and value else "it is missing"
        raise Unclear(f"ref must be copied from where it is shown, tr_ and at least 16 hex digits; {said}")
    return found[0].lower()


def _amount(name: str, value: object) -> Amount | None:
    if value is None or value == "":
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1:
        value = str(int(value))
    found = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise Unclear(f"{name} must be a whole number of characters such as 2000, or of lines such as L40")
    count = int(found["count"])
    is_lines = found["line"] is not None or (found["unit"] or "").lower().startswith("line")
    return Amount(-count if found["sign"] == "-" else count, is_lines)


def _grep(values: dict[str, Any]) -> str:
    value = values.get("grep")
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Unclear("grep must be a string: a text or a simple regular expression")
    if len(value) > MOST_GREP:
        raise Unclear(f"grep must be {MOST_GREP} characters or shorter")
    return value
