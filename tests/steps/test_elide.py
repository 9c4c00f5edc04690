import msgspec
from support.prompts import chat, draft, edits, lines, planned, round_of, texts, user

from policies.draft import Draft
from policies.plan import Elide, Level, Rewrite
from policies.refs import Refs
from policies.spans import Evict
from policies.steps.elide import ElideResults
from policies.steps.results import NEWEST_ROUNDS


def loop(*sizes: int, limit: int | None = None) -> Draft:
    """Rounds with results of so many lines; without a limit it fits, and the level asks for 100 tokens."""
    rounds = [round_of(number, lines(size) if size else "ok") for number, size in enumerate(sizes)]
    made = draft([user("a"), *(message for one in rounds for message in one)], limit=limit)
    made.target = made.limit if limit else 100
    return made


def edited(made: Draft, step: ElideResults | None = None) -> list[str]:
    found = edits(step or ElideResults(), made)
    return [edit.span for edit in found if isinstance(edit, Elide | Rewrite)]


def test_older_results_become_stubs_that_say_what_they_were() -> None:
    made = loop(40, 40, 40, 40, 40, 40, 40)
    tokens = made.measure(lines(40))
    assert edited(made)[0] == "m2"
    assert texts(made)[2].startswith(
        f"[… read_log succeeded and was used earlier; its {tokens} tokens are no longer shown"
    )


def test_large_results_go_first_and_the_newest_rounds_last() -> None:
    assert edited(loop(9, 60, 9, 60, 9, 9, 9, 9), ElideResults(recent_to=0, recent_to_small=0)) == [
        "m4",
        "m2",
        "m6",
        "m8",
        "m10",
        "m12",
        "m14",
    ]


def test_of_the_newest_rounds_no_more_goes_than_brings_the_prompt_to_its_share_of_the_limit() -> None:
    lengths = (60, 60, 20, 20, 20, 20, 20, 20)
    assert set(edited(loop(*lengths), ElideResults(recent_to=1))) == {"m2", "m4", "m6"}
    lower = set(edited(loop(*lengths), ElideResults(recent_to=0.01, recent_to_small=0.01)))
    assert lower >= {"m2", "m4", "m6", "m8", "m10"}


def test_in_a_small_window_the_newest_rounds_may_fill_more_of_it() -> None:
    left = []
    for limit in (2_000, 60_000):
        made = loop(*[60] * 8, limit=limit)
        made.target = 100
        edited(made, ElideResults(recent_to=0.01, recent_to_small=0.9))
        left.append(sum(text == lines(60) for text in texts(made)))
    assert left[0] < left[1] == NEWEST_ROUNDS
    made = loop(*[400] * 8, limit=60_000)  # the newest rounds alone are more than 16,000 tokens
    made.target = 100
    edited(made, ElideResults(recent_to=0.01, recent_to_small=0.9))
    assert sum(text == lines(400) for text in texts(made)) < NEWEST_ROUNDS


def test_the_newest_round_stays() -> None:
    made = loop(40, 40)
    edited(made)
    assert texts(made)[4] == lines(40)


def test_fewer_rounds_are_kept_only_while_it_is_too_much() -> None:
    received = loop(40, 40, 40, 40, 40, 40, 40, 40)
    made = loop(40, 40, 40, 40, 40, 40, 40, 40, limit=received.total - 600)
    assert edited(made) == ["m2", "m4"]
    assert made.excess <= 0


def test_where_a_stub_would_free_far_more_than_is_needed_the_result_is_said_shorter() -> None:
    received = loop(200, 9)
    made = loop(200, 9, limit=received.total - 300)
    (edit,) = edits(ElideResults(), made)
    assert isinstance(edit, Rewrite)
    assert received.total - 700 < made.total <= made.limit


def test_what_is_smaller_than_a_stub_or_would_gain_nothing_is_not_tried_again() -> None:
    texts_of = ["ok", "TCK-48213 HAT-10093 REF-77120 found at /var/log/a.log", "ok", "ok", "ok", "ok", "ok"]
    messages = [message for number, text in enumerate(texts_of) for message in round_of(number, text)]
    messages[3]["content"] += " in 4f9c1a2b by host-17.example.org, as ticket 884-221-09 said"
    made = draft([user("a"), *messages])
    made.target = 10
    before = texts(made)
    assert edited(made) == ["m4"]
    assert made.settled == {"m4"}
    assert edited(made) == []
    assert texts(made) == before


def test_a_result_with_a_picture_becomes_a_stub_at_once() -> None:
    messages = [user("a"), *round_of(0, lines(200)), *round_of(1, "ok")]
    messages[2]["content"] = [
        {"type": "text", "text": lines(200)},
        {"type": "image_url", "image_url": {"url": "http://127.0.0.1/a.png"}},
    ]
    made = draft(messages, limit=draft(messages).total - 300)
    (edit,) = edits(ElideResults(), made)
    assert isinstance(edit, Elide)


def test_rounds_that_will_leave_whole_get_no_stubs_first() -> None:
    made = loop(*[40] * 30, limit=1_500)
    spans = edited(made)
    assert "m2" not in spans
    assert {"m50", "m54", "m58"} <= set(spans)
    plan = planned(chat([user("a"), *(m for n in range(30) for m in round_of(n, lines(40, f"pump {n}")))]), 1_500)
    stubs = [one for one in plan.decisions if one.step == "elide" and one.outcome == "applied"]
    assert 0 < len(stubs) < 15
    assert 900 <= plan.sent_total <= 1_500


def test_where_nothing_is_small_enough_all_but_the_newest_rounds_leave() -> None:
    assert edited(loop(*[40] * 12, limit=40)) == ["m16", "m18", "m20", "m22"]


def test_where_no_rounds_are_named_nothing_is_asked() -> None:
    assert edited(loop(*[40] * 12, limit=40), ElideResults(keep_rounds=())) == []


def test_what_still_stands_after_the_window_gets_a_stub() -> None:
    made = loop(*[40] * 12, limit=300)
    made.level = Level.TOPICS
    assert "m2" in edited(made)


def test_a_round_that_may_not_leave_gets_its_stubs() -> None:
    made = loop(*[40] * 30, limit=1_500)
    made.put(msgspec.structs.replace(made.messages[1], evict=Evict.PINNED))
    spans = edited(made)
    assert "m2" in spans
    assert "m4" not in spans


def test_stubs_and_results_said_shorter_say_the_way_back() -> None:
    made = loop(40, 300, 40, 40, 40, 40, 40)
    made.refs = Refs(b"key")
    made.target = made.total - 2000
    edited(made)
    ref = made.refs.ref_of(lines(300))
    assert f'are not shown here, read_tool_result(ref="{ref}") shows them' in texts(made)[4]
    made.target = 100
    edited(made)
    assert f'are no longer shown, read_tool_result(ref="{ref}") shows them; it began: ' in texts(made)[4]


def test_a_result_for_which_a_stub_with_its_ref_would_be_no_shorter_is_not_asked_for() -> None:
    small = loop(4, 40, 40, 40, 40, 40, 40)
    assert "m2" in edited(small)
    small = loop(4, 40, 40, 40, 40, 40, 40)
    small.refs = Refs(b"key")
    assert small.messages[2].tokens <= 40 + small.back_tokens
    assert "m2" not in edited(small)


def test_a_tool_that_changes_nothing_may_be_called_again() -> None:
    made = loop(40, 40, 40, 40, 40, 40, 40)
    made.read_only = ("read_*",)
    edited(made)
    assert "are no longer shown, calling it again shows them; it began: " in texts(made)[2]


def named(*said: str, first: str = "What became of TCK-7?") -> list[str]:
    """The stubs of results that end so."""
    results = [m for n, names in enumerate(said) for m in round_of(n, f"{lines(30)} {names}")]
    made = draft([user(first), *results, *round_of(99, "ok")])
    made.target = 100
    edited(made)
    return texts(made)[2::2][: len(said)]


def test_a_name_that_stands_elsewhere_is_said_once_by_the_newest_stub() -> None:
    first, second, third = named("TCK-4821 of HAT-1009", "TCK-4821 of HAT-2017", "TCK-7")
    assert "TCK-4821" not in first
    assert "HAT-1009" in first
    assert "TCK-4821" in second
    assert "HAT-2017" in second
    assert "TCK-7" not in third


def test_a_name_that_an_older_call_says_is_named_since_that_call_leaves_first() -> None:
    older = round_of(0, lines(30))
    older[0]["tool_calls"][0]["function"]["arguments"] = '{"ticket": "TCK-4821"}'
    made = draft([user("a"), *older, *round_of(1, f"{lines(30)} TCK-4821"), *round_of(2, "ok")])
    made.target = 100
    edited(made)
    assert "TCK-4821" in texts(made)[4]


def test_what_got_no_stub_says_nothing() -> None:
    """Its names could leave with it."""
    small = "TCK-48213 HAT-10093 REF-77120 found at /var/log/a.log in 4f9c1a2b by host-17.example.org, 884-221-09 said"
    rounds = [*round_of(0, f"{lines(60)} TCK-48213"), *round_of(1, small), *round_of(2, lines(60)), *round_of(3, "ok")]
    made = draft([user("a"), *rounds])
    made.target = 10
    assert edited(made, ElideResults(first_tokens=1, recent_to=0, recent_to_small=0)) == ["m4", "m2", "m6"]
    assert made.settled == {"m4"}
    assert "TCK-48213" in texts(made)[2]


def test_in_a_small_window_a_stub_names_less() -> None:
    text = " ".join(f"ticket-{n}-{n * 7919} at 10.0.{n}.7" for n in range(300))
    messages = [user("a"), *round_of(0, text), *round_of(1, "ok")]
    lengths = []
    for limit in (8_000, 64_000):
        made = draft(messages, limit=limit)
        made.target = 50
        edited(made)
        lengths.append(made.measure(texts(made)[2]))
    assert lengths[0] < 220
    assert lengths[1] > 400
