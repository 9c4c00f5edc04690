import pytest

from policies.resources import Read, replaces


def read(place: int, tool: str, arguments: str) -> Read:
    made = Read.of(place, tool, arguments)
    assert made is not None
    return made


@pytest.mark.parametrize(
    "arguments",
    ["", "{no json", "[1]", "{}", '{"query": "x"}', '{"command": "cat a.py"}', '{"hidden": 1}', '{"grid": 1}'],
)
def test_a_call_that_names_no_resource_is_no_read(arguments: str) -> None:
    assert Read.of(1, "run", arguments) is None


@pytest.mark.parametrize("name", ["path", "file_path", "url", "orderId", "user_id", "ids", "fileName", "key"])
def test_paths_urls_and_ids_name_a_resource(name: str) -> None:
    assert read(1, "get", f'{{"{name}": "x"}}').resource == {name: b'"x"'}


@pytest.mark.parametrize(
    ("newer", "older", "does"),
    [
        ('{"path": "a"}', '{ "path":"a" }', True),
        ('{"path": "b"}', '{"path": "a"}', False),
        ('{"path": "a"}', '{"path": "a", "offset": 5, "limit": 9}', True),
        ('{"path": "a", "offset": 5}', '{"path": "a"}', False),
        ('{"path": "a", "startLine": 5}', '{"path": "a", "startLine": 5}', True),
        ('{"path": "a", "view_range": [1, 2]}', '{"path": "a", "view_range": [3, 4]}', False),
        ('{"id": 5, "fields": "name"}', '{"id": 5, "fields": "mail"}', False),
        ('{"id": 5, "fields": "name"}', '{"id": 5, "fields": "name"}', True),
    ],
)
def test_a_later_call_replaces_one_that_read_no_more(newer: str, older: str, does: bool) -> None:
    assert replaces(read(2, "get", newer), read(1, "get", older)) is does


def test_another_tool_replaces_nothing() -> None:
    assert not replaces(read(2, "head", '{"path": "a"}'), read(1, "cat", '{"path": "a"}'))
