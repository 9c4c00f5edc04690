import pytest

from policies.texts.alarms import alarms


def lines(text: str, start: int = 0, end: int | None = None) -> list[str]:
    return [one.text for one in alarms(text, start, len(text) if end is None else end)]


@pytest.mark.parametrize(
    "line",
    [
        "ERROR: connection reset",
        "ValueError: bad literal",
        "Traceback (most recent call last):",
        "build Failed after 3 s",
        "WARN disk nearly full",
        "请求失败，稍后再试",
        "数据库错误",
        "接続エラー",
        "ошибка чтения",
    ],
)
def test_a_line_that_reports_a_problem_is_found_in_any_script(line: str) -> None:
    assert lines(f"all fine\n{line}\nall fine again") == [line]


@pytest.mark.parametrize("line", ["0 errors, 0 failed", "finished with no warnings", "all fine", ""])
def test_a_line_that_reports_none_is_not(line: str) -> None:
    assert lines(line) == []


def test_the_gravest_come_first_and_each_wording_once() -> None:
    text = "warning: old\nerror 1 at x\nerror 2 at x\nfatal: gone\n"
    assert lines(text) == ["fatal: gone", "error 1 at x", "warning: old"]


def test_only_the_range_is_looked_at() -> None:
    assert lines("error a\nerror b\nerror c\n", 8, 15) == ["error b"]


def test_a_long_line_is_shown_around_its_problem() -> None:
    (line,) = lines("x" * 500 + " the error is here " + "y" * 500)
    assert line.startswith("… x")
    assert line.endswith("y …")
    assert " the error is here " in line
    assert len(line) <= 244


def test_the_first_and_the_last_of_very_many_are_found() -> None:
    text = "".join(f"error {chr(97 + i // 26 // 26)}{chr(97 + i // 26 % 26)}{chr(97 + i % 26)}\n" for i in range(2000))
    found = lines(text)
    assert "error aaa" in found
    assert text.rstrip().rsplit("\n", 1)[1] in found
    assert len(found) <= 24
