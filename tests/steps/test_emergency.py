from support.prompts import draft, edits, ids, lines, round_of, said, system, texts, user

from policies.annotations import Annotation
from policies.plan import Level
from policies.sorting import sort
from policies.steps.emergency import Emergency


def test_nothing_is_dropped_from_what_fits() -> None:
    assert edits(Emergency(), draft([user("a"), *round_of(0, "x"), *round_of(1, "y")])) == []


def test_older_rounds_go_first_then_user_messages_the_task_last() -> None:
    messages = [
        system("Be brief."), user("task"), *round_of(0, lines(9)), user(lines(9)), said("b"), user("newest"),
        *round_of(1, "last"),
    ]  # fmt: skip
    received = draft(messages, level=Level.EMERGENCY)
    gone = []
    for limit in range(received.total, 0, -1):
        made = draft(messages, limit=limit, level=Level.EMERGENCY)
        edits(Emergency(), made)
        left = set(ids(made))
        gone += [span_id for span_id in ids(received) if span_id not in left and span_id not in gone]
    assert gone == ["m2", "m3", "m5", "m4", "m1"]


def test_the_system_the_newest_text_and_the_last_round_stay() -> None:
    made = draft(
        [system(lines(9)), user("newest"), *round_of(0, lines(9)), *round_of(1, lines(9))],
        limit=10,
        level=Level.EMERGENCY,
    )
    edits(Emergency(), made)
    assert texts(made) == [lines(9), "newest", "", lines(9)]


def test_messages_of_no_round_go_too() -> None:
    odd = {"role": "critic", "content": lines(9)}
    made = draft([odd, user("newest")], limit=30, level=Level.EMERGENCY)
    edits(Emergency(), made)
    assert ids(made) == ["m1"]


def test_memory_goes_before_older_user_messages_the_least_important_first() -> None:
    messages = [user("task"), system(lines(9)), system(lines(9)), user(lines(9)), user("newest")]
    noted = {"m1": Annotation(bucket="memory", priority=2), "m2": Annotation(bucket="memory")}
    gone = []
    for limit in range(draft(messages).total, 0, -1):
        made = draft(messages, limit=limit, level=Level.EMERGENCY)
        for span in sort(made.spans, (), noted):
            made.put(span)
        edits(Emergency(), made)
        gone += [one for one in ("m0", "m1", "m2", "m3") if one not in ids(made) and one not in gone]
    assert gone == ["m2", "m1", "m3", "m0"]
