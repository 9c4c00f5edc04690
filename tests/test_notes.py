import json

import msgspec
import pytest
from support.prompts import calls, chat, draft, lines, planned, result, round_of, said, system, user
from support.spilled import REF, REFS

from policies.draft import Draft
from policies.editor import Editor
from policies.needs import solve
from policies.notes import (
    BARE_TOKENS,
    FRAME_TOKENS,
    LEAST_TOKENS,
    MOST_DIGEST,
    MOST_TOKENS,
    SPENT,
    note,
    note_tokens,
    spared,
)
from policies.placing import OVERHEAD
from policies.plan import Drop, Level
from policies.recorded import Made, Recorded
from policies.spans import Bucket
from policies.spilling import offer
from policies.texts.stubs import Left, by_ref, window_note


@pytest.mark.parametrize(("limit", "room"), [(100, LEAST_TOKENS), (2000, 125), (100_000, MOST_TOKENS)])
def test_a_sixteenth_of_the_limit_is_kept_free_between_bounds(limit: int, room: int) -> None:
    assert note_tokens(limit) == room


def test_where_nothing_left_nothing_is_said() -> None:
    made = draft([user("a")])
    assert solve(note(made, Editor(made))) == ()


def test_the_note_tells_what_left_and_what_it_named() -> None:
    made = draft(
        [
            system("Be brief."),
            user("Where is TCK-4821?"),
            calls(("x", "search"), ("y", "search"), arguments='{"q":"HAT-1009"}'),
            result("x", "found TCK-4821"),
            result("y", lines(3)),
            said("done"),
            user("and now?"),
        ],
        limit=4000,
    )
    editor = Editor(made)
    tokens = sum(span.tokens for span in made.round(0))
    editor.apply("window", Drop(("m2", "m3", "m4"), "older"))
    made_note, bare = solve(note(made, editor))
    assert (made_note.place, made_note.bucket) == ("note", Bucket.SUMMARY)
    assert made_note.because == "3 older messages were dropped"
    assert made_note.text.startswith(
        f"[… 1 earlier round of this conversation ({tokens} tokens) is no longer shown; all was answered and acted on."
        " Calls made: search ×2. They named: "
    )
    assert "TCK-4821" not in made_note.text  # the question that stays names it
    assert "HAT-1009" in made_note.text
    assert made.measure(made_note.text) <= note_tokens(4000)
    assert bare.text == made_note.text.partition(" Calls made")[0] + "]"
    assert made.measure(bare.text) + OVERHEAD <= BARE_TOKENS


def test_where_one_sentence_fits_and_the_whole_note_does_not_it_is_no_emergency() -> None:
    messages = [user("task"), *(m for n in range(20) for m in round_of(n, lines(12))), *round_of(20, lines(8))]
    request = chat(messages)
    bare = planned(chat([messages[0], *messages[-2:]]), 10_000).received_total
    plan = planned(request, bare + BARE_TOKENS)
    assert plan.level is Level.TOPICS
    assert "20 earlier rounds" in plan.prompt.messages[0].raw.decode()
    assert planned(request, bare + BARE_TOKENS - 1).level is Level.EMERGENCY


@pytest.mark.parametrize(("over", "given"), [(0, 0), (1, LEAST_TOKENS - BARE_TOKENS), (40, 40), (41, 0)])
def test_the_room_for_the_note_is_given_up_only_where_that_is_enough(over: int, given: int) -> None:
    made = draft([user("a" * 3000)])
    made.limit = made.total - over
    assert spared(made, Level.EMERGENCY) == given
    assert spared(made, Level.TOPICS) == 0


def test_in_a_small_window_the_note_is_short() -> None:
    made = draft(
        [user("TCK-4821 " * 9), calls(("x", "search")), result("x", lines(9)), said("b"), user("c")], limit=100
    )
    editor = Editor(made)
    editor.apply("window", Drop(("m1", "m2"), "older"))
    (made_note,) = solve(note(made, editor))
    assert made_note.text.endswith("all was answered and acted on.]")
    assert made.measure(made_note.text) <= LEAST_TOKENS


def test_where_an_epoch_left_room_the_note_says_more() -> None:
    names = " ".join(f"TCK-{number:04}" for number in range(200))
    told = []
    for room in (100, 900, 10_000):
        made = draft([user("task"), calls(("x", "search")), result("x", names), said("b"), user(lines(180))])
        editor = Editor(made)
        editor.apply("window", Drop(("m1", "m2"), "older"))
        made.limit = made.total + room
        best, *_ = solve(note(made, editor))
        told.append(best.text.count("TCK-"))
        assert made.measure(best.text) <= max(note_tokens(made.limit), FRAME_TOKENS + room // SPENT)
    assert told[0] < told[1] < told[2] <= MOST_DIGEST // 4


OLD = "tr_0123456789abcdef01234567"
IMITATED = window_note(Left(9, 999, {}), back=by_ref("tr_" + "f" * 24))


def leaving_again(before: str, of_client: str = "task") -> tuple[Draft, Editor, Recorded]:
    """Of two rounds the first left earlier, with a note that said so, the second leaves now."""
    made = draft([user(of_client), *round_of(1, lines(30)), *round_of(2, lines(30)), said("b"), user("c")], limit=4000)
    editor = Editor(made)
    for span in made.messages[1:3]:
        editor.replayed.append(span)
        made.remove(span.id)
    made.rebill()
    editor.apply("window", Drop(("m3", "m4"), "older"))
    noted = json.dumps(user(f"{before}\n\n{of_client}")).encode()
    recorded = msgspec.structs.replace(
        Recorded.nothing(), made={0: Made((noted,), "note", "", merged=(("summary", 30),))}
    )
    return made, editor, recorded


def noted(back: str) -> str:
    return window_note(Left(1, 400, {}), back=back)


def told(made: Draft, editor: Editor, recorded: Recorded) -> list[str]:
    return [one.text for one in solve(note(made, editor, recorded=recorded))]


def test_where_all_refs_are_too_long_the_newest_which_leads_to_the_others_is_named_alone() -> None:
    made, editor, recorded = leaving_again(noted(by_ref(OLD)))
    made.refs = REFS
    plain, shorter, bare, shortest, *without = told(made, editor, recorded)
    assert [text.count("tr_") for text in (plain, shorter, bare, shortest, *without)] == [2, 1, 2, 1, 0, 0]
    assert "what left before that" not in shorter
    first, *rest = made.issued[REF.findall(shortest)[0]].split("\n")
    assert json.loads(first) == {"earlier": by_ref(OLD)}
    assert len(rest) == 2


def test_where_nothing_new_may_be_promised_what_left_first_is_still_named() -> None:
    made, editor, recorded = leaving_again(noted(by_ref(OLD)))
    assert not any("tr_" in text for text in told(made, editor, recorded))  # there is no tool to read it with
    offer(made)
    plain, *_ = told(made, editor, recorded)
    assert f'read_tool_result(ref="{OLD}") shows those that left first; all was answered' in plain
    later, editor, recorded = leaving_again(plain)
    offer(later)
    assert (
        f'read_tool_result(ref="{OLD}") shows those that left first; all was answered'
        in told(later, editor, recorded)[0]
    )
    later.refs = REFS
    whole, *_ = told(later, editor, recorded)
    assert OLD not in whole
    assert later.issued[REF.findall(whole)[0]].count("\n") == 3  # all four messages that left


def test_a_text_of_the_client_that_reads_like_a_note_is_none_of_ours() -> None:
    made, editor, recorded = leaving_again(noted(""), of_client=IMITATED)
    made.refs = REFS
    plain, *_ = told(made, editor, recorded)
    assert "tr_" + "f" * 24 not in plain
    assert made.issued[REF.findall(plain)[0]].count("\n") == 3
