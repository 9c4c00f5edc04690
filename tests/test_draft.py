import pytest
from msgspec import structs
from support.prompts import calls, draft, ids, result, said, system, texts, tool, user

from policies.jsonraw import dumps
from policies.plan import Level
from policies.request import Item
from policies.spans import Bucket, Evict, Span, Tier

CONVERSATION = [system("Be brief."), user("first"), calls(("a", "f")), result("a", "found it"), user("second")]


def note(text: str, span_id: str = "n0", tokens: int = 10) -> Span:
    item = Item.of(dumps({"role": "user", "content": text}))
    return Span(span_id, item, Bucket.SUMMARY, Tier.L3, Evict.RECONSTRUCTIBLE, tokens, "user")


def test_a_draft_begins_as_what_was_received() -> None:
    made = draft(CONVERSATION, level=Level.NONE, tools=[tool("f")])
    assert ids(made) == ["m0", "m1", "m2", "m3", "m4", "t0"]
    assert [span.id for span in made.tools] == ["t0"]
    assert made.total == made.limit == sum(span.tokens for span in made.spans) + made.overhead
    assert made.as_prompt() is made.prompt
    assert made.excess == 0


def test_what_is_reserved_counts_as_if_it_stood_there() -> None:
    made = draft(CONVERSATION, limit=10)
    before = made.total
    made.reserved = 7
    assert made.total == before + 7
    assert made.excess == before + 7 - 10


def test_a_removed_span_is_gone_from_the_prompt_and_the_total() -> None:
    made = draft(CONVERSATION)
    span, before = made.messages[1], made.total
    made.remove("m1")
    assert ids(made) == ["m0", "m2", "m3", "m4"]
    assert made.get("m1") is None
    assert made.total == before - span.tokens
    assert len(made.as_prompt().messages) == 4
    made.put(span)
    assert ids(made) == ["m0", "m1", "m2", "m3", "m4"]
    assert made.total == before
    assert made.as_prompt() is made.prompt


def test_a_span_that_was_changed_still_tells_its_original() -> None:
    made = draft(CONVERSATION)
    made.put(note("shorter", "m3"))
    assert texts(made) == ["Be brief.", "first", "", "shorter", "second"]
    assert made.original(made.messages[3]) == "found it"
    assert made.received(made.messages[3]).is_result
    assert made.received(note("new")).id == "n0"


def test_a_new_message_stands_before_another_or_behind_all_of_them() -> None:
    made = draft(CONVERSATION, tools=[tool("f")])
    made.insert(note("before"), before="m1")
    made.insert(note("last", "n1"), before=None)
    assert ids(made) == ["m0", "n0", "m1", "m2", "m3", "m4", "n1", "t0"]
    without_tools = draft(CONVERSATION)
    without_tools.insert(note("last"), before=None)
    assert ids(without_tools)[-1] == "n0"


def test_a_round_is_its_call_and_its_results() -> None:
    made = draft(CONVERSATION)
    assert [span.id for span in made.round(0)] == ["m2", "m3"]
    assert made.round(7) == ()


def test_the_choice_goes_with_the_last_tool() -> None:
    made = draft(CONVERSATION, tools=[tool("f"), tool("g")], tool_choice="auto")
    made.remove("t0")
    assert made.as_prompt().tool_choice == b'"auto"'
    made.remove("t1")
    assert made.as_prompt().tool_choice is None


def test_counting_again_gives_what_the_counter_says_of_the_whole() -> None:
    made = draft(CONVERSATION)
    made.put(note("a longer text than ten tokens would ever hold, so that the estimate is wrong", "m1", 1))
    made.rebill()
    assert made.total == made.counter.bill(made.as_prompt()).total
    assert made.messages[1].tokens > 10


def test_a_text_and_a_message_are_looked_at_once() -> None:
    made = draft(CONVERSATION)
    assert made.measure("one two three") == made.measure("one two three") == 3
    assert made.message(made.messages[0]) is made.message(made.messages[0])


def test_the_cost_of_an_item_is_what_it_costs_in_that_place() -> None:
    made = draft(CONVERSATION, tools=[tool("f", "Reads."), tool("g", "Reads a log, line by line, slowly.")])
    assert made.cost(made.tools[0], made.tools[0].item) < made.cost(made.tools[0], made.tools[1].item)
    assert made.cost(made.messages[1], made.messages[1].item) == made.facts(made.messages[1]).tokens


def test_a_draft_goes_back_to_where_it_was() -> None:
    made = draft([*CONVERSATION, said("done")])
    before, total = made.snapshot(), made.total
    made.remove("m1")
    made.insert(note("new"), before="m4")
    made.rebill()
    made.restore(before)
    assert ids(made) == ["m0", "m1", "m2", "m3", "m4", "m5"]
    assert made.total == total


def test_what_was_inserted_and_removed_stands_once_when_it_comes_back() -> None:
    made = draft(CONVERSATION)
    made.insert(in_round := structs.replace(note("again"), round=0), before="m4")
    made.remove("n0")
    made.insert(in_round, before="m3")
    assert ids(made) == ["m0", "m1", "m2", "n0", "m3", "m4"]
    assert [span.id for span in made.round(0)] == ["m2", "n0", "m3"]
    with pytest.raises(ValueError, match="n0 stands in the prompt already"):
        made.insert(in_round, before=None)
    with pytest.raises(ValueError, match="m1 stands"):
        made.insert(note("other", "m1"), before=None)


def test_a_draft_that_nobody_changed_is_not_counted_again() -> None:
    made = draft(CONVERSATION)
    before = made.messages
    made.rebill()
    assert made.messages is before
    made.remove("m1")
    state = made.snapshot()
    made.rebill()
    counted = made.total
    made.restore(state)
    made.rebill()
    assert made.total == counted == made.counter.bill(made.as_prompt()).total


def test_what_was_inserted_before_a_draft_went_back_may_stand_elsewhere_then() -> None:
    made = draft([*CONVERSATION, calls(("b", "f")), result("b", "found too")])
    state = made.snapshot()
    made.insert(structs.replace(note("first"), round=0), before="m4")
    made.insert(structs.replace(note("second", "n1"), round=0), before="m4")
    made.restore(state)
    made.insert(structs.replace(note("first"), round=1), before="m6")
    assert [span.id for span in made.round(0)] == ["m2", "m3"]
    assert [span.id for span in made.round(1)] == ["m5", "n0", "m6"]
    made.insert(structs.replace(note("second", "n1"), round=0), before="m4")
    assert [span.id for span in made.round(0)] == ["m2", "m3", "n1"]
