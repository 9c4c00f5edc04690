import json

from support.prompts import (
    Message,
    calls,
    chat,
    counter,
    draft,
    ids,
    lines,
    result,
    round_of,
    rows,
    said,
    system,
    texts,
    tool,
    user,
)

from policies.budget import Budget
from policies.draft import Draft
from policies.editor import FROZEN, Editor
from policies.jsonraw import dumps
from policies.needs import solve
from policies.pipeline import plan_once
from policies.placing import place
from policies.plan import Action, Drop, Elide, Inject, Level, Rewrite
from policies.recorded import FRONT, Epoch, Made, Node, Recorded, Sent
from policies.replay import freeze_sent, newest_answer, noted, offered_key, replay, tears, thaw
from policies.request import Item
from policies.spans import Bucket
from proxy.policyfile import load

TALK = [system("Be brief."), user("task"), *round_of(0, lines(20)), *round_of(1, lines(20)), said("so"), user("on")]
TOOLS = [tool("read_log", "Reads.\n\nAt length."), tool("write_log")]
BEGUN = Epoch(0, Level.NONE, "", 4)
STUB = dumps(result("call_0", "[gone]"))
RULE = "Never restart pump 7."


def raw(message: Message) -> bytes:
    return json.dumps(message).encode()


def again(*made: tuple[int, Made], count: int = 4, sent: Sent | None = None) -> tuple[Draft, Editor]:
    """`TALK` with these decisions in it."""
    one = draft(TALK, tools=TOOLS)
    editor = Editor(one)
    replay(one, editor, Recorded(count, BEGUN, dict(made), sent or Sent()))
    return one, editor


def test_what_stands_for_a_message_is_sent_again() -> None:
    made, editor = again((3, Made((STUB,), "elide", "an older result", elided=True)))
    assert made.as_prompt().messages[3].raw == STUB
    assert made.messages[3].elided
    assert made.total == counter().bill(made.as_prompt()).total
    assert [(one.action, one.spans, one.because) for one in editor.decisions] == [
        (Action.REPLAY, ("m3",), "an older result")
    ]
    assert editor.changed


def test_what_was_dropped_is_dropped_again_and_remembered_as_gone() -> None:
    made, editor = again(*((at, Made((), "window", "older")) for at in (2, 3)))
    assert ids(made)[:3] == ["m0", "m1", "m4"]
    assert [span.id for span in editor.dropped()] == ["m2", "m3"]


def test_what_the_client_never_saw_stands_behind_the_message_it_belongs_to() -> None:
    hidden = [calls(("x", "read_tool_result")), result("x", lines(3)), said("so")]
    made, _ = again((6, Made(tuple(map(raw, hidden)), "read-back", "rounds")), count=8)
    assert ids(made) == ["m0", "m1", "m2", "m3", "m4", "m5", "m6", "r6.0", "r6.1", "m7", "t0", "t1"]
    assert [json.loads(item.raw) for item in made.as_prompt().messages[6:9]] == hidden
    assert [span.bucket for span in made.messages[7:9]] == [Bucket.TOOL_RESULTS, Bucket.HISTORY]
    assert {span.id for span in made.round(made.messages[6].round)} == {"m6", "r6.0", "r6.1"}


def test_what_stands_behind_the_last_message_is_the_last() -> None:
    made, _ = again((7, Made((raw(TALK[7]), raw(said("hm"))), "repair", "")), count=8)
    assert ids(made)[7:] == ["m7", "r7.0", "t0", "t1"]


def test_a_head_of_its_own_stands_before_all() -> None:
    made, _ = again((FRONT, Made((raw(system(RULE)),), "reminder", "")))
    assert ids(made)[:2] == ["n-head", "m0"]
    empty = draft([])
    replay(empty, Editor(empty), Recorded(1, BEGUN, {FRONT: Made((raw(system(RULE)),), "reminder", "")}, Sent()))
    assert ids(empty) == ["n-head"]


def test_decisions_for_messages_that_are_not_there_are_passed_over() -> None:
    made, editor = again((99, Made((), "window", "older")))
    assert made.as_prompt() is made.prompt
    assert editor.decisions == []


def test_tools_are_sent_as_they_were() -> None:
    shorter = dumps({"type": "function", "function": {"name": "read_log", "description": "Reads.", "parameters": {}}})
    first, second = draft(TALK, tools=TOOLS).prompt.tools
    made, editor = again(sent=Sent(tools={first.key: shorter, second.key: b""}))
    assert [item.raw for item in made.as_prompt().tools] == [shorter]
    assert [one.because for one in editor.decisions] == [
        "said shorter since the epoch began",
        "left out since the epoch began",
    ]


def test_what_an_earlier_request_sent_as_it_came_is_not_edited_either() -> None:
    """Nothing is recorded of a request that is not edited."""
    made, editor = again((3, Made((STUB,), "elide", "")), count=4)
    assert {"m4", "m5", "m6"} <= made.frozen
    editor.apply("clip", Rewrite("m5", b"{}", "long"))
    assert editor.decisions[-1].outcome == "refused"


def test_nothing_that_was_sent_is_edited_before_an_epoch() -> None:
    made, editor = again((3, Made((STUB,), "elide", "")), (FRONT, Made((raw(system(RULE)),), "reminder", "")), count=4)
    editor.apply("elide", Elide("m3", b"{}", "again"))
    editor.apply("window", Drop(("m2", "m3"), "older"))
    editor.apply("cap-tools", Drop(("t0",), "too many"))
    assert [(one.outcome, one.because) for one in editor.decisions[1:]] == [("refused", FROZEN)] * 3
    assert {"n-head", "m0", "m1", "m2", "m3", "t0", "t1"} <= made.frozen
    assert "m7" not in made.frozen
    assert place(made, Inject(RULE, "tail", Bucket.REMINDER, "")) == "m7"


def test_what_the_client_never_saw_is_not_edited_either() -> None:
    hidden = [calls(("x", "read_tool_result")), result("x", rows(60)), said("so")]
    state = Recorded(8, BEGUN, {6: Made(tuple(map(raw, hidden)), "read-back", "rounds")}, Sent())
    planning = plan_once(chat(TALK), load("frugal"), counter(), Budget(8_000))
    made = solve(planning, lambda _need: state)
    assert [item.raw for item in made.prompt.messages[6:9]] == list(map(raw, hidden))


def test_what_stands_before_the_newest_answer_was_sent() -> None:
    made = draft(TALK, tools=TOOLS)
    assert newest_answer(made.messages) == 6
    freeze_sent(made)
    assert made.frozen == {"m0", "m1", "m2", "m3", "m4", "m5", "m6", "t0", "t1"}
    assert newest_answer(draft([user("a")]).messages) == -1


def test_of_a_new_conversation_a_result_with_something_behind_it_may_have_been_sent() -> None:
    loop = [user("task"), calls(("a", "f"), ("b", "f")), result("a", "1"), result("b", "2"), user("wait")]
    asked, bare = draft(loop), draft(loop[:4])
    freeze_sent(asked, begun=False)
    freeze_sent(bare, begun=False)
    assert asked.frozen == {"m0", "m1", "m2", "m3"}
    assert bare.frozen == {"m0", "m1"}
    freeze_sent(empty := draft([]), begun=False)
    assert empty.frozen == frozenset()


def test_an_epoch_takes_our_own_text_out() -> None:
    made = draft(TALK[1:])
    place(made, Inject(RULE, "head", Bucket.REMINDER, ""))
    place(made, Inject(RULE, "tail", Bucket.REMINDER, ""))
    made.frozen = frozenset({"m0"})
    thaw(made)
    assert made.as_prompt() is made.prompt
    assert made.total == counter().bill(made.prompt).total
    assert made.frozen == frozenset()


def test_the_first_decision_tears_what_was_sent_if_it_touches_the_past() -> None:
    made = draft(TALK)
    assert tears(made, Node(8, BEGUN, {3: Made((STUB,), "elide", "")}, Sent()))
    assert tears(made, Node(8, BEGUN, {FRONT: Made((raw(system(RULE)),), "reminder", "")}, Sent()))
    assert tears(made, Node(8, BEGUN, {}, Sent(tools={b"k": b""})))
    assert not tears(made, Node(8, BEGUN, {7: Made((STUB,), "clip", "")}, Sent()))
    assert not tears(draft([user("a")]), Node(1, BEGUN, {0: Made((STUB,), "reminder", "")}, Sent(tools={b"k": b""})))


def test_what_was_decided_is_noted_and_puts_the_same_draft_together() -> None:
    first = draft(TALK, tools=TOOLS)
    editor = Editor(first)
    editor.apply("elide", Elide("m3", STUB, "an older result"))
    editor.apply("window", Drop(("m4", "m5"), "older than the newest round"))
    editor.apply("cap-tools", Drop(("t1",), "too many"))
    place(first, Inject(RULE, "tail", Bucket.REMINDER, ""))
    editor.record_placed("reminder", Inject(RULE, "tail", Bucket.REMINDER, ""), "m7", first.total)
    first.rebill()
    node = noted(first, editor, Recorded.nothing(), BEGUN, "digest")
    assert node is not None
    assert (node.count, node.whole, node.policy, node.reminded) == (8, True, "digest", 7)
    assert {at: (one.step, len(one.raws), one.elided, bool(one.merged)) for at, one in node.made.items()} == {
        3: ("elide", 1, True, False),
        4: ("window", 0, False, False),
        5: ("window", 0, False, False),
        7: ("reminder", 1, False, True),
    }
    assert node.made[3].key == Item.of(raw(TALK[3])).key
    second = draft(TALK, tools=TOOLS)
    replay(second, Editor(second), Recorded.nothing().after(node))
    assert second.as_prompt() == first.as_prompt()
    assert [(one.merged, one.bare and one.bare.raw) for one in second.messages] == [
        (one.merged, one.bare and one.bare.raw) for one in first.messages
    ]
    thaw(second)
    assert texts(second)[-1] == "on"


def test_text_of_ours_in_a_message_that_was_shortened_is_told_from_it() -> None:
    first = draft([user("task"), *round_of(0, lines(20))])
    editor = Editor(first)
    short = dumps(result("call_0", "station 0"))
    editor.apply("clip", Rewrite("m2", short, "clipped"))
    place(first, Inject(RULE, "tail", Bucket.REMINDER, ""))
    node = noted(first, editor, Recorded.nothing(), BEGUN, "")
    assert node is not None
    assert node.made[2].bare == short
    second = draft([user("task"), *round_of(0, lines(20))])
    replay(second, Editor(second), Recorded.nothing().after(node))
    thaw(second)
    assert second.as_prompt().messages[2].raw == short


def test_nothing_decided_is_nothing_noted() -> None:
    made = draft(TALK, tools=TOOLS)
    known = Recorded(4, BEGUN, {3: Made((STUB,), "elide", "")}, Sent())
    assert noted(made, Editor(made), Recorded.nothing(), BEGUN, "") is None
    assert noted(made, Editor(made), None, BEGUN, "") is None
    assert noted(made, Editor(made), known, BEGUN, "") is None
    empty = draft([])
    assert noted(empty, Editor(empty), None, BEGUN, "") is None


def test_an_epoch_is_noted_whole_whatever_it_leaves() -> None:
    made = draft(TALK, tools=TOOLS)
    known = Recorded(4, BEGUN, {3: Made((STUB,), "elide", "")}, Sent(), reminded=3)
    then = Epoch(1, Level.HISTORY, "pressure", 8)
    node = noted(made, Editor(made), known, then, "")
    assert node == Node(8, then, {}, Sent(offered_key(made)), reminded=FRONT)


def test_the_same_request_is_not_noted_twice() -> None:
    made = draft(TALK)
    editor = Editor(made)
    editor.apply("elide", Elide("m3", STUB, "an older result"))
    assert noted(made, editor, Recorded(8, BEGUN, {}, Sent()), Epoch(1, Level.HISTORY, "forced", 8), "") is None


def test_tools_are_known_by_what_is_offered() -> None:
    assert offered_key(draft(TALK)) == b""
    assert offered_key(draft(TALK, tools=TOOLS)) == offered_key(draft(TALK[:2], tools=TOOLS))
    assert offered_key(draft(TALK, tools=TOOLS)) != offered_key(draft(TALK, tools=TOOLS[:1]))
