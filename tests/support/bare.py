"""A lower bound on what a request costs: its bare texts, with no template around them. It catches what a counter
overlooks, such as results that are JSON, or arguments."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

SHARE = 0.85  # of the bare texts: batches embed JSON results parsed, which can be a little shorter


def bare_tokens(body: Mapping[str, Any], text_tokens: Callable[[str], int]) -> int:
    """Tokens that every correct count of the request reaches. `text_tokens` counts one text."""
    return int(SHARE * sum(text_tokens(text) for text in _texts(body)))


def _texts(body: Mapping[str, Any]) -> Iterator[str]:
    for message in body["messages"]:
        yield from _content(message.get("content"))
        for call in message.get("tool_calls") or []:
            inner = call.get("function") or call.get("custom") or {}
            yield str(inner.get("name", ""))
            yield _compact(inner.get("arguments", inner.get("input", "")))
    for tool in body.get("tools") or []:
        inner = tool.get("function") or tool.get("custom") or {}
        yield str(inner.get("name", ""))
        yield str(inner.get("description", "")).strip()


def _content(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield _compact(content) if content[:1] in ("{", "[") else content
    elif isinstance(content, list):
        yield "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))


def _compact(text: Any) -> str:
    """The shortest spelling of a JSON text; another text as it is."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError):
        return str(text)
