from support.prompts import calls, chat, draft, lines, planned, result, round_of, user

from policies.draft import Draft
from policies.plan import Level
from policies.steps.results import GENTLE_TOKENS, left_to_elide, older, results, squeezable, threshold


def test_results_above_a_size_are_listed_oldest_first() -> None:
    made = draft([user("a"), *round_of(0, lines(9)), *round_of(1, "short"), *round_of(2, lines(9))])
    assert [span.id for span in results(made)] == ["m2", "m4", "m6"]
    assert [span.id for span in results(made, over=50)] == ["m2", "m6"]


def test_older_results_stand_before_the_newest_rounds() -> None:
    made = draft([user("a"), *(message for number in range(4) for message in round_of(number, "text"))])
    assert [span.id for span in older(made, 2)] == ["m2", "m4"]
    assert [span.id for span in older(made, 9)] == []
    assert [span.id for span in older(made, 0)] == ["m2", "m4", "m6"]


def test_the_newest_round_is_never_older_and_a_stray_result_is() -> None:
    made = draft([user("a"), result("lost", "x"), calls(("x", "f")), result("x", "y")])
    assert [span.id for span in older(made, 0)] == ["m1"]


def test_what_counts_as_large_depends_on_the_limit_before_the_newest_round() -> None:
    for limit, before, newest in ((100_000, 8000, 8000), (4000, 1000, 8000)):
        made = draft([user("a"), *round_of(0, "x"), *round_of(1, "y")], limit=limit)
        large = [threshold(made, made.messages[at], 8000, 0.25) for at in (2, 4)]
        assert large == [before, newest]


def test_what_is_above_the_gentle_size_can_be_squeezed() -> None:
    made = draft([user("a"), *round_of(0, lines(40)), *round_of(1, lines(5))])
    assert squeezable(made) == made.messages[2].tokens - GENTLE_TOKENS


LOOP = [user("a"), *(message for number in range(12) for message in round_of(number, lines(150 if number else 20)))]


def loop(limit: int) -> Draft:
    made = draft(LOOP, limit=limit)
    made.steps = frozenset(["clip", "elide"])
    return made


def test_results_for_which_stubs_will_stand_are_not_folded_first() -> None:
    """Eleven results of 1,807 tokens and one of 247: folded to 800 each they are 3,175 over 6,000, a stub frees 680."""
    assert left_to_elide(loop(6_000), 800, 1.0) == {"m4", "m6", "m8", "m10", "m12"}
    assert left_to_elide(loop(3_000), 800, 1.0) == {"m4", "m6", "m8", "m10", "m12", "m14"}
    plan = planned(chat(LOOP), 6_000)
    shorter = {span for one in plan.decisions if one.step == "clip" and one.outcome == "applied" for span in one.spans}
    assert not shorter & {"m4", "m6", "m8"}
    assert 3_600 <= plan.sent_total <= 6_000


def test_where_folding_is_enough_or_no_stubs_are_made_all_are_folded() -> None:
    assert left_to_elide(loop(11_000), 800, 1.0) == frozenset()
    made = loop(6_000)
    made.steps = frozenset(["clip"])
    assert left_to_elide(made, 800, 1.0) == frozenset()
    late = loop(6_000)
    late.level = Level.TOPICS
    assert left_to_elide(late, 800, 1.0) == frozenset()
