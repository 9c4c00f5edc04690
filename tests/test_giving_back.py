import json

import pytest
from support.generate import case
from support.prompts import calls, chat, draft, lines, planned, result, round_of, texts, tool, user

from policies.counting.windows import Window
from policies.editor import Editor
from policies.giving_back import give_back
from policies.messages import with_text
from policies.needs import solve
from policies.plan import Drop, Elide, Level, Rewrite
from policies.refs import Refs
from policies.request import ChatRequest
from proxy.engine import Engine
from proxy.policyfile import load
from proxy.settings import Settings

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


def test_what_the_first_tool_brings_any_other_would_bring_too() -> None:
    """So not each of the large ones is tried until no try is left."""
    crowd = [tool(f"tool_{number}", "reads " * 40) for number in range(60)]
    made = draft([user("task"), user("now")], tools=[*crowd, tool("small", "reads " * 20)])
    editor = Editor(made)
    for span in made.tools:
        editor.apply("step", Drop((span.id,), "for the test"))
    made.rebill()
    made.limit = made.target = made.total + editor.decisions[0].before + 2
    give_back(made, editor)
    assert [one.spans for one in editor.decisions if one.outcome == "undone"] == [("t60",)]
    assert made.total <= made.limit


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


def test_where_the_next_longer_fold_is_a_large_step_it_is_taken() -> None:
    """Rows that lie deep come in or stay out together."""
    row = {"id": "rec_8fcc0050810d", "ok": True, "title": "valve checked near the pump", "tags": ["a b", "c d"]}
    for count in (46, 200, 900):
        source = json.dumps({"data": {"items": [row | {"index": index} for index in range(count)], "next": None}})
        request = chat([user("task"), *round_of(0, source)])
        received = planned(request, 1_000_000).received_total
        for share in (0.3, 0.5, 0.8, 0.9, 0.99):
            limit = int(share * received)
            assert 0.6 * limit <= planned(request, limit).sent_total <= limit


def test_more_is_not_given_back_than_a_policy_asks_for() -> None:
    made = draft([user("task"), *round_of(0, lines(40)), *round_of(1, "ok")])
    editor = Editor(made)
    editor.apply("elide", Elide("m2", with_text(made.messages[2].item.raw, "a stub"), "for the test"))
    made.rebill()
    made.limit, made.target = 4_000, made.total
    give_back(made, editor)
    assert texts(made)[2] == "a stub"


def test_what_is_said_at_greater_length_keeps_its_way_back() -> None:
    made = draft([user("task"), *round_of(0, lines(400)), *round_of(1, "ok")])
    made.refs = Refs(b"key")
    editor = Editor(made)
    editor.apply("elide", Elide("m2", with_text(made.messages[2].item.raw, "a stub"), "for the test"))
    made.rebill()
    made.limit = made.target = 4_000
    give_back(made, editor)
    assert made.refs.ref_of(lines(400)) in texts(made)[2]


def test_a_result_that_is_only_dear_in_its_list_is_cut_to_what_it_may_cost_there() -> None:
    """One text of the older round alone costs more in the list than all may cost, and by itself less than is large."""
    older = [calls(("a", "f"), ("b", "f")), result("a", RUSSIAN), result("b", lines(30))]
    plan = planned(chat([user("task"), *older, *round_of(1, lines(30))], model="gpt-4o-mini"), 8_000)
    assert plan.level is Level.TOOL_RESULTS
    assert len(plan.prompt.messages) == 6
    assert 4_800 <= plan.sent_total <= 8_000


@pytest.mark.parametrize(("seed", "index"), [(1, 7130), (1, 8916), (2, 5803)])
def test_what_a_request_may_hold_it_holds_whatever_its_parts_cost_together(seed: int, index: int) -> None:
    """Large parallel rounds and hundreds of tools, where the first tries cost more, or less, than was thought."""
    made = case(seed, index)
    engine = Engine(Settings.load(), load("balanced"))
    plan = solve(engine.planning(ChatRequest.parse(made.body), Window(made.window, "test"), ask_server=False))
    assert plan.budget.limit is not None
    assert 0.6 * plan.budget.limit <= plan.sent_total <= plan.budget.limit
