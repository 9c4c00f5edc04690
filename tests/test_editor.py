from support.prompts import calls, draft, ids, lines, result, system, texts, tool, user

from policies.draft import Draft
from policies.editor import Editor
from policies.messages import with_text
from policies.plan import Action, Drop, Edit, Elide, Inject, Rewrite
from policies.spans import Bucket


def opened() -> tuple[Draft, Editor]:
    made = draft(
        [
            system("Be brief."),
            user("first"),
            calls(("a", "f"), ("b", "g")),
            result("a", lines(20)),
            result("b", lines(9)),
            user("second"),
            calls(("c", "f")),
            result("c", lines(20)),
        ],
        tools=[tool("f"), tool("g")],
    )
    return made, Editor(made)


def applied(edit: Edit) -> tuple[str, str]:
    _, editor = opened()
    editor.apply("step", edit)
    (decision,) = editor.decisions
    return decision.outcome, decision.because


def shorter(made: Draft, span_id: str, text: str = "short") -> Rewrite:
    span = made.get(span_id)
    assert span is not None
    return Rewrite(span_id, with_text(span.item.raw, text), "for the test")


def test_an_edit_that_saves_is_applied_and_written_down() -> None:
    made, editor = opened()
    before = made.total
    editor.apply("step", shorter(made, "m3"))
    (decision,) = editor.decisions
    assert (decision.step, decision.action, decision.outcome, decision.spans) == (
        "step",
        Action.REWRITE,
        "applied",
        ("m3",),
    )
    assert decision.before - decision.after == before - made.total > 100
    assert texts(made)[3] == "short"
    assert editor.changed


def test_an_edit_that_saves_nothing_is_undone() -> None:
    made, editor = opened()
    before = made.total
    editor.apply("step", shorter(made, "m3", lines(30)))
    editor.apply("step", shorter(made, "m4", lines(9)))
    assert [(one.outcome, one.because) for one in editor.decisions] == [("undone", "would not save tokens")] * 2
    assert made.total == before
    assert made.as_prompt() is made.prompt
    assert not editor.changed


def test_only_a_stub_that_saves_nothing_is_not_tried_again() -> None:
    made, editor = opened()
    editor.apply("clip", shorter(made, "m3", lines(20)))
    assert made.settled == set()
    editor.apply("elide", Elide("m3", shorter(made, "m3", lines(20)).raw, "for the test"))
    assert made.settled == {"m3"}


def test_what_is_pinned_is_never_touched() -> None:
    for span_id in ("m0", "m5", "m6"):
        made, _ = opened()
        assert applied(shorter(made, span_id, "")) == ("refused", "pinned: never touched")
        assert applied(Drop((span_id,), "gone")) == ("refused", "pinned: never dropped")


def test_a_result_of_the_newest_round_may_be_folded_but_not_elided() -> None:
    made, _ = opened()
    rewrite = shorter(made, "m7")
    assert applied(rewrite)[0] == "applied"
    assert applied(Elide("m7", rewrite.raw, "older")) == (
        "refused",
        "a result of the newest round may be folded, not elided",
    )
    assert applied(Drop(("m7",), "older")) == ("refused", "pinned: never dropped")


def test_a_round_is_dropped_whole_or_not_at_all() -> None:
    assert applied(Drop(("m2", "m3"), "older")) == ("refused", "a round is dropped whole or not at all")
    assert applied(Drop(("m2", "m3", "m4"), "older")) == ("applied", "older")


def test_what_is_gone_is_not_edited_again() -> None:
    made, editor = opened()
    edit = shorter(made, "m3")
    editor.apply("step", Drop(("m2", "m3", "m4"), "older"))
    editor.apply("step", edit)
    editor.apply("step", Drop(("m1", "m2"), "older"))
    assert [(one.outcome, one.because) for one in editor.decisions[1:]] == [("refused", "already gone")] * 2
    assert ids(made) == ["m0", "m1", "m5", "m6", "m7", "t0", "t1"]
    assert [span.id for span in editor.dropped()] == ["m2", "m3", "m4"]


def test_a_tool_is_dropped_by_itself_and_is_no_dropped_message() -> None:
    made, editor = opened()
    editor.apply("step", Drop(("t0",), "over the cap"))
    assert ids(made)[-1] == "t1"
    assert editor.dropped() == []


def test_an_injection_is_not_the_editors_to_place() -> None:
    made, editor = opened()
    editor.apply("step", Inject("text", "head", Bucket.REMINDER, "why"))
    assert editor.decisions == []
    assert made.as_prompt() is made.prompt


def test_what_was_done_elsewhere_and_what_was_not_done_are_written_down() -> None:
    _, editor = opened()
    editor.record("repair", Action.REPAIR, ("m1",), (5, 7), "mended")
    editor.refuse("reminder", Action.INJECT, "no room for it")
    assert [(one.outcome, one.spans, one.before, one.after) for one in editor.decisions] == [
        ("applied", ("m1",), 5, 7),
        ("refused", (), 0, 0),
    ]
    assert not editor.changed


def test_what_was_freed_too_much_is_given_back_the_largest_first() -> None:
    made, editor = opened()
    received = made.total
    editor.apply("step", shorter(made, "m3"))
    editor.apply("step", shorter(made, "m4"))
    editor.apply("step", Drop(("m1",), "older"))
    editor.refill(ceiling=received - 50, enough=received)
    assert [one.outcome for one in editor.decisions] == ["undone", "applied", "undone"]
    assert editor.decisions[0].because == "not needed: the rest freed enough"
    assert texts(made)[3] == lines(20)
    assert made.total <= received - 50


def test_nothing_is_given_back_beyond_what_is_enough() -> None:
    made, editor = opened()
    editor.apply("step", shorter(made, "m3"))
    total = made.total
    editor.refill(ceiling=10_000, enough=total)
    assert made.total == total


def test_an_edit_known_to_cost_more_is_taken_back_only_where_that_fits_too() -> None:
    made, editor = opened()
    editor.apply("step", shorter(made, "m3"))
    editor.apply("step", shorter(made, "m4"))
    before, total = editor.snapshot(), made.total
    largest = editor.refill(ceiling=10_000, enough=total + 1)[0]
    editor.restore(before)
    editor.costs_more(largest, 50)
    freed = editor.decisions[largest.at].before - editor.decisions[largest.at].after
    taken = editor.refill(ceiling=total + freed + 49, enough=10_000)
    assert [one.at for one in taken] == [1]


def test_an_edit_that_others_were_built_on_stays() -> None:
    made, editor = opened()
    editor.apply("step", shorter(made, "m3", lines(19)))
    editor.apply("step", shorter(made, "m3", "short"))
    editor.refill(ceiling=made.total + 50, enough=10_000)
    assert [one.outcome for one in editor.decisions] == ["applied", "applied"]
    editor.refill(ceiling=10_000, enough=10_000)
    assert [one.outcome for one in editor.decisions] == ["undone", "undone"]
    assert texts(made)[3] == lines(20)


def test_what_was_shortened_may_grow_again_but_not_beyond_what_was_received() -> None:
    made, editor = opened()
    editor.apply("step", shorter(made, "m3"))
    editor.regrow("fit", shorter(made, "m3", lines(10)))
    assert texts(made)[3] == lines(10)
    editor.regrow("fit", shorter(made, "m3", lines(30)))
    assert texts(made)[3] == lines(10)
    assert [one.outcome for one in editor.decisions] == ["applied", "applied", "undone"]
    total = made.total
    made.rebill()
    assert abs(made.total - total) <= 1


def test_an_editor_goes_back_with_its_draft() -> None:
    made, editor = opened()
    before = editor.snapshot()
    editor.apply("step", shorter(made, "m3"))
    editor.restore(before)
    assert editor.decisions == []
    assert made.as_prompt() is made.prompt
    assert not editor.changed


def test_a_rewrite_that_is_another_message_or_tool_is_refused() -> None:
    wrong = [
        Rewrite("m3", b'{"role":"user","content":"x"}', "lies"),
        Rewrite("m3", b'{"role":"tool","tool_call_id":"b","content":"x"}', "lies"),
        Rewrite("m2", b'{"role":"assistant","content":"x"}', "lies"),
        Rewrite("t0", b'{"type":"function","function":{"name":"g"}}', "lies"),
    ]
    made, _ = opened()
    told = ("refused", "it is not the same message or tool, said shorter")
    assert [applied(edit) for edit in wrong] == [told] * 4
    assert made.as_prompt() is made.prompt
