import io

import pytest

from proxy.cli import progress
from proxy.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_shown_of_short_work_or_off_a_terminal() -> None:
    for stream in (io.StringIO(), Terminal()):
        shown = Progress("requests", stream)
        shown.step()
        shown.hide()
        assert stream.getvalue() == ""


def test_long_work_shows_its_count_and_takes_it_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0)
    monkeypatch.setattr(progress, "EVERY", 0)
    stream = Terminal()
    shown = Progress("requests", stream)
    shown.step()
    shown.step()
    shown.hide()
    assert stream.getvalue() == "\r\x1b[K1 requests\r\x1b[K2 requests\r\x1b[K"
