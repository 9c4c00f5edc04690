"""Tools as OpenAI's template renders them; the shapes were confirmed by billed counts."""

from typing import Any

import pytest

from policies.counting.typescript import GROWTH, MAX_DEPTH, comment, declaration


def tool(properties: dict[str, Any], **more: Any) -> str:
    parameters = {"type": "object", "properties": properties, **more}
    return declaration({"name": "f", "parameters": parameters})


def type_of(schema: dict[str, Any], **more: Any) -> str:
    """The type that a lone undocumented property gets."""
    return tool({"a": schema}, **more).removeprefix("type f = (_: { a?: ").removesuffix(" }) => any;\n\n")


def test_a_function_without_properties_takes_no_argument() -> None:
    for parameters in (None, {}, {"type": "object", "properties": {}}, "junk"):
        assert declaration({"name": "f", "parameters": parameters}) == "type f = () => any;\n\n"


def test_the_description_stands_above_stripped_line_by_line() -> None:
    described = declaration({"name": "f", "description": "  Adds.\n\n  Args:\n    a: one  \n"})
    assert described == "// Adds.\n//\n// Args:\n// a: one\ntype f = () => any;\n\n"
    assert comment(" \n ") == ""


def test_undocumented_properties_share_one_line() -> None:
    assert tool({"a": {"type": "integer"}, "b": {"type": "string"}}, required=["a"]) == (
        "type f = (_: { a: number, b?: string }) => any;\n\n"
    )


def test_documented_properties_stand_one_a_line_without_indentation() -> None:
    properties = {
        "a": {"type": "string", "title": "A", "description": "First."},
        "b": {"type": "boolean", "title": "B"},
        "c": {"type": "number", "description": "Third."},
        "d": {"type": "null"},
    }
    assert tool(properties) == (
        "type f = (_: {\n// A\n//\n// First.\na?: string,\n// B\nb?: boolean,\n// Third.\nc?: number,\nd?: null,\n"
        "}) => any;\n\n"
    )


def test_the_root_is_documented_before_its_brace() -> None:
    text = tool({"a": {"type": "string"}}, title="Root", description="All of it.")
    assert text == "type f = (_: // Root\n//\n// All of it.\n{ a?: string }) => any;\n\n"


def test_defaults_are_printed_and_those_of_enums_bare() -> None:
    properties = {
        "a": {"type": "string", "default": "x"},
        "b": {"enum": ["p", "q"], "default": "p"},
        "c": {"type": "boolean", "default": None},
    }
    assert tool(properties) == (
        'type f = (_: {\na?: string, // default: "x"\nb?: "p" | "q", // default: p\nc?: boolean, // default: null\n'
        "}) => any;\n\n"
    )


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "array", "items": {"type": "string"}}, "string[]"),
        ({"type": "array"}, "any[]"),
        ({"type": "array", "items": {"type": "object", "properties": {"b": {"type": "string"}}}}, "{ b?: string }[]"),
        ({"enum": ["x", 1, None]}, '"x" | 1 | null'),
        ({"const": "x"}, '"x"'),
        ({"type": ["string", "null"]}, "string | null"),
        ({"type": ["string", "null"], "enum": ["x", None]}, '"x" | null'),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "string | number"),
        ({"oneOf": [{"type": "string"}, True]}, "string | any"),
        ({"type": "object"}, "object"),
        ({"properties": {"b": {"type": "string"}}, "required": "junk"}, "{ b?: string }"),
        ({"type": "strange"}, "any"),
        ({"type": 7}, "any"),
        ({}, "any"),
    ],
)
def test_types(schema: dict[str, Any], expected: str) -> None:
    assert type_of(schema) == expected


def test_documented_items_get_lines_of_their_own_and_repeat_their_title() -> None:
    items = {"type": "object", "title": "Item", "properties": {"b": {"type": "string", "description": "B."}}}
    assert tool({"a": {"type": "array", "items": items}}) == (
        "type f = (_: { a?: Array<\n// Item\n{\n// B.\nb?: string,\n}\n> }) => any;\n\n"
    )


def test_alternatives_of_a_documented_property_stand_one_a_line() -> None:
    union = {"description": "D.", "anyOf": [{"type": "string"}, {"type": "null"}]}
    assert tool({"a": union}) == "type f = (_: {\n// D.\na?:\n | string\n | null,\n}) => any;\n\n"


def test_a_list_of_types_repeats_the_comment_for_each() -> None:
    union = {"description": "D.", "type": ["string", "null"]}
    assert tool({"a": union}) == "type f = (_: {\n// D.\na?:\n | // D.\nstring\n | // D.\nnull,\n}) => any;\n\n"


def test_references_are_inlined() -> None:
    definitions = {"Colour": {"enum": ["red", "blue"]}}
    text = tool({"a": {"$ref": "#/$defs/Colour", "description": "Of it."}}, **{"$defs": definitions})
    assert text == 'type f = (_: {\n// Of it.\na?: "red" | "blue",\n}) => any;\n\n'


@pytest.mark.parametrize("reference", ["#/$defs/Loop", "#/nowhere", "elsewhere.json", 7])
def test_references_that_lead_nowhere_end(reference: object) -> None:
    definitions = {"Loop": {"$ref": "#/$defs/Loop"}}
    assert "any" in tool({"a": {"$ref": reference}}, **{"$defs": definitions})


def test_a_schema_that_holds_itself_ends() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    text = tool({"a": {"$ref": "#/$defs/Node"}}, **{"$defs": {"Node": node}})
    assert 0 < text.count("next") <= MAX_DEPTH


def test_references_that_double_at_each_level_end_soon() -> None:
    both = {f"D{at}": {"anyOf": [{"$ref": f"#/$defs/D{at + 1}"}] * 2} for at in range(38)}
    definition = {"name": "f", "parameters": {"properties": {"a": {"$ref": "#/$defs/D0"}}, "$defs": both}}
    assert len(declaration(definition, 3_000)) < 3_000 * GROWTH


def test_a_long_description_behind_many_references_is_not_said_each_time() -> None:
    fields = {f"f{at}": {"$ref": "#/$defs/Long"} for at in range(1_000)}
    definitions = {"Long": {"type": "string", "description": "long " * 2_000}}
    definition = {"name": "f", "parameters": {"properties": fields, "$defs": definitions}}
    said = declaration(definition, 40_000)
    assert len(said) < 2 * 40_000 * GROWTH
    assert said.count("?:") == 1_000


def test_junk_in_a_schema_does_not_raise() -> None:
    assert declaration({"name": 7, "description": [], "parameters": {"properties": {"a": 1, "b": []}}}).startswith(
        "type "
    )
    assert "any" in tool({"a": {"type": "array", "items": {"$ref": 1}}})
