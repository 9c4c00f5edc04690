import pytest
from support.prompts import calls, draft, lines, result, said, system, user

from policies.editor import Editor
from policies.needs import solve
from policies.notes import LEAST_TOKENS, MOST_TOKENS, note, note_tokens
from policies.plan import Drop
from policies.spans import Bucket


@pytest.mark.parametrize(("limit", "room"), [(100, LEAST_TOKENS), (2000, 125), (100_000, MOST_TOKENS)])
def test_a_sixteenth_of_the_limit_is_kept_free_between_bounds(limit: int, room: int) -> None:
    assert note_tokens(limit) == room


def test_where_nothing_left_nothing_is_said() -> None:
    made = draft([user("a")])
    assert solve(note(made, Editor(made))) == ()


def test_the_note_tells_what_left_and_what_it_named() -> None:
    made = draft(
        [
            system("Be brief."),
            user("Where is TCK-4821?"),
            calls(("x", "search"), ("y", "search"), arguments='{"q":"HAT-1009"}'),
            result("x", "found TCK-4821"),
            result("y", lines(3)),
            said("done"),
            user("and now?"),
        ],
        limit=4000,
    )
    editor = Editor(made)
    tokens = sum(span.tokens for span in made.round(0))
    editor.apply("window", Drop(("m2", "m3", "m4"), "older"))
    (made_note,) = solve(note(made, editor))
    assert (made_note.place, made_note.bucket) == ("note", Bucket.SUMMARY)
    assert made_note.because == "3 older messages were dropped"
    assert made_note.text.startswith(
        f"[… 1 earlier round of this conversation ({tokens} tokens) is no longer shown; all was answered and acted on."
        " Calls made: search ×2. They named: "
    )
    assert "TCK-4821" in made_note.text
    assert "HAT-1009" in made_note.text
    assert made.measure(made_note.text) <= note_tokens(4000)


def test_in_a_small_window_the_note_is_short() -> None:
    made = draft(
        [user("TCK-4821 " * 9), calls(("x", "search")), result("x", lines(9)), said("b"), user("c")], limit=100
    )
    editor = Editor(made)
    editor.apply("window", Drop(("m1", "m2"), "older"))
    (made_note,) = solve(note(made, editor))
    assert made_note.text.endswith("all was answered and acted on.]")
    assert made.measure(made_note.text) <= LEAST_TOKENS
