from support.prompts import calls, chat, draft, lines, planned, result, round_of, texts, tool, user

from policies.editor import Editor
from policies.giving_back import give_back
from policies.messages import with_text
from policies.plan import Drop, Rewrite

RUSSIAN = " ".join(f"станция {number} показывает падение давления" for number in range(180))


def test_an_edit_that_costs_more_to_take_back_than_it_freed_makes_room_for_another() -> None:
    """The first tool brings the frame of all tools."""
    made = draft([user("task"), user("older " * 12), user("now")], tools=[tool("read_log", "reads " * 20)])
    editor = Editor(made)
    for span_id in ("t0", "m1"):
        editor.apply("step", Drop((span_id,), "for the test"))
    made.rebill()
    bare = made.total
    made.limit = made.target = bare + editor.decisions[0].before + 2
    give_back(made, editor)
    assert [one.outcome for one in editor.decisions] == ["applied", "undone"]
    assert bare < made.total <= made.limit
    assert texts(made)[1].startswith("older older")


def test_a_result_of_a_parallel_round_that_costs_a_multiple_there_leaves_room_for_others() -> None:
    """On this model the list of results is escaped, and a Russian one costs several times what it costs alone."""
    older = [calls(("a", "f"), ("b", "f")), result("a", RUSSIAN), result("b", lines(30))]
    messages = [user("task"), *older, *round_of(1, lines(90)), *round_of(2, lines(60))]
    request = chat(messages, model="gpt-4o-mini")
    for limit in (3_400, 4_200, 5_000):
        plan = planned(request, limit)
        assert plan.received_total > limit
        assert 0.6 * limit <= plan.sent_total <= limit


def test_a_text_said_at_greater_length_than_fits_is_said_at_less() -> None:
    """Nothing can be taken back whole, and in its list the text costs more than it does alone."""
    older = [calls(("a", "f"), ("b", "f")), result("a", RUSSIAN), result("b", "ok")]
    plan = planned(chat([user("task"), *older, *round_of(1, lines(4))], model="gpt-4o-mini"), 1_000)
    assert 600 <= plan.sent_total <= 1_000


def test_what_a_step_made_longer_again_stays_within_the_limit() -> None:
    made = draft([user("task"), *round_of(0, lines(40)), *round_of(1, "ok")])
    editor = Editor(made)
    span = made.messages[2]
    editor.apply("fit", Rewrite(span.id, with_text(span.item.raw, "short"), "for the test"))
    made.rebill()
    made.limit = made.target = 400
    give_back(made, editor)
    assert 240 <= made.total <= 400
