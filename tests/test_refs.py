"""Originals by their refs, from the request that takes them out to every later one: through the whole core."""

import json
from dataclasses import replace

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.judge import Outcome, judge
from support.prompts import (
    Message,
    balanced,
    body,
    budget,
    calls,
    counter,
    draft,
    lines,
    result,
    round_of,
    rows,
    said,
    system,
    user,
)
from support.spilled import REF, REFS, TOOLS, ends, loop, opening, refs_in, sent, talk, whole
from support.talks import Memory

from policies.editor import Editor
from policies.needs import Answer, Need, ServerCount, solve
from policies.notes import note
from policies.pipeline import plan
from policies.readback_tool import NAME
from policies.recorded import Made, Recorded
from policies.refs import Refs
from policies.request import ChatRequest
from policies.step import Step
from policies.steps.clip import Clip
from policies.steps.elide import ElideResults
from policies.steps.minify_json import MinifyJson
from policies.steps.reminder import Reminder
from policies.texts.stubs import Left, by_ref, window_note


def test_a_ref_is_the_same_for_the_same_text_of_a_tenant_and_another_for_others() -> None:
    assert REFS.ref_of("text") == "tr_e40441f2fda350e3c8610571"
    assert REF.fullmatch(REFS.ref_of("half a character: \ud800"))
    assert len({REFS.ref_of("text"), REFS.ref_of("texts"), Refs(b"another").ref_of("text")}) == 3


def test_a_ref_tells_its_own_original_from_a_damaged_one() -> None:
    assert REFS.fits("tr_e40441f2fda350e3c8610571", b"text")
    assert not REFS.fits("tr_e40441f2fda350e3c8610571", b"texT")
    assert not Refs(b"another").fits("tr_e40441f2fda350e3c8610571", b"text")


@pytest.mark.parametrize("key", [b"", b"k" * 65])
def test_a_key_that_names_nobody_or_is_too_long_is_refused(key: bytes) -> None:
    with pytest.raises(ValueError, match=f"1 to 64 bytes, not {len(key)}"):
        Refs(key)


def test_originals_are_the_texts_that_were_taken_out_and_each_is_given_once() -> None:
    conversation, messages = talk(6000), loop(20)
    made = whole(conversation, messages)
    texts = {message["content"] for message in messages if message["role"] == "tool"}
    given = [one.originals for _, one in made]
    first = opening(made)
    assert not any(given[:first])
    assert given[first]
    assert given[first + 1] == {}
    for ref, stored in conversation.originals.items():
        assert REFS.ref_of(stored.decode()) == ref
        assert stored.decode() in texts or stored.startswith((b'{"role"', b'{"earlier"'))


def test_what_is_configured_to_change_nothing_may_be_called_again_where_no_ref_is_possible() -> None:
    policy = replace(balanced(), steps=(*balanced().steps, ElideResults(read_only=("read_*",))))
    request, one = whole(talk(6000, policy, refs=None), loop(20))[-1]
    assert "calling it again shows them" in json.dumps(sent(request, one))
    request, one = whole(talk(6000, policy), loop(20))[-1]
    assert "calling it again shows them" not in json.dumps(sent(request, one))
    assert refs_in(request, one)


def test_messages_that_left_are_stored_as_they_were_received_one_a_line() -> None:
    conversation, messages = talk(3000), loop(60, 12)
    made = whole(conversation, messages)
    notes = [one for _, one in made if "of this conversation" in one.prompt.messages[1].raw.decode()]
    assert notes
    ref = REF.findall(notes[0].prompt.messages[1].raw.decode())[0]
    stored = [json.loads(line) for line in conversation.originals[ref].decode().split("\n")]
    assert stored == [message for message in messages if message in stored]
    assert messages[2:4] == stored[:2]


def test_of_what_left_before_the_newer_transcript_says_how_it_is_read() -> None:
    conversation, messages = talk(3000), loop(160, 12)
    made = whole(conversation, messages)[-1][1]
    last = json.loads(made.prompt.messages[1].raw)["content"]
    ref, found = REF.findall(last)[0], list[Message]()
    while ref:
        first, *lines_ = conversation.originals[ref].decode().split("\n")
        earlier = json.loads(first).get("earlier", "")
        found = [json.loads(line) for line in (lines_ if earlier else [first, *lines_])] + found
        ref = next(iter(REF.findall(earlier)), "")
    assert sorted(map(messages.index, found)) == [at for at, one in enumerate(messages) if one in found]
    assert len(found) > 100


def test_an_epoch_after_which_no_more_left_points_to_the_same_transcript() -> None:
    told = window_note(Left(2, 99, {}), back=by_ref("tr_0123456789abcdef01234567"))
    made = Made((json.dumps(user(told)).encode(),), "note", "", merged=(("summary", 30),))
    drafted = draft([user("a"), *round_of(1, "x"), user("b")])
    editor = Editor(drafted)
    editor.replayed = [drafted.messages[1], drafted.messages[2]]
    for gone in editor.replayed:
        drafted.remove(gone.id)
    drafted.refs = REFS
    recorded = msgspec.structs.replace(Recorded.nothing(), made={0: made})
    said_anew = solve(note(drafted, editor, recorded=recorded))
    assert 'read_tool_result(ref="tr_0123456789abcdef01234567") shows them' in said_anew[0].text
    assert drafted.issued == {}


def test_steps_that_act_always_open_the_first_epoch_by_their_first_ref() -> None:
    policy = replace(balanced(), steps=(Clip(over_tokens=200, when="always"),))
    conversation, messages = talk(100_000, policy), loop(6)
    made = whole(conversation, messages)
    assert [one.opened for _, one in made] == [False, True, False, False, False, False, False]
    assert made[1][1].epoch is not None
    assert made[1][1].epoch.because == "refs"
    assert [bool(one.originals) for _, one in made] == [False, True, True, False, True, True, False]
    for request, one in made[1:]:
        assert sent(request, one)["tools"][-1]["function"]["name"] == NAME


def test_steps_that_act_always_and_take_nothing_out_open_none() -> None:
    policy = replace(balanced(), steps=(Clip(over_tokens=2000, when="always"),))
    assert not any(one.opened or one.originals for _, one in whole(talk(100_000, policy), loop(6)))


@pytest.mark.parametrize("before", [MinifyJson(when="always"), Reminder("Never restart pump 7.", every_tokens=1000)])
def test_the_first_ref_opens_an_epoch_though_something_was_decided_before_it(before: Step) -> None:
    policy = replace(balanced(), steps=(before, Clip(over_tokens=200, when="always")))
    spaced = json.dumps([{"id": number} for number in range(8)], indent=1)
    messages = [
        system("Be brief."),
        user("Which?"),
        *round_of(1, spaced),
        *round_of(2, lines(90)),
        *round_of(3, lines(80)),
    ]
    conversation = talk(100_000, policy)
    made = whole(conversation, messages)
    assert [one.opened for _, one in made] == [False, False, True, False]
    assert any(one.record for _, one in made[:2])
    for request, one in made[2:]:
        text = json.dumps(sent(request, one))
        assert one.epoch is not None
        assert (one.epoch.number, one.epoch.because) == (1, "refs")
        assert refs_in(request, one)
        assert refs_in(request, one) <= set(conversation.originals)
        assert text.count("Never restart pump 7.") == (2 if isinstance(before, Reminder) else 0)
    before_, after = (sent(*one)["messages"] for one in made[2:])
    assert after[: len(before_)] == before_


def test_the_judge_finds_nothing_wrong_with_any_request_of_a_conversation() -> None:
    for request, one in whole(talk(6000), loop(30)):
        touched = [span for decision in one.decisions if decision.outcome == "applied" for span in decision.spans]
        outcome = Outcome(
            request.forward(one.prompt),
            None,
            one.level.value,
            6000,
            one.received_total,
            one.sent_total,
            edited=frozenset(int(span[1:]) for span in touched if span[0] == "m"),
            injected=sum(span[0] == "n" for span in touched),
        )
        found = judge(request.body, outcome, lambda made: counter().bill(ChatRequest.parse(made).prompt).total)
        assert [finding for finding in found if not finding.startswith(("thin", "edited needlessly"))] == []


SIZES = st.lists(st.tuples(st.integers(1, 120), st.booleans(), st.booleans()), min_size=4, max_size=16)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])  # whole conversations
@given(SIZES, st.integers(1200, 9000), st.sampled_from(["auto", "none", "required"]), st.integers(0, 16))
def test_every_ref_that_stands_was_stored_and_is_the_text_that_was_received(
    sizes: list[tuple[int, bool, bool]], limit: int, choice: str, changes_at: int
) -> None:
    conversation, messages = talk(limit), [system("Be brief."), user("Which station lost pressure?")]
    for number, (size, is_json, asks) in enumerate(sizes):
        text = rows(size).replace("TCK", f"T{number}") if is_json else lines(size, f"station {number}")
        messages += [calls((f"call_{number}", "read_log")), result(f"call_{number}", text)]
        messages += [said("Found."), user(lines(size // 4, "and"))] if asks else []
    received: set[str] = set()
    for number, end in enumerate(ends(messages)):
        fields = {"tool_choice": choice} if number >= changes_at else {}
        request, made = conversation.send(body(messages[:end], tools=TOOLS, **fields))
        received |= {str(message["content"]) for message in messages[:end]}
        if made.refusal is not None:
            assert made.originals == {}
            continue
        standing = refs_in(request, made)
        assert standing <= set(conversation.originals)
        assert set(made.originals) <= standing
        assert not standing or sent(request, made)["tools"][-1]["function"]["name"] == NAME
        assert made.sent_total <= limit
        for ref in standing:
            stored = conversation.originals[ref].decode()
            told = stored.split("\n") if stored not in received else []
            told = told[1:] if told and "earlier" in json.loads(told[0]) else told
            assert all(json.loads(line) in messages for line in told)
            assert REFS.ref_of(stored) == ref


def test_the_upstreams_own_count_decides_with_refs_too() -> None:
    request = ChatRequest.parse(body(loop(20), tools=TOOLS))
    memory = Memory()

    def answer(need: Need) -> Answer:
        if isinstance(need, ServerCount):
            return counter().bill(need.prompt).total * 11 // 10
        return memory.answer(need)

    made = solve(plan(request, balanced(), counter(), budget(6000), server=budget(6000), refs=REFS), answer)
    assert made.originals
    assert sent(request, made)["tools"][-1]["function"]["name"] == NAME
