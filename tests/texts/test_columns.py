import json

import pytest

from policies.texts.columns import by_columns
from policies.texts.projecting import MatchesNothing

ROWS = '{"data": {"items": [{"id": 1e5, "a": 1, "b": "x"}, {"id": 2, "a": 3, "b": "y"}]}, "next": null, "tags": ["t"]}'
UNEVEN = '[{"id": 1, "a": 2}, {"a": 3, "b": 4}]'
CSV = 'id,name,note\n1,"Berg, Ada",x\n2,Boole,"say ""hi"""\n'
MARKDOWN = "| id | name | note |\n|---|:--:|---|\n| 1 | Ada | x |\n| 2 | Boole | y |"
KUBECTL = """\
NAME              READY   STATUS    RESTARTS      AGE
api-7c9f          1/1     Running   0             5d
db-0              0/1     Pending   3 (2m ago)    5d"""
PS = """\
USER   PID %CPU COMMAND
root 1 0.0 /sbin/init splash
ada 4711 99.5 python run.py"""


def test_arrays_of_objects_keep_these_columns_wherever_they_stand() -> None:
    made = by_columns(ROWS, ["id", "b"])
    assert made.text == (
        '{"data":{"items":{"…":"1 more columns not shown: a","columns":["id","b"],"rows":[[1e5,"x"],[2,"y"]]}},'
        '"next":null,"tags":["t"]}'
    )
    assert made.kept == 4


def test_objects_that_lack_a_column_stay_objects() -> None:
    assert by_columns(UNEVEN, ["id", "a"]).text == '[{"id":1,"a":2},{"a":3},{"…":"1 more columns not shown: b"}]'
    assert by_columns('[{"id":1},{"a":3}]', ["id", "a"]).text == '[{"id":1},{"a":3}]'


def test_when_every_column_is_kept_nothing_is_named_as_gone() -> None:
    assert json.loads(by_columns('[{"id": 1}, {"id": 2}]', ["id"]).text) == {"columns": ["id"], "rows": [[1], [2]]}


@pytest.mark.parametrize(
    ("text", "columns", "projected"),
    [
        (CSV, ["name", "id"], 'name,id\n"Berg, Ada",1\nBoole,2\n[… 1 more columns not shown: note]'),
        (CSV.replace(",", "\t"), ["price", "ID"], "id\n1\n2\n[… 2 more columns not shown: name, note]"),
        ("a;b\n1;2\n3;4", ["a", "b"], "a;b\n1;2\n3;4"),
        (MARKDOWN, ["name"], "| name |\n|---|\n| Ada |\n| Boole |\n[… 2 more columns not shown: id, note]"),
        (
            KUBECTL,
            ["NAME", "RESTARTS"],
            "NAME\tRESTARTS\napi-7c9f\t0\ndb-0\t3 (2m ago)\n[… 3 more columns not shown: READY, STATUS, AGE]",
        ),
        (
            PS,
            ["pid", "command"],
            "PID\tCOMMAND\n1\t/sbin/init splash\n4711\tpython run.py\n[… 2 more columns not shown: USER, %CPU]",
        ),
        ("| a | b |\n|---|---|\n| 1 |", ["b"], "| b |\n|---|\n|  |\n[… 1 more columns not shown: a]"),
    ],
)
def test_a_table_in_text_stays_a_table_of_its_kind(text: str, columns: list[str], projected: str) -> None:
    assert by_columns(text, columns).text == projected


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1, 2]}',
        '[{"a": 1}]',
        "just a sentence, and more.\nAnother one here",
        "one\ntwo",
        "",
        "id\n",
        "a,b\n1,2\n3,4",
    ],
)
def test_a_text_without_such_a_table_says_so(text: str) -> None:
    with pytest.raises(MatchesNothing, match=r"'price' or 'size'"):
        by_columns(text, ["price", "size"])


def test_a_long_line_under_no_header_costs_no_more_than_its_length() -> None:
    rule = "-" * 200_000
    kept = by_columns(f"| id | name |\n| {rule}x | y |", ["name"]).text
    assert kept.startswith("| name |\n|---|\n| y |\n")
