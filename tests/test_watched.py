import os
from pathlib import Path

import pytest

from proxy.watched import Watched


def make(folder: Path) -> Watched[str]:
    """Reads `a`, and `b` where `a` says so; a text with "wrong" in it is a fault."""

    def read(seen: set[Path]) -> str:
        seen.add(folder / "a")
        text = (folder / "a").read_text("utf-8")
        if "b" in text:
            seen.add(folder / "b")
            if not (folder / "b").exists():
                raise ValueError("b is missing")
            text += (folder / "b").read_text("utf-8")
        if "wrong" in text:
            raise ValueError(f"{text} is wrong")
        return text

    return Watched(read)


def write(path: Path, text: str) -> None:
    """As an editor does: a new file in the place of the old one."""
    path.with_suffix(".new").write_text(text, "utf-8")
    os.replace(path.with_suffix(".new"), path)


def test_a_file_that_did_not_change_is_not_read_again(tmp_path: Path) -> None:
    write(tmp_path / "a", "one")
    watched = make(tmp_path)
    assert (watched.look(), watched.value) == ("same", "one")


def test_a_change_is_read(tmp_path: Path) -> None:
    write(tmp_path / "a", "one")
    watched = make(tmp_path)
    write(tmp_path / "a", "two")
    assert (watched.look(), watched.value, watched.look()) == ("loaded", "two", "same")


def test_a_fault_keeps_the_old_value_and_is_told_once_for_each_content(tmp_path: Path) -> None:
    write(tmp_path / "a", "one")
    watched = make(tmp_path)
    write(tmp_path / "a", "wrong")
    assert [watched.look(), watched.look()] == ["invalid", "same"]
    assert (watched.value, watched.fault) == ("one", "wrong is wrong")
    write(tmp_path / "a", "wrong too")
    assert watched.look() == "invalid"
    write(tmp_path / "a", "two")
    assert (watched.look(), watched.value, watched.fault) == ("loaded", "two", "")


def test_a_file_that_was_missing_is_read_when_it_comes(tmp_path: Path) -> None:
    write(tmp_path / "a", "one")
    watched = make(tmp_path)
    write(tmp_path / "a", "a b")
    assert watched.look() == "invalid"
    write(tmp_path / "b", "!")
    assert (watched.look(), watched.value) == ("loaded", "a b!")
    (tmp_path / "b").unlink()
    assert (watched.look(), watched.value) == ("invalid", "a b!")


def test_a_first_fault_is_raised(tmp_path: Path) -> None:
    write(tmp_path / "a", "wrong")
    with pytest.raises(ValueError, match="wrong is wrong"):
        make(tmp_path)
