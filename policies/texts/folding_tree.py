"""JSON text as a tree that keeps the spelling of its numbers, and back.

`measure` and figures elsewhere are tokens; sizes here are characters of compact JSON.
"""

import json
import re
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any, NoReturn

import msgspec

MAX_DEPTH = 100  # levels; deeper JSON is treated as text (FACTS 3)
MARK = "…"  # the key that names what was dropped; a text that has it already is not folded, so nothing is folded twice

_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*+"|[^" \t\r\n]+')
_SURROGATE = re.compile("[\ud800-\udfff]")
_ALARM_KEY = re.compile(r"error|exception|fail|warning|错误|錯誤|异常|失败|失敗|警告", re.IGNORECASE)
_GOOD_KEY = frozenset(("success", "ok", "succeeded", "healthy", "valid", "available"))
_STATE_KEY = re.compile(r"(?:^|[_\-.]|[a-z](?=[A-Z]))(?i:status|state|level|severity|outcome|result|health|code|状态)$")
_CALM = frozenset(("", "none", "no", "null", "n/a", "ok", "no error", "0", "false", "无"))
_BAD_STATE = re.compile(
    r"err|fail|fatal|crit|except|denied|reject|time[_ -]?out|timed|panic|warn|unhealthy|abort|crash|blocked|"
    r"错误|异常|失败|超时|警告|エラー|失敗|오류",
    re.IGNORECASE,
)
_BAD_TEXT = re.compile(
    r"Traceback \(|\b\w*(?:Error|Exception)\b|\b(?:ERROR|FATAL|FAILED|CRITICAL)\b|错误|异常|失败|エラー|失敗"
)


class Number(str):
    """A number as it is spelled in the source: `1e5`, `1.0`, 40 digits."""

    __slots__ = ()


class Facts(msgspec.Struct, frozen=True):
    """Of a container: characters of its compact form, and whether something in it reports a problem."""

    size: int
    alarmed: bool


class Tree(msgspec.Struct, frozen=True):
    """A parsed document: dicts, lists, strings, Numbers, booleans and None; facts by id() of each container."""

    root: Any
    facts: dict[int, Facts]

    def size(self, value: Any) -> int:
        return self.facts[id(value)].size if isinstance(value, dict | list) else scalar_size(value)

    def alarmed(self, key: str, value: Any) -> bool:
        return self.facts[id(value)].alarmed if isinstance(value, dict | list) else is_alarm(key, value)


class _Unfit(ValueError):
    """The text is not a JSON document that can be folded truly."""


def parse(text: str) -> Tree | None:
    """None when the text is no JSON object or array, is too deep, repeats a name or has a `MARK` of its own."""
    if text.lstrip(" \t\r\n")[:1] not in ("{", "["):
        return None
    try:
        root = json.loads(text, parse_float=Number, parse_int=Number, parse_constant=_refuse, object_pairs_hook=_object)
        facts: dict[int, Facts] = {}
        _learn("", root, 1, facts)
    except (ValueError, RecursionError):
        return None
    return Tree(root, facts)


def write(value: Any) -> str:
    """Compact JSON; a lone surrogate is written as its escape."""
    parts: list[str] = []
    _write(value, parts)
    return escaped("".join(parts))


def escaped(text: str) -> str:
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def minify_json(text: str) -> str | None:
    """The same JSON without the white space between its tokens; None when it is no JSON or has none to lose.

    Every token keeps its spelling.
    """
    if text.lstrip(" \t\r\n")[:1] not in ("{", "["):
        return None
    try:
        json.loads(text, parse_constant=_refuse, parse_int=Number)
    except (ValueError, RecursionError):
        return None
    compact = packed(text)
    return compact if len(compact) < len(text) else None


def packed(text: str) -> str:
    """Valid JSON without the white space between its tokens."""
    return "".join(_TOKENS.findall(text))


def scalar_size(value: Any) -> int:
    if isinstance(value, Number):
        return len(value)
    return len(value) + 2 if isinstance(value, str) else 4


def is_alarm(key: str, value: Any) -> bool:
    """Does this member report a problem? `errors: 0` does not, `status: 503` and `ok: false` do."""
    kind = _kind(key)
    if value is None or isinstance(value, bool):
        return value is False if kind == "good" else kind == "alarm" and value is True
    if isinstance(value, Number):
        return _is_alarming_number(kind, value)
    if kind == "alarm" and value.strip().lower() not in _CALM:
        return True
    return bool((kind == "state" and _BAD_STATE.search(value[:80])) or _BAD_TEXT.search(value[:2000]))


def is_alarm_key(key: str) -> bool:
    return _kind(key) == "alarm"


def _is_alarming_number(kind: str, value: Number) -> bool:
    if kind == "alarm":
        return bool(value.strip("-0.eE+"))
    return kind == "state" and len(value) == 3 and value[0] in "45"


@lru_cache(maxsize=4096)
def _kind(key: str) -> str:
    if key.lower() in _GOOD_KEY:
        return "good"
    if _ALARM_KEY.search(key):
        return "alarm"
    return "state" if _STATE_KEY.search(key) else ""


def _refuse(spelling: str) -> NoReturn:
    raise _Unfit(f"{spelling} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs) or MARK in members:
        raise _Unfit("a name stands twice, or is the mark of a fold")
    return members


def _learn(key: str, value: Any, depth: int, facts: dict[int, Facts]) -> tuple[int, bool]:
    if depth > MAX_DEPTH:
        raise _Unfit(f"deeper than {MAX_DEPTH} levels")
    named = isinstance(value, dict)
    inherits = not named or is_alarm_key(key)  # {"error": {"message": …}} and {"errors": [{…}]} report problems
    size, alarmed = 2, False
    for own, one in value.items() if named else (("", one) for one in value):
        name = key if inherits else own
        if isinstance(one, dict | list):
            more, alarm = _learn(name, one, depth + 1, facts)
        else:
            more, alarm = scalar_size(one), alarmed or is_alarm(name, one)
        size += more + (len(own) + 4 if named else 1)
        alarmed = alarmed or alarm
    facts[id(value)] = Facts(size, alarmed)
    return size, alarmed


def _write(value: Any, parts: list[str]) -> None:
    if isinstance(value, Number):
        parts.append(value)
    elif isinstance(value, str):
        parts.append(encode_basestring(value))
    elif isinstance(value, dict):
        _write_all(((encode_basestring(name) + ":", one) for name, one in value.items()), "{}", parts)
    elif isinstance(value, list):
        _write_all((("", one) for one in value), "[]", parts)
    else:
        parts.append("null" if value is None else "true" if value else "false")


def _write_all(members: Any, brackets: str, parts: list[str]) -> None:
    separator = brackets[0]
    for name, value in members:
        parts.append(separator + name)
        _write(value, parts)
        separator = ","
    parts.append(brackets[1] if separator == "," else brackets)
