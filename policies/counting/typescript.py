"""Tools as the TypeScript namespace that OpenAI's chat template shows to its models.

Reverse-engineered from billed token counts (FACTS 1); close kin of the renderer in OpenAI's `harmony` library. The text
is only ever counted.
"""

import json
from collections.abc import Mapping
from typing import Any

HEAD = "namespace functions {\n\n"
TAIL = "} // namespace functions"
MAX_DEPTH = 40  # of nested schemas and references; a `$ref` cycle ends here
GROWTH, AT_LEAST = 8, 4_096  # characters printed for one of the definition, and for a small one: references that double
NODE = 16  # characters that a type stands for at least, so that one of few characters is bounded as well

PRIMITIVES = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
DOCUMENTED = ("title", "description", "default")

Schema = Mapping[str, Any]


def declaration(function: Schema, size: int = 1_000_000) -> str:
    """One tool: `function` is the object with `name`, `description` and `parameters`, `size` its JSON in characters.

    Where references make more of it than `GROWTH` times its size, the rest is `any`: a few lines can stand for 2**40.
    """
    parameters = function.get("parameters")
    name = _text(function.get("name"))
    lines = comment(_text(function.get("description")))
    if not isinstance(parameters, Mapping) or not parameters.get("properties"):
        return f"{lines}type {name} = () => any;\n\n"
    printer = _Printer(parameters, AT_LEAST + GROWTH * size)
    return f"{lines}type {name} = (_: {_doc(parameters)}{printer.type(parameters, 0)}) => any;\n\n"


def comment(text: str) -> str:
    """`// ` before each line; blank lines stay as bare `//`."""
    text = text.strip()
    return "".join(f"// {line.strip()}".rstrip() + "\n" for line in text.split("\n")) if text else ""


class _Printer:
    """Types of one tool; the root schema resolves `$ref`. `room`: characters that may still be printed."""

    def __init__(self, root: Schema, room: int) -> None:
        self._root = root
        self._room = room

    def type(self, schema: object, depth: int, *, lines: bool = False) -> str:
        """`lines`: alternatives stand one a line."""
        self._room -= NODE
        if not isinstance(schema, Mapping) or depth > MAX_DEPTH or self._room < 0:
            return "any"
        schema = self._resolved(schema)
        variants = _variants(schema)
        if variants:
            types = [self._variant(variant, depth + 1, lines=lines) for variant in variants]
            return "".join(f"\n | {one}" for one in types) if lines else " | ".join(types)
        if "const" in schema:
            return _literal(schema["const"])
        if isinstance(schema.get("enum"), list):
            return " | ".join(_literal(value) for value in schema["enum"])
        return self._by_kind(schema.get("type"), schema, depth)

    def _variant(self, variant: object, depth: int, *, lines: bool) -> str:
        doc = self._said(variant) if lines and isinstance(variant, Mapping) else ""
        return doc + self.type(variant, depth)

    def _by_kind(self, kind: object, schema: Schema, depth: int) -> str:
        if kind == "array":
            return self._array(schema, depth)
        if kind == "object" or "properties" in schema:
            return self._object(schema, depth)
        return PRIMITIVES.get(kind, "any") if isinstance(kind, str) else "any"

    def _array(self, schema: Schema, depth: int) -> str:
        items = schema.get("items")
        if not isinstance(items, Mapping):
            return "any[]"
        items = self._resolved(items)
        inner = self.type(items, depth + 1)
        if items.get("type") == "object" or "\n" in inner:
            inner = self._said(items) + inner
        return f"Array<\n{inner}\n>" if "\n" in inner else f"{inner}[]"

    def _object(self, schema: Schema, depth: int) -> str:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping) or not properties:
            return "object"
        required = schema.get("required")
        required = required if isinstance(required, list) else []
        fields = [(name, self._resolved(field), "" if name in required else "?") for name, field in properties.items()]
        if not any(key in field for _, field, _ in fields for key in DOCUMENTED):
            return "{ " + ", ".join(f"{n}{o}: {self.type(field, depth + 1)}" for n, field, o in fields) + " }"
        return "{\n" + "".join(self._member(name, field, mark, depth) for name, field, mark in fields) + "}"

    def _member(self, name: str, field: Schema, mark: str, depth: int) -> str:
        kind = self.type(field, depth + 1, lines=True)
        separator = ":" if kind.startswith("\n") else ": "
        return f"{self._said(field)}{name}{mark}{separator}{kind},{_default(field)}\n"

    def _said(self, schema: Schema) -> str:
        doc = _doc(schema) if self._room > 0 else ""
        self._room -= len(doc)
        return doc

    def _resolved(self, schema: object) -> Schema:
        for _ in range(MAX_DEPTH):
            if not isinstance(schema, Mapping):
                return {}
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                return schema
            target = self._target(reference)
            schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
        return {}

    def _target(self, reference: str) -> Schema:
        found: Any = self._root
        for key in reference.removeprefix("#").strip("/").split("/"):
            found = found.get(key) if isinstance(found, Mapping) and key else found
        return found if isinstance(found, Mapping) else {}


def _variants(schema: Schema) -> list[Any]:
    """Alternatives; a list of types is one schema for each type, which repeats what documents it."""
    for key in ("anyOf", "oneOf", "allOf"):
        variants = schema.get(key)
        if isinstance(variants, list) and variants:
            return variants
    kinds = schema.get("type")
    if not isinstance(kinds, list) or "enum" in schema or "const" in schema:
        return []
    return [{**schema, "type": kind} for kind in kinds]


def _doc(schema: Schema) -> str:
    title, description = (comment(_text(schema.get(key))) for key in ("title", "description"))
    return f"{title}//\n{description}" if title and description else title + description


def _default(field: Schema) -> str:
    if "default" not in field:
        return ""
    value = field["default"]
    bare = isinstance(value, str) and "enum" in field
    return f" // default: {value if bare else _literal(value)}"


def _literal(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
