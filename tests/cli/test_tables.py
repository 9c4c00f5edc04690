import io
import os
import pty

import pytest
from support.plans import TOOL, hopeless, long, plan, request, small

from policies.report import Report
from proxy.cli.tables import Cell, Paint, buckets_table, clean, clip, spans_table, table, width


def test_columns_line_up_on_the_screen_also_with_wide_characters() -> None:
    lines = [[Cell("日本"), Cell("7")], [Cell("e\u0301a"), Cell("1,234")]]
    assert table(("name", ">tokens"), lines) == "name  tokens\n日本       7\ne\u0301a     1,234"


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("👍", 2), ("a\u200bb", 2)])
def test_widths_are_columns(text: str, columns: int) -> None:
    assert width(text) == columns


@pytest.mark.parametrize(("columns", "shown"), [(6, "日本語"), (5, "日本…"), (4, "日…"), (1, "…")])
def test_what_is_cut_ends_with_an_ellipsis(columns: int, shown: str) -> None:
    assert clip("日本語", columns) == shown


def test_names_of_clients_cannot_steer_the_terminal() -> None:
    assert clean("a\x1b[31mb\n") == "a?[31mb?"
    assert clean("日本") == "日本"


def test_a_line_is_no_wider_than_the_screen() -> None:
    shown = table(("id", "what"), [[Cell("m1"), Cell("x" * 100)]], Paint(columns=30))
    assert [width(line) for line in shown.splitlines()] == [8, 30]


def test_colours_do_not_count_as_width() -> None:
    shown = table(("a", "b"), [[Cell("x", "red"), Cell("y")]], Paint(colour=True))
    assert shown.splitlines()[1] == "\x1b[31mx\x1b[0m  y"


def test_spans_show_before_and_after() -> None:
    shown = spans_table(Report.of(plan(long())))
    assert shown.splitlines()[0].split() == [
        "span",
        "bucket",
        "role",
        "name",
        "received",
        "sent",
        "what",
        "was",
        "done",
    ]
    assert "elide: " in shown
    assert "\x1b" not in shown


def test_a_count_shows_no_sent_column() -> None:
    report = Report.of(plan(small()))
    assert spans_table(report, planned=False).splitlines()[0].split() == ["span", "bucket", "role", "name", "tokens"]
    assert buckets_table(report, planned=False).splitlines()[-1].split() == ["total", f"{report.received_total}"]


def test_the_bucket_table_ends_with_the_totals() -> None:
    report = Report.of(plan(hopeless()))
    assert buckets_table(report).splitlines()[-1].split() == [
        "total",
        f"{report.received_total:,}",
        f"{report.sent_total:,}",
    ]


def test_no_colour_without_a_terminal() -> None:
    assert Paint.of(io.StringIO()) == Paint()


@pytest.mark.parametrize(
    ("name", "value", "colour"), [("NO_COLOR", "1", False), ("TERM", "dumb", False), ("X", "", True)]
)
def test_colour_on_a_terminal_unless_it_is_not_wanted(
    name: str, value: str, colour: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal:
        assert Paint.of(terminal).colour is colour
    os.close(ours)


def test_a_terminal_that_does_not_tell_its_size_gets_long_lines() -> None:
    class Odd(io.StringIO):
        def isatty(self) -> bool:
            return True

        def fileno(self) -> int:
            raise OSError("no terminal behind it")

    assert Paint.of(Odd()).columns == 0


def test_tools_stand_last_the_most_expensive_first() -> None:
    dear = {"type": "function", "function": {"name": "dear", "description": "Does much. " * 9}}
    shown = spans_table(
        Report.of(plan(request([{"role": "user", "content": "Hi"}], tools=[TOOL, dear]))), planned=False
    ).splitlines()
    assert [line.split()[0] for line in shown[1:]] == ["m0", "t1", "t0"]
