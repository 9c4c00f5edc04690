from support.prompts import draft, edits, lines, round_of, rows, texts, user

from policies.plan import Rewrite
from policies.refs import Refs
from policies.steps.clip import Clip

LARGE = lines(200) + "\nERROR: valve 9 stuck\n" + lines(200)
IMAGE = {"type": "image_url", "image_url": {"url": "http://127.0.0.1/a.png"}}


def test_a_large_text_keeps_its_ends_and_its_errors() -> None:
    made = draft([user("a"), *round_of(0, LARGE), *round_of(1, "ok")], limit=3000)
    (edit,) = edits(Clip(), made)
    assert isinstance(edit, Rewrite)
    assert edit.span == "m2"
    text = texts(made)[2]
    assert text.startswith("station 0 pressure 0 bar")
    assert text.endswith(LARGE[-60:])
    assert "ERROR: valve 9 stuck" in text
    assert made.total <= 3000


def test_when_enough_is_free_the_next_is_left_alone() -> None:
    messages = [user("a"), *round_of(0, LARGE), *round_of(1, LARGE)]
    made = draft(messages, limit=draft(messages).total - 300)
    assert [edit.span for edit in edits(Clip(), made) if isinstance(edit, Rewrite)] == ["m2"]
    assert texts(made)[4] == LARGE


def test_small_results_json_and_pictures_are_left_alone() -> None:
    made = draft([user("a"), *round_of(0, lines(9))], limit=100_000)
    made.target = 10
    assert edits(Clip(), made) == []
    assert edits(Clip(), draft([user("a"), *round_of(0, rows(400))], limit=4000)) == []
    picture = round_of(0, "x")
    picture[1]["content"] = [{"type": "text", "text": LARGE}, IMAGE]
    assert edits(Clip(), draft([user("a"), *picture], limit=4000)) == []


def test_by_characters_a_text_keeps_so_many_of_its_ends_whatever_the_pressure() -> None:
    made = draft([user("a"), *round_of(0, LARGE), *round_of(1, lines(40))])
    (edit,) = edits(Clip(over_chars=2000, head=300, tail=100, when="always"), made)
    assert isinstance(edit, Rewrite)
    assert edit.span == "m2"
    head, _, rest = texts(made)[2].partition("\n[…")
    assert 200 <= len(head) <= 300
    assert LARGE.startswith(head)
    assert "ERROR: valve 9 stuck" in rest
    assert 66 <= len(rest.rpartition("]\n")[2].partition("stuck\n")[2]) <= 100


def test_the_note_says_the_way_back() -> None:
    made = draft([user("a"), *round_of(0, LARGE), *round_of(1, "ok")], limit=3000)
    made.refs = Refs(b"key")
    edits(Clip(), made)
    assert f'are not shown here, read_tool_result(ref="{made.refs.ref_of(LARGE)}") shows them.' in texts(made)[2]
    assert made.issued == {made.refs.ref_of(LARGE): LARGE}
    assert made.total <= 3000


def test_a_tool_that_changes_nothing_may_be_called_again() -> None:
    made = draft([user("a"), *round_of(0, LARGE), *round_of(1, "ok")], limit=3000)
    made.read_only = ("write_*", "read_*")
    edits(Clip(), made)
    assert "are not shown here, calling it again shows them." in texts(made)[2]
