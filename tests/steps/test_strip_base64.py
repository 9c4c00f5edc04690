import base64
import json

from support.prompts import draft, edits, round_of, texts, user

from policies.refs import Refs
from policies.steps.strip_base64 import StripBase64

PICTURE = base64.b64encode(bytes(range(256)) * 8).decode()


def test_a_picture_inside_json_becomes_its_size_and_json_stays_json() -> None:
    result = json.dumps({"name": "plot.png", "data": f"data:image/png;base64,{PICTURE}", "width": 640})
    made = draft([user("a"), *round_of(0, result)], limit=5)
    assert len(edits(StripBase64(), made)) == 1
    assert json.loads(texts(made)[2]) == {
        "name": "plot.png",
        "data": "data:image/png;base64,(base64 of 2,048 bytes)",
        "width": 640,
    }


def test_words_hashes_and_separators_are_no_base64() -> None:
    text = "\n".join(["a" * 600, "-" * 600, "deadbeef" * 80, PICTURE[:400], "see /var/log/app for more"])
    assert edits(StripBase64(), draft([user("a"), *round_of(0, text)], limit=5)) == []


def test_when_enough_is_free_the_next_is_left_alone_unless_it_is_always_done() -> None:
    messages = [user("a"), *round_of(0, PICTURE), *round_of(1, PICTURE)]
    limit = draft(messages).total - 50
    assert len(edits(StripBase64(), draft(messages, limit=limit))) == 1
    assert len(edits(StripBase64(when="always"), draft(messages, limit=limit))) == 2


def test_the_way_back_is_said_once_and_json_stays_json() -> None:
    result = json.dumps({"a": PICTURE, "b": PICTURE})
    made = draft([user("a"), *round_of(0, result)], limit=5)
    made.refs = Refs(b"key")
    edits(StripBase64(), made)
    assert json.loads(texts(made)[2]) == {
        "a": f"(base64 of 2,048 bytes, read_tool_result(ref={made.refs.ref_of(result)}) shows them)",
        "b": "(base64 of 2,048 bytes)",
    }
