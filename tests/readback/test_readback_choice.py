"""Answers of several choices, streamed: each is freed of our calls by itself, and nothing is asked again."""

import json
import random
from typing import Any

import pytest
from support.choosing import DONE, answers, chunks, each, shuffled, usage
from support.playing import names_it, play
from support.rounds import TOOL, Dialect, Said, dialect, read

from proxy.readback.answer import Story, asks_again, has_siblings
from proxy.readback.stream import Stream
from proxy.sse import MAX_BUFFER

BATCH, BATCHES = 50, 10  # 500 streams
ASK = '{"ref": "tr_0123456789abcdef"}'
OWN = ("call_o", TOOL, ASK)
WEATHER = ("call_w", "get_weather", '{"city": "Zürich"}')


def event(*choices: Any, **beside: Any) -> bytes:
    return (
        b"data: " + json.dumps({"id": "c", "created": 1, "model": "m", "choices": choices, **beside}).encode() + b"\n\n"
    )


def piece(delta: dict[str, Any], index: int | None = 0, finish: str | None = None) -> dict[str, Any]:
    return {**({} if index is None else {"index": index}), "delta": delta, "finish_reason": finish}


def call(name: str = "", arguments: str = "", at: int = 0) -> dict[str, Any]:
    function = {**({"name": name} if name else {}), "arguments": arguments}
    return {"tool_calls": [{"index": at, **({"id": f"call_{at}"} if name else {}), "function": function}]}


def one_by_one(raw: bytes) -> list[bytes]:
    return [raw[at : at + 1] for at in range(len(raw))]


def ours(said: Said) -> bool:
    return said.foreign != said.calls


@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_client_sees_of_every_choice_just_what_is_not_ours_wherever_its_bytes_are_cut(batch: int) -> None:
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        chance = random.Random(seed)
        said, how = answers(chance), dialect(chance)
        raw = shuffled(chance, [chunks(one, how, at) for at, one in enumerate(said)], chance.choice([0, 0.3, 1]))
        raw += usage(said[0]) + DONE
        told = play([raw], one_by_one)
        assert told == play([raw]), seed
        assert not names_it(told), seed
        assert told.endswith(usage(said[0]) + DONE), seed
        seen = each(told)
        for at, one in enumerate(said):
            finish = "stop" if one.calls and not one.foreign and one.finish != "stop" else one.finish
            assert (seen[at].text, seen[at].finishes) == ("".join(one.text), [finish]), seed
            assert seen[at].reasoning == "".join(one.reasoning), seed
            assert (seen[at].called, sorted(seen[at].calls)) == (one.foreign, list(range(len(one.foreign)))), seed
            assert len(seen[at].roles) == (how.role != "none"), seed
        if not any(map(ours, said)):
            assert sorted(told.split(b"\n\n")) == sorted(raw.split(b"\n\n")), seed  # text overtakes what is held


@pytest.mark.parametrize("beside", [[], [WEATHER]])
def test_nothing_is_asked_again_and_nothing_recorded_for_several_choices(beside: list[tuple[str, str, str]]) -> None:
    said, story = Said([], [], [OWN, *beside], "tool_calls"), Story()
    answer = Stream(story)
    answer.feed(shuffled(random.Random(0), [chunks(said, Dialect(), at) for at in (0, 1)], 0) + DONE)
    answer.end()
    assert answer.is_whole
    assert not asks_again(answer)
    assert not has_siblings(answer)
    assert story.hidden(answer, [], []) is None


def test_the_only_choice_that_came_of_several_is_read_for() -> None:
    answer = Stream(Story())
    answer.feed(b"".join(event(piece(delta, 5, finish)) for delta, finish in ((call(TOOL, ASK), None), ({}, "stop"))))
    answer.end()
    assert asks_again(answer)


def test_the_ends_of_all_choices_come_before_what_ends_the_stream() -> None:
    raw = event(piece(call(TOOL, ASK), 1)) + event(piece({}, 0, "stop")) + event(piece({}, 1, "tool_calls"))
    told = play([raw + event(usage={"prompt_tokens": 7}) + DONE])
    assert [json.loads(data[6:])["choices"] for data in told.split(b"\n\n")[:3]] == [
        [piece({}, 0, "stop")],
        [piece({}, 1, "stop")],
        [],
    ]
    assert told.endswith(DONE)


def test_a_choice_without_an_index_is_that_of_its_place() -> None:
    raw = event(piece({"content": "a"}, None), piece(call(TOOL, ASK), None)) + event(piece({"content": "c"}, None))
    raw += event(piece({}, None, "stop"), piece({}, None, "tool_calls")) + DONE
    told = play([raw])
    assert not names_it(told)
    assert (read(told).text, read(told).finishes, read(told).done) == ("ac", ["stop", "stop"], 1)


def test_a_zero_that_is_left_out_is_the_index_0() -> None:
    raw = event(piece({"content": "a"}, None)) + event(piece(call(TOOL, ASK), 1)) + event(piece({"content": "b"}, None))
    answer = Stream(Story())
    out = answer.feed(raw + event(piece({}, None, "stop")) + event(piece({}, 1, "tool_calls")) + DONE) + answer.end()
    assert (answer.message, answer.is_open) == ({"content": "ab"}, False)
    assert read(out + answer.closing()).finishes == ["stop", "stop"]


def test_a_chunk_of_several_choices_waits_for_the_name_of_a_call_and_goes_out_as_it_came() -> None:
    answer = Stream(Story())
    first = event(piece({"content": "so"}), piece(call("read"), 1))
    text, rest = event(piece({"content": "."})), event(piece(call("", "{}"), 1))
    assert answer.feed(first + text) == b""
    assert answer.feed(rest) == first + text + rest


def test_a_chunk_of_several_choices_comes_apart_where_one_of_them_is_ours() -> None:
    answer = Stream(Story())
    first = event(piece({"content": "so"}), piece(call("read_tool"), 1), usage={"prompt_tokens": 7})
    assert answer.feed(first) == b""
    out = answer.feed(event(piece(call("_result", ASK), 1)))
    assert [json.loads(data[6:]) for data in out.split(b"\n\n")[:-1]] == [
        {"id": "c", "created": 1, "model": "m", "choices": [piece({"content": "so"})], "usage": None}
    ]


def test_what_waits_for_a_name_is_bounded() -> None:
    answer = Stream(Story())
    first, more = event(piece({"content": "a"}), piece(call("read"), 1)), event(piece({"content": "b" * MAX_BUFFER}))
    assert answer.feed(first) == b""
    out = answer.feed(more)
    assert read(out).text == "a" + "b" * MAX_BUFFER
    out += answer.feed(event(piece(call("", "{}"), 1)))
    assert each(out)[1].called == [("call_0", "read", "{}")]


def test_an_error_lets_go_of_the_text_that_waited() -> None:
    error = b'data: {"error": {"message": "x"}}\n\n'
    answer = Stream(Story())
    out = answer.feed(event(piece({"content": "a"}), piece(call("read"), 1)) + error) + answer.end()
    assert (read(out).text, read(out).errors, answer.is_whole) == ("a", [{"message": "x"}], False)


def test_what_waits_when_the_stream_is_cut_is_told_without_the_call() -> None:
    answer = Stream(Story())
    out = answer.feed(event(piece({"content": "a"}), piece(call("read_tool"), 1))) + answer.end()
    assert (read(out).text, names_it(out), b"read_tool" in out) == ("a", False, False)


def test_what_is_no_choice_among_several_goes_out_as_it_came() -> None:
    odd = event(7, piece({"content": "a"}))
    assert play([odd]) == odd


def test_a_later_round_of_several_choices_goes_on_in_the_name_of_the_first() -> None:
    first = event(piece({"content": "a", **call(TOOL, ASK)})) + event(piece({}, 0, "tool_calls")) + DONE
    second = event(piece({"content": "b"}), piece({"content": "c"}, 1)).replace(b'"c", "created"', b'"d", "created"')
    second += event(piece({}, 0, "stop"), piece(call(TOOL, ASK), 1, "tool_calls")) + DONE
    told = play([first, second])
    assert not names_it(told)
    seen = each(told)
    assert {at: (one.text, one.finishes, one.heads) for at, one in seen.items()} == {
        0: ("ab", ["stop"], {("c", 1, "m")}),
        1: ("c", ["stop"], {("c", 1, "m")}),
    }


def test_a_call_of_ours_behind_an_end_that_was_shown_is_taken_out_and_nothing_is_asked_again() -> None:
    raw = event(piece({"content": "a"})) + event(piece({}, 0, "tool_calls"))
    answer = Stream(Story())
    out = answer.feed(raw + event(piece(call(TOOL, ASK))) + event(piece({}, 0, "tool_calls")) + DONE) + answer.end()
    assert not asks_again(answer)
    out += answer.closing()
    assert (out.startswith(raw), names_it(out), read(out).finishes, read(out).done) == (
        True,
        False,
        ["tool_calls", "stop"],
        1,
    )


def test_odd_events_in_the_middle_change_nothing() -> None:
    middle = event(usage=None) + event(usage={"prompt_tokens": 3}) + b": ping\n\n"
    legacy = event(piece({"function_call": {"name": "bash", "arguments": "{}"}}, 1))
    raw = event(piece(call("read"))) + middle + legacy + event(piece(call("", "{}"))) + event(piece({}, 0, "stop"))
    told = play([raw + event(piece({}, 0, "stop")) + DONE])
    assert sorted(told.split(b"\n\n")) == sorted((raw + event(piece({}, 0, "stop")) + DONE).split(b"\n\n"))
