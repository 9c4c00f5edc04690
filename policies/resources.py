"""What a tool call reads: the resource it names, and whether a later call reads no less of it."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from policies.jsonraw import NotJSON, TooDeep, dumps, loads

_RESOURCE = re.compile(  # arguments that name what is read: path, file_path, url, orderId, user_id
    r"(?:^|[_\-.]|(?<=[a-z])(?=[A-Z]))(?i:path|file|filename|filepath|url|uri|href|ids?|key|ref|slug|uuid|sku)$"
)
_PART = re.compile(  # arguments that choose a part of it
    r"(?:^|[_\-.])(?:offset|limit|start|end|from|to|lines?|range|page|cursor|head|tail|skip|take|first|last|max|min|count|"
    r"size|length|chunk|section|bytes)(?:$|[_\-.])"
)
_HUMPS = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Read(msgspec.Struct, frozen=True):
    """A call by tool and arguments, each argument as compact JSON; `place` counts messages."""

    place: int
    tool: str
    resource: Mapping[str, bytes]
    parts: Mapping[str, bytes]
    others: Mapping[str, bytes]

    @classmethod
    def of(cls, place: int, tool: str, arguments: str) -> "Read | None":
        """None when no argument names a resource."""
        try:
            values: Any = loads(arguments.encode("utf-8", "surrogatepass"))
        except (NotJSON, TooDeep):
            return None
        given = {name: dumps(value) for name, value in values.items()} if isinstance(values, dict) else {}
        resource = {name: value for name, value in given.items() if _RESOURCE.search(name)}
        parts = {name: value for name, value in given.items() if name not in resource and _is_part(name)}
        others = {name: value for name, value in given.items() if name not in resource and name not in parts}
        return cls(place, tool, resource, parts, others) if resource else None


def replaces(newer: Read, older: Read) -> bool:
    """Whether `newer` reads what `older` read: the same resource in the same way, the same part or all of it."""
    same = (newer.tool, newer.resource, newer.others) == (older.tool, older.resource, older.others)
    return same and newer.parts in ({}, older.parts)


def _is_part(name: str) -> bool:
    return bool(_PART.search(_HUMPS.sub("_", name).lower()))
