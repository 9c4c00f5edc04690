"""Read-only view of a tool definition, and its shorter form."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from policies.jsonraw import NotJSON, RawObject, dumps, loads

HOLDERS = ("function", "custom")  # the member that describes a tool of that kind; hosted tools have none
_SENTENCE = re.compile(r"(.+?[.!?。！？])(?:\s|$)", re.DOTALL)


class Tool(msgspec.Struct, frozen=True):
    """`name` is "" for tools without one (hosted tools such as web search); `parameters` are names with spaces."""

    name: str
    description: str
    parameters: str = ""

    @classmethod
    def of(cls, raw: bytes) -> "Tool":
        value: dict[str, Any] = loads(raw)
        holder = next((value[kind] for kind in HOLDERS if isinstance(value.get(kind), dict)), value)
        name, description = holder.get("name"), holder.get("description")
        return cls(
            name if isinstance(name, str) else "",
            description if isinstance(description, str) else "",
            _parameters(holder.get("parameters")),
        )


def _parameters(schema: object) -> str:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return " ".join(properties) if isinstance(properties, dict) else ""


def first_sentence(description: str) -> str:
    """The first sentence of the first line that says anything."""
    line = next((line.strip() for line in description.splitlines() if line.strip()), "")
    sentence = _SENTENCE.match(line)
    return sentence.group(1) if sentence else line


def one_line(raw: bytes) -> bytes | None:
    """The definition with its description cut to the first sentence; None where nothing can be cut."""
    tool = Tool.of(raw)
    short = first_sentence(tool.description)
    if not short or len(short) >= len(tool.description.strip()):
        return None
    outer, change = RawObject.parse(raw), {"description": dumps(short)}
    for kind in HOLDERS:
        inner = outer.get(kind)
        if inner is not None and inner[:1] == b"{":
            return outer.splice({kind: RawObject.parse(inner).splice(change)})
    return outer.splice(change)


def forced(tool_choice: bytes | None) -> frozenset[str]:
    """The name that `tool_choice` forces: that tool must stay."""
    name = name_of(_choice(tool_choice))
    return frozenset([name] if name else [])


def allowed(tool_choice: bytes | None) -> tuple[list[dict[str, Any]], bool] | None:
    """The tools to which `tool_choice` narrows the list, and whether one has to be called; None: it does not."""
    listed = _choice(tool_choice).get("allowed_tools")
    tools = listed.get("tools") if isinstance(listed, dict) else None
    if not isinstance(listed, dict) or not isinstance(tools, list):
        return None
    return [tool for tool in tools if isinstance(tool, dict)], listed.get("mode") == "required"


def among(tool_choice: bytes | None, tools: Sequence[bytes]) -> bytes | None:
    """`tool_choice` narrowed to the definitions that are left; None where it names none of them."""
    found = allowed(tool_choice)
    if found is None:
        return tool_choice
    names = {Tool.of(raw).name for raw in tools}
    kept = [tool for tool in found[0] if name_of(tool) in names]
    if len(kept) == len(found[0]):
        return tool_choice
    choice = _choice(tool_choice)
    return dumps({**choice, "allowed_tools": {**choice["allowed_tools"], "tools": kept}}) if kept else None


def _choice(tool_choice: bytes | None) -> dict[str, Any]:
    """An empty one for the words `auto`, `none` and `required`."""
    if tool_choice is None or tool_choice[:1] != b"{":
        return {}
    try:
        choice: dict[str, Any] = loads(tool_choice)
    except NotJSON:
        return {}
    return choice


def name_of(tool: object) -> str:
    """The name in a definition of a tool, or in a choice of one; "" where there is none."""
    if not isinstance(tool, dict):
        return ""
    holder = tool.get("function", tool.get("custom", tool))
    name = holder.get("name") if isinstance(holder, dict) else None
    return name if isinstance(name, str) else ""
