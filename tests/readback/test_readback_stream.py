import json
from typing import Any

import pytest
from support.playing import names_it, play
from support.rounds import TOOL, Dialect, Said, events, joined, read

from proxy.readback.answer import Story, asks_again, has_siblings
from proxy.readback.stream import Stream

BATCH, BATCHES = 50, 20  # 1,000 streams
ASK = '{"ref": "tr_0123456789abcdef"}'
OWN = ("call_o", TOOL, ASK)
WEATHER = ("call_w", "get_weather", '{"city": "Zürich"}')
READ = ("call_r", "read", '{"path": "a"}')


def stream(*answers: Said, how: Dialect | None = None) -> bytes:
    return play([joined(events(said, how or Dialect(), number)) for number, said in enumerate(answers)])


def one(*deltas: dict[str, Any], finish: str | None = "tool_calls", **beside: Any) -> bytes:
    """A stream from its deltas."""
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    if finish:
        choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    chunks = [{"id": "c", "created": 1, "model": "m", "choices": [choice], **beside} for choice in choices]
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)


def piece(index: int | None, name: str = "", arguments: str = "", identity: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {"function": {"name": name, "arguments": arguments}} if name else {
        "function": {"arguments": arguments}
    }  # fmt: skip
    return {**({} if index is None else {"index": index}), **({"id": identity} if identity else {}), **found}


def calls(*pieces: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": list(pieces)}


DONE = b"data: [DONE]\n\n"


def test_calls_of_the_client_alone_go_out_as_the_bytes_that_came() -> None:
    raw = joined(events(Said(["Hm."], [], [READ, WEATHER], "tool_calls"), Dialect(spaced=True), 0))
    assert play([raw]) == raw


def test_a_name_is_held_as_long_as_it_may_become_ours_and_then_sent_as_it_came() -> None:
    answer = Stream(Story())
    first, rest = one(calls(piece(0, "read_tool", identity="a")), finish=None), one(calls(piece(0, "s")), finish=None)
    assert answer.feed(first) == b""
    assert answer.feed(rest) == first + rest


def test_a_name_that_ends_where_ours_goes_on_is_known_by_its_arguments() -> None:
    answer = Stream(Story())
    first, rest = one(calls(piece(0, "read", identity="a")), finish=None), one(calls(piece(0, "", "{")), finish=None)
    assert answer.feed(first) == b""
    assert answer.feed(rest) == first + rest


def test_a_call_without_arguments_is_known_at_the_finish() -> None:
    raw = one(calls(piece(0, "read", identity="a"))) + DONE
    assert play([raw]) == raw


def test_text_between_the_pieces_of_a_name_is_not_held() -> None:
    answer = Stream(Story())
    answer.feed(one(calls(piece(0, "read_tool", identity="a")), finish=None))
    text = one({"content": "so"}, finish=None)
    assert answer.feed(text) == text


def test_text_beside_an_undecided_call_goes_out_without_it() -> None:
    answer = Stream(Story())
    shown = answer.feed(
        one({"role": "assistant", "content": "so", **calls(piece(0, "read", identity="a"))}, finish=None)
    )
    assert (read(shown).text, read(shown).calls) == ("so", {})
    rest = answer.feed(one(calls(piece(0, "", "{}")))) + answer.end() + answer.closing()
    assert (read(rest).text, read(rest).called, read(shown + rest).roles) == ("", [("a", "read", "{}")], ["assistant"])


def test_calls_of_the_client_behind_ours_are_counted_from_0() -> None:
    seen = read(stream(Said([], [], [OWN, WEATHER, READ], "tool_calls")))
    assert (list(seen.calls), seen.called) == ([0, 1], [WEATHER, READ])


def test_calls_that_share_one_index_are_told_apart_by_their_ids() -> None:
    raw = one(calls(piece(0, TOOL, ASK, "a")), calls(piece(0, "bash", "{}", "b")))
    assert read(play([raw + DONE])).called == [("b", "bash", "{}")]


def test_calls_with_neither_index_nor_id_are_told_apart_by_their_names() -> None:
    raw = one(calls(piece(None, TOOL, ASK)), calls(piece(None, "bash", "{}")))
    answer = Stream(Story())
    answer.feed(raw)
    assert [(slot.name, slot.mine) for slot in answer.calls.slots] == [(TOOL, True), ("bash", False)]


def test_a_name_that_is_told_with_every_piece_is_told_once() -> None:
    answer = Stream(Story())
    answer.feed(
        one(calls(piece(0, TOOL, "", "a")), calls(piece(0, TOOL, '{"ref"', "a")), calls(piece(0, TOOL, ": 1}", "a")))
    )
    assert [(slot.name, slot.arguments, slot.mine) for slot in answer.calls.slots] == [(TOOL, '{"ref": 1}', True)]


def test_a_custom_tool_is_never_ours() -> None:
    raw = one(calls({"index": 0, "id": "a", "type": "custom", "custom": {"name": TOOL[:4], "input": "x"}})) + DONE
    assert play([raw]) == raw


def test_what_is_held_is_bounded() -> None:
    answer, more = Stream(Story()), one(calls(piece(1, "bash", "x" * 50_000, "b")), finish=None)
    first = one(calls(piece(0, "read", identity="a")), finish=None)
    assert answer.feed(first + 5 * more) == b""
    assert answer.feed(more) == first + 6 * more


def test_arguments_of_ours_are_kept_up_to_a_bound() -> None:
    answer = Stream(Story())
    answer.feed(one(calls(piece(0, TOOL, "x" * 200_000, "a"))))
    assert len(answer.calls.mine[0].arguments) < 70_000


def test_an_answer_that_is_cut_short_inside_our_call_ends_as_the_upstream_said() -> None:
    seen = read(stream(Said(["It"], [], [OWN], "length")))
    assert (seen.text, seen.called, seen.finishes) == ("It", [], ["length"])


def test_calls_of_ours_that_are_not_answered_are_no_reason_to_finish() -> None:
    answer = Stream(Story())
    answer.feed(one({"role": "assistant", **calls(piece(0, TOOL, ASK, "a"))}) + DONE)
    answer.end()
    seen = read(answer.closing())
    assert (seen.finishes, seen.roles, seen.done) == (["stop"], ["assistant"], 1)


def test_an_error_in_the_stream_goes_out_as_it_came_and_nothing_is_invented() -> None:
    error = b'data: {"error":{"message":"overloaded"}}\n\n'
    answer = Stream(Story())
    out = answer.feed(one({"content": "so"}, calls(piece(0, TOOL, ASK, "a")), finish=None) + error) + answer.end()
    assert not asks_again(answer)
    seen = read(out + answer.closing())
    assert (seen.text, seen.errors, seen.finishes, seen.done) == ("so", [{"message": "overloaded"}], [], 0)


def test_a_clean_end_without_a_finish_stays_a_cut() -> None:
    answer = Stream(Story())
    out = answer.feed(one({"content": "so"}, calls(piece(0, TOOL, ASK, "a")), finish=None)) + answer.end()
    assert not asks_again(answer)
    assert not has_siblings(answer)
    assert (read(out + answer.closing()).text, names_it(out), answer.closing()) == ("so", False, b"")


def test_an_end_marked_by_done_alone_is_an_end() -> None:
    answer = Stream(Story())
    answer.feed(one(calls(piece(0, TOOL, ASK, "a")), finish=None) + DONE)
    answer.end()
    assert asks_again(answer)


def test_a_last_event_without_its_blank_line_counts() -> None:
    raw = one(calls(piece(0, TOOL, ASK, "a"))).removesuffix(b"\n\n")
    answer = Stream(Story())
    assert answer.feed(raw) + answer.end() == b""
    assert asks_again(answer)


def test_a_role_is_told_once_in_two_rounds_and_owed_where_its_event_was_hidden() -> None:
    first = one({"role": "assistant", "content": None, **calls(piece(0, TOOL, ASK, "a"), piece(1, "bash", "{}", "b"))})
    assert read(play([first + DONE])).roles == ["assistant"]
    hidden = one({"role": "assistant", "content": None, **calls(piece(0, TOOL, ASK, "a"))}) + DONE
    assert read(play([hidden, one({"content": "so"}, finish="stop")])).roles == ["assistant"]
    spoken = one({"role": "assistant", "content": ""}, {"content": "a"}, calls(piece(0, TOOL, ASK, "a")))
    again = one({"role": "assistant", "content": ""}, {"content": "b"}, finish="stop")
    assert (read(play([spoken, again])).roles, read(play([spoken, again])).text) == (["assistant"], "ab")


def test_log_probabilities_beside_our_call_are_not_shown() -> None:
    raw = one({"content": "so", **calls(piece(0, TOOL, ASK, "a"))}, finish=None)
    raw = raw.replace(b'"finish_reason": null', b'"finish_reason": null, "logprobs": {"content": ["read_tool_result"]}')
    shown = Stream(Story()).feed(raw)
    assert read(shown).text == "so"
    assert not names_it(shown)


def usage_of(prompt: int, completion: int) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


@pytest.mark.parametrize("place", ["chunk", "finish"])
def test_usage_is_of_the_last_prompt_and_of_all_completions(place: str) -> None:
    first = Said([], [], [OWN], "tool_calls", usage_of(100, 7))
    last = Said(["7"], [], [], "stop", usage_of(180, 5))
    assert read(stream(first, last, how=Dialect(usage=place))).usage == [
        {
            **usage_of(180, 12),
            "edgewise": {**usage_of(280, 12), "rounds": [usage_of(100, 7), usage_of(180, 5)]},
        }
    ]


def test_usage_that_the_client_did_not_ask_for_is_dropped_and_known() -> None:
    told = Story(hides_usage=True)
    answer = Stream(told)
    raw = joined(events(Said(["7"], [], [], "stop", usage_of(180, 5)), Dialect(), 0))
    out = answer.feed(raw) + answer.end() + answer.closing()
    assert (read(out).usage, read(out).done, told.usage) == ([], 1, usage_of(180, 5))


def test_chunks_that_have_neither_choices_nor_usage_are_told_once() -> None:
    head = b'data: {"id":"c","created":1,"model":"m","choices":[],"prompt_filter_results":[]}\n\n'
    told = play([head + one(calls(piece(0, TOOL, ASK, "a"))), head + one({"content": "so"}, finish="stop")])
    assert (told.count(b"prompt_filter_results"), read(told).text) == (1, "so")


def test_events_that_are_no_chunks_pass() -> None:
    odd = b": ping\n\ndata: no json\n\nretry: 5\n\ndata: {broken\n\ndata: 7\n\n"
    assert play([odd]) == odd
    strange = b'data: {"choices":[7]}\n\ndata: {"choices":[{"delta":{"tool_calls":[7]}}]}\n\ndata: {"choices":{}}\n\n'
    assert play([strange]) == strange


def test_an_event_on_several_data_lines_keeps_its_other_lines() -> None:
    raw = one({"role": "assistant", "content": "so", **calls(piece(0, TOOL, ASK, "a"))}, finish=None)
    raw = b"event: message\nid: 7\n" + raw.replace(b', "choices"', b',\ndata: "choices"')
    shown = Stream(Story()).feed(raw)
    assert shown.startswith(b"event: message\nid: 7\ndata: {")
    assert read(shown).text == "so"


def test_the_message_is_put_together_from_its_pieces() -> None:
    answer = Stream(Story())
    details = [[{"index": 0, "type": "t", "text": "a"}], [{"index": 0, "type": "t", "text": "b"}], [{"index": 1}]]
    answer.feed(one(*[{"content": "x", "reasoning_details": detail} for detail in details], finish=None))
    assert answer.message == {
        "content": "xxx",
        "reasoning_details": [{"index": 0, "type": "t", "text": "ab"}, {"index": 1}],
    }


def test_members_beside_a_call_go_back_with_it() -> None:
    answer = Stream(Story())
    signed = {**piece(0, TOOL, ASK, "a"), "extra_content": {"google": {"thought_signature": "s1"}}}
    answer.feed(one(calls(signed)))
    assert json.loads(answer.calls.mine[0].raw("a")) == {
        "id": "a",
        "type": "function",
        "function": {"name": TOOL, "arguments": ASK},
        "extra_content": {"google": {"thought_signature": "s1"}},
    }


def test_log_probabilities_of_an_answer_in_one_event_are_told_once() -> None:
    whole = one({"role": "assistant", "content": "so", **calls(piece(0, "bash", "{}", "b"), piece(1, TOOL, ASK, "a"))})
    whole = whole.partition(b"\n\n")[0].replace(
        b'"finish_reason": null', b'"logprobs": {"x": 1}, "finish_reason": "stop"'
    )
    told = play([whole + b"\n\n" + DONE])
    assert (read(told).text, read(told).called, read(told).finishes) == ("so", [("b", "bash", "{}")], ["stop"])
    assert told.count(b'{"x": 1}') == 0


def test_a_role_that_is_owed_is_told_where_the_last_event_has_no_delta() -> None:
    first = one({"role": "assistant", **calls(piece(0, TOOL, ASK, "a"))}) + DONE
    end = one(finish="stop").replace(b'"delta": {}', b'"delta": null') + DONE
    told = json.loads(play([first, end]).split(b"\n")[0].removeprefix(b"data: "))["choices"][0]
    assert told == {"index": 0, "delta": {"role": "assistant"}, "finish_reason": "stop"}


@pytest.mark.parametrize("index", [[], {"at": 0}, 0.5])
def test_an_index_that_is_no_number_still_tells_calls_apart(index: Any) -> None:
    mine, theirs = piece(None, TOOL, ASK, "a"), piece(None, "get_weather", "{}", "b")
    raw = one(calls({**mine, "index": index}), calls({**theirs, "index": [index]})) + DONE
    told = play([raw])
    assert b"get_weather" in told
    assert not names_it(told)
