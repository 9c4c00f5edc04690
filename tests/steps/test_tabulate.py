import json

from support.folding_check import check
from support.prompts import draft, edits, lines, round_of, rows, texts, user

from policies.plan import Rewrite
from policies.steps.minify_json import MinifyJson
from policies.steps.tabulate import Tabulate

LARGE = rows(20)
IMAGE = {"type": "image_url", "image_url": {"url": "http://127.0.0.1/a.png"}}


def test_alike_objects_become_a_table_that_holds_every_value() -> None:
    made = draft([user("a"), *round_of(0, LARGE)], limit=5)
    (edit,) = edits(Tabulate(), made)
    assert isinstance(edit, Rewrite)
    assert edit.check == "all 60 values stand at their paths in the source"
    text = texts(made)[2]
    assert check(LARGE, text) == 60
    assert json.loads(text)["columns"] == ["id", "open", "owner"]


def test_it_goes_on_where_white_space_is_gone_already() -> None:
    made = draft([user("a"), *round_of(0, LARGE)], limit=5)
    assert len(edits(MinifyJson(), made)) == 1
    assert len(edits(Tabulate(), made)) == 1
    assert edits(Tabulate(), made) == []


def test_text_pictures_and_unlike_objects_are_left_alone() -> None:
    picture = round_of(0, "x")
    picture[1]["content"] = [{"type": "text", "text": LARGE}, IMAGE]
    for given in (round_of(0, lines(20)), round_of(0, '{"a": 1}'), picture):
        assert edits(Tabulate(), draft([user("a"), *given], limit=5)) == []


def test_when_enough_is_free_the_next_is_left_alone() -> None:
    messages = [user("a"), *round_of(0, LARGE), *round_of(1, LARGE)]
    limit = draft(messages).total - 50
    assert len(edits(Tabulate(), draft(messages, limit=limit))) == 1
    assert len(edits(Tabulate(when="always"), draft(messages, limit=limit))) == 2
