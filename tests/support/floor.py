"""How small a request can get, by the promises' own words and apart from the product: units, floor, gentlest form."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from support.grammar import ROLES, calls_of, chosen, tool_name

Message = Mapping[str, Any]
Count = Callable[[bytes], int]  # tokens of a request body

SMALLEST = 256  # bytes of UTF-8 to which a result of the newest round can be cut: about 64 tokens, more in rare scripts
GENTLE = 1_024  # bytes of UTF-8 of the same as clip leaves it: 500 characters of head, 200 of tail, a note between


def encoded(body: Mapping[str, Any]) -> bytes:
    """A made-up request as a client would write it."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def units(messages: Sequence[Message]) -> list[range]:
    """Indexes that stand or fall together: a message alone, or a caller with the results that follow it."""
    found: list[range] = []
    for index, message in enumerate(messages):
        if message.get("role") in ("tool", "function") and found and _is_caller(messages[found[-1].start]):
            found[-1] = range(found[-1].start, index + 1)
        else:
            found.append(range(index, index + 1))
    return found


def newest_round(messages: Sequence[Message]) -> range:
    """The last unit that an assistant message opens; empty when there is none."""
    rounds = [unit for unit in units(messages) if messages[unit.start].get("role") == "assistant"]
    return rounds[-1] if rounds else range(0)


def newest_user(messages: Sequence[Message]) -> int:
    """The index of the last user message, or -1."""
    return max((index for index, message in enumerate(messages) if message.get("role") == "user"), default=-1)


def floor(body: Mapping[str, Any]) -> dict[str, Any]:
    """What can never leave: system and developer messages, the newest user message, messages of unknown role, the
    newest round with each result cut to `SMALLEST`, tools that tool_choice forces (the shortest under `required`),
    and every other field of the request."""
    return _reduced(body, SMALLEST, _forced_tools(body))


def gentlest(body: Mapping[str, Any], limit: int) -> dict[str, Any]:
    """The smallest form that needs no emergency: the same parts, with results of the newest round as clip leaves
    them, the task, which is the first user message, and as many of the tools, cheapest first, as their cap (an eighth
    of `limit`, at four bytes a token) has room for. Other turns and rounds are gone (window)."""
    kept = _forced_tools(body)
    room = limit // 8 * 4 - sum(len(encoded(tool)) for tool in kept)
    others = [tool for tool in body.get("tools") or [] if tool not in kept]
    for tool in sorted(others, key=lambda one: len(encoded(one))):
        room -= len(encoded(tool))
        if room >= 0:
            kept.append(tool)
    return _reduced(body, GENTLE, kept, task=True)


def unfilled(body: Mapping[str, Any], form: Mapping[str, Any], limit: int) -> int:
    """Tokens of the tools' cap that its gentlest form leaves free although tools had to go: said in one line each,
    which is what comes first (DESIGN 5), they may fill it, and are not to be dropped below it before an emergency."""
    kept = form.get("tools") or []
    if len(kept) == len(body.get("tools") or []):
        return 0
    return max(0, limit // 8 - sum(len(encoded(tool)) for tool in kept) // 4)


def text_of(message: Message) -> str:
    """The text of a message, its text parts joined."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _is_caller(message: Message) -> bool:
    return bool(calls_of(dict(message))) or isinstance(message.get("function_call"), dict)


def _reduced(
    body: Mapping[str, Any], size: int, tools: Sequence[Mapping[str, Any]], *, task: bool = False
) -> dict[str, Any]:
    messages = body["messages"]
    first = next((index for index, message in enumerate(messages) if task and message.get("role") == "user"), None)
    newest, user = newest_round(messages), newest_user(messages)
    kept = [
        _clipped(message, size) if index in newest else message
        for index, message in enumerate(messages)
        if index in newest or index in (user, first) or _is_pinned(message)
    ]
    dropped = ("tools",) if tools else ("tools", "tool_choice", "parallel_tool_calls")
    reduced = {name: value for name, value in body.items() if name not in dropped}
    return {**reduced, "messages": kept, **({"tools": list(tools)} if tools else {})}


def _is_pinned(message: Message) -> bool:
    role = message.get("role")
    return role in ("system", "developer") or role not in ROLES


def _clipped(message: Message, size: int) -> Message:
    if message.get("role") not in ("tool", "function"):
        return message
    text = text_of(message).encode("utf-8", "replace")
    return {**message, "content": text[:size].decode("utf-8", "ignore")}


def _forced_tools(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    tools, choice = body.get("tools") or [], body.get("tool_choice")
    if isinstance(choice, dict) and "allowed_tools" not in choice:
        return [tool for tool in tools if tool_name(tool) in chosen(dict(body))]
    if choice == "required":
        return sorted(tools, key=lambda tool: len(str(tool)))[:1]
    if isinstance(choice, dict) and (choice.get("allowed_tools") or {}).get("mode") == "required":
        return sorted((tool for tool in tools if tool_name(tool) in chosen(dict(body))), key=lambda t: len(str(t)))[:1]
    return []
