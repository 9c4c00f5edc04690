import json

from support.prompts import draft, edits, lines, round_of, rows, texts, user

from policies.steps.minify_json import MinifyJson

LARGE = json.dumps(json.loads(rows(20)), indent=4)


def test_white_space_goes_and_every_token_keeps_its_spelling() -> None:
    made = draft([user("a"), *round_of(0, '{\n    "cost": 1e5,\n    "name": "\\u0041 b  c"\n}')], limit=5)
    assert len(edits(MinifyJson(), made)) == 1
    assert texts(made)[2] == '{"cost":1e5,"name":"\\u0041 b  c"}'


def test_text_and_compact_json_and_what_would_not_get_cheaper_are_left_alone() -> None:
    for text in (lines(20), '{"a":1}', '{"a":1 }'):
        assert edits(MinifyJson(), draft([user("a"), *round_of(0, text)], limit=5)) == []


def test_when_enough_is_free_the_next_is_left_alone_unless_it_is_always_done() -> None:
    messages = [user("a"), *round_of(0, LARGE), *round_of(1, LARGE)]
    limit = draft(messages).total - 50
    assert len(edits(MinifyJson(), draft(messages, limit=limit))) == 1
    assert len(edits(MinifyJson(when="always"), draft(messages, limit=limit))) == 2


def test_what_was_shortened_already_is_left_alone() -> None:
    made = draft([user("a"), *round_of(0, LARGE)], limit=5)
    edits(MinifyJson(), made)
    assert edits(MinifyJson(), made) == []
