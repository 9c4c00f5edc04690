"""`response_format` as OpenAI's template shows it: a section with the schema, compact and without its constraints."""

import json
from collections.abc import Mapping
from typing import Any

from policies.jsonraw import NotJSON, loads

UNSEEN = frozenset(
    [
        *("required", "additionalProperties", "$schema", "default", "minLength", "maxLength", "minItems", "maxItems"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minProperties", "maxProperties"),
    ]
)
MAX_DEPTH = 100  # below it a schema is shown as it is
NAMED = frozenset(["properties", "$defs", "definitions", "patternProperties"])  # their keys are names, not keywords


def schema_of(raw: bytes | None) -> Mapping[str, Any] | None:
    """The `json_schema` object of a response format; None for every other format, which costs nothing."""
    try:
        value = loads(raw) if raw else None
    except NotJSON:
        return None
    if not isinstance(value, Mapping) or value.get("type") != "json_schema":
        return None
    schema = value.get("json_schema")
    return schema if isinstance(schema, Mapping) else None


def section(schema: Mapping[str, Any], *, wide: bool) -> str:
    """The text that stands in the system message."""
    description = schema.get("description")
    comment = f"// {description}\n" if isinstance(description, str) and description else ""
    shown = json.dumps(_shown(schema.get("schema", {}), keywords=True), ensure_ascii=wide, separators=(",", ":"))
    return f"# Response Formats\n\n## {name(schema)}\n\n{comment}{shown}"


def name(schema: Mapping[str, Any]) -> str:
    """The format's name, which also addresses the answer: it is counted with each text of the assistant."""
    found = schema.get("name")
    return found if isinstance(found, str) else ""


def _shown(value: Any, depth: int = 0, *, keywords: bool) -> Any:
    if depth > MAX_DEPTH:
        return value
    if isinstance(value, list):
        return [_shown(one, depth + 1, keywords=True) for one in value]
    if not isinstance(value, Mapping):
        return value
    return {
        key: _shown(inner, depth + 1, keywords=not (keywords and key in NAMED))
        for key, inner in value.items()
        if not (keywords and key in UNSEEN)
    }
