"""1,000 scripted streams, cut at every byte: a client never sees the tool, and all else that it would have seen.

A batch holds the seeds from 50 times its number on; a failure names the seed."""

import random
from functools import partial

import pytest
from support.playing import names_it, play
from support.rounds import TOOL, Event, Said, dialect, events, joined, read, story

from proxy.readback.answer import Story
from proxy.readback.stream import Stream

BATCH, BATCHES = 50, 20  # 1,000 streams
ASK = '{"ref": "tr_0123456789abcdef"}'
OWN = ("call_o", TOOL, ASK)
WEATHER = ("call_w", "get_weather", '{"city": "Zürich"}')
READ = ("call_r", "read", '{"path": "a"}')


def scripted(seed: int) -> tuple[list[Said], list[list[Event]]]:
    chance = random.Random(seed)
    answers = story(chance)
    return answers, [events(said, dialect(chance), number) for number, said in enumerate(answers)]


def one_by_one(raw: bytes) -> list[bytes]:
    return [raw[at : at + 1] for at in range(len(raw))]


@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_client_sees_of_any_story_just_what_is_not_ours_wherever_its_bytes_are_cut(batch: int) -> None:
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        answers, rounds = scripted(seed)
        raws = [joined(parts) for parts in rounds]
        told, last = play(raws, one_by_one), answers[-1]
        assert told == play(raws), seed
        assert not names_it(told), seed
        seen = read(told)
        assert seen.text == "".join(piece for said in answers for piece in said.text), seed
        assert seen.reasoning == "".join(piece for said in answers for piece in said.reasoning), seed
        assert (seen.called, sorted(seen.calls)) == (last.foreign, list(range(len(last.foreign)))), seed
        assert (seen.finishes, len(seen.heads)) == ([last.finish], 1), seed
        assert seen.roles == ["assistant"] * any(b'"role"' in raw for raw in raws), seed
        if len(answers) == 1 and not has_own(last):
            assert sorted(blocks(told)) == sorted(blocks(raws[0])), seed  # comments overtake what is held
            assert told == raws[0] or b": keep-alive" in told, seed


def blocks(raw: bytes) -> list[bytes]:
    return raw.replace(b"\r\n", b"\n").split(b"\n\n")


def has_own(said: Said) -> bool:
    return said.foreign != said.calls


@pytest.mark.parametrize("batch", range(BATCHES))
def test_text_is_out_with_the_byte_that_ends_its_event(batch: int) -> None:
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        _, rounds = scripted(seed)
        told, out, text = Story(), b"", ""
        for parts in rounds:
            answer = Stream(told)
            for part in parts:
                out += answer.feed(part.raw[:-1])
                out += answer.feed(part.raw[-1:])
                text += part.text
                if part.text:
                    assert read(out).text == text, seed
            answer.end()
            told.add(answer, [])


@pytest.mark.parametrize("seed", [546, 820, 138, 131, 784, 29])
def test_any_two_reads_make_the_same_stream_and_one_that_breaks_off_shows_no_more(seed: int) -> None:
    _, rounds = scripted(seed)
    raws = [joined(parts) for parts in rounds]
    expected = play(raws)
    for number, raw in enumerate(raws):
        for cut in range(1, len(raw)):
            assert play(raws, partial(at, raw, cut)) == expected
            assert not names_it(play([*raws[:number], raw[:cut]]))


def at(cut_one: bytes, cut: int, raw: bytes) -> list[bytes]:
    return [raw[:cut], raw[cut:]] if raw is cut_one else [raw]
