import pytest
from support.pieces import pieces

from policies.texts.clipping import clip
from policies.texts.diffs import is_diff, shorter_diff
from policies.texts.stubs import by_ref


def hunk(file: int, changes: int, context: int = 6) -> str:
    """One file with one hunk: context, removed and added lines in turn, context."""
    before = [f" context {file} above {line}" for line in range(context)]
    changed = [f"{sign}changed {file} line {line}" for line in range(changes) for sign in "-+"]
    after = [f" context {file} below {line}" for line in range(context)]
    old = new = 2 * context + changes
    return "\n".join(
        [f"diff --git a/f{file}.py b/f{file}.py", f"--- a/f{file}.py", f"+++ b/f{file}.py",
         f"@@ -10,{old} +10,{new} @@ def f{file}():", *before, *changed, *after]
    )  # fmt: skip


DIFF = "\n".join(hunk(file, 5) for file in range(8))
HEADERS = [line for line in DIFF.splitlines() if line.startswith(("diff", "---", "+++", "@@"))]


def test_what_is_a_diff() -> None:
    assert is_diff(DIFF)
    assert is_diff(DIFF.replace("diff --git", "#"))
    assert not is_diff("@@ nobody @@\n--- a\n")
    assert not is_diff("diff --git a b\nonly a rename")


def test_context_goes_before_changes_and_headers_stay() -> None:
    made = shorter_diff(DIFF, pieces(DIFF) * 3 // 4, pieces)
    assert pieces(made) <= pieces(DIFF) * 3 // 4
    left = made.splitlines()
    assert [line for line in left if line in HEADERS] == HEADERS
    changed = [line for line in DIFF.splitlines() if line[:8] in ("+changed", "-changed")]
    assert [line for line in left if line[:8] in ("+changed", "-changed")] == changed
    assert "[… lines not shown here: 6 unchanged]" in left


def test_with_less_room_changed_lines_are_counted_and_headers_still_stay() -> None:
    for percent in (66, 60, 45):
        keep = pieces(DIFF) * percent // 100
        made = shorter_diff(DIFF, keep, pieces)
        assert keep * 0.85 <= pieces(made) <= keep
        assert [line for line in made.splitlines() if line in HEADERS] == HEADERS
    assert " added, " in made


def test_where_not_even_the_headers_fit_the_rest_is_counted() -> None:
    made = shorter_diff(DIFF, pieces(DIFF) // 10, pieces)
    assert pieces(made) <= pieces(DIFF) // 10
    assert made.startswith("diff --git a/f0.py b/f0.py\n--- a/f0.py")
    assert made.splitlines()[-1].endswith(" more hunks are not shown here]")
    assert shorter_diff(DIFF, 1, pieces) == "[… 8 more hunks are not shown here]"


def test_one_huge_hunk_fills_the_room_it_is_given() -> None:
    huge = hunk(0, 400)
    for keep in (300, 1000):
        made = shorter_diff(huge, keep, pieces)
        assert 0.8 * keep <= pieces(made) <= keep


def test_what_fits_loses_nothing_and_odd_lines_are_kept_as_they_are() -> None:
    odd = f"commit 1234\n\n    message\n\n{hunk(0, 1)}\n\\ No newline at end of file\n-- \n2.50\n"
    assert shorter_diff(odd, 10_000, pieces) == odd.removesuffix("\n")
    assert "commit 1234" in shorter_diff(odd, pieces(odd) - 2, pieces)
    cut_off = hunk(0, 9).rpartition("\n+")[0] + "\ndiff --git a/x b/x\n@@ -1 +1 @@\n-a\n+b"
    assert shorter_diff(cut_off, 10_000, pieces) == cut_off


@pytest.mark.parametrize("keep", [None, 200])
def test_clip_shortens_a_diff_as_a_diff_and_says_the_way_back(keep: int | None) -> None:
    made = clip(DIFF, measure=pieces, keep_tokens=keep, back=by_ref("tr_0123456789abcdef"))
    assert len(made) < len(DIFF)
    assert "[… lines" in made or "more hunks" in made
    assert made.endswith('read_tool_result(ref="tr_0123456789abcdef") shows them]')


def test_clip_leaves_a_diff_that_would_not_get_shorter() -> None:
    assert clip(hunk(0, 1, 0), measure=pieces) == hunk(0, 1, 0)


def test_a_hunk_that_breaks_off_ends_where_it_does() -> None:
    broken = "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n a\n-b\n+c\ncommit 99\n\n    next"
    assert shorter_diff(broken, 10_000, pieces) == broken
