"""Response formats as OpenAI's template shows them."""

import json
from typing import Any

import pytest

from policies.counting.formats import MAX_DEPTH, name, schema_of, section


def test_only_a_json_schema_is_shown() -> None:
    assert schema_of(b'{"type":"json_schema","json_schema":{"name":"n"}}') == {"name": "n"}


@pytest.mark.parametrize(
    "raw", [None, b"null", b"[]", b"{", b'{"type":"json_object"}', b'{"type":"json_schema","json_schema":1}']
)
def test_other_formats_cost_nothing(raw: bytes | None) -> None:
    assert schema_of(raw) is None


def test_the_schema_is_compact_and_without_constraints() -> None:
    schema = {
        "type": "object",
        "properties": {"default": {"type": "number", "minimum": 0, "default": 1}, "t": {"items": [{"maxItems": 2}]}},
        "required": ["default"],
        "additionalProperties": False,
    }
    assert section({"name": "n", "schema": schema}, wide=False) == (
        '# Response Formats\n\n## n\n\n{"type":"object","properties":{"default":{"type":"number"},"t":{"items":[{}]}}}'
    )


def test_the_description_is_a_comment() -> None:
    assert section({"name": "n", "description": "D", "schema": {}}, wide=False) == (
        "# Response Formats\n\n## n\n\n// D\n{}"
    )


def test_wide_schemas_are_escaped() -> None:
    assert section({"schema": {"title": "é"}}, wide=True).endswith('{"title":"\\u00e9"}')
    assert section({"schema": {"title": "é"}}, wide=False).endswith('{"title":"é"}')


def test_a_name_that_is_no_text_is_none() -> None:
    assert name({"name": 7}) == ""


def test_a_deep_schema_does_not_raise() -> None:
    schema: dict[str, Any] = {"required": []}
    for _ in range(MAX_DEPTH * 4):
        schema = {"items": schema}
    assert json.loads(section({"schema": schema}, wide=False).split("\n\n")[-1])
