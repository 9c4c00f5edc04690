import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pieces import pieces

from policies.texts.clipping import clip
from policies.texts.stubs import by_ref

LOG = "".join(f"row {n} handled ITEM-{n:04d}\n" if n != 137 else "ERROR reset by 10.0.0.7\n" for n in range(1, 901))


def test_a_text_keeps_its_beginning_its_end_and_its_errors_around_one_note() -> None:
    first, second, third = "alpha\n" * 10, "noise\n" * 40 + "ERROR reset by peer\n" + "noise\n" * 40, "omega\n" * 10
    assert clip(first + second + third, measure=pieces, head_chars=61, tail_chars=61) == (
        "alpha\n" * 10 + "[… lines 11 to 91, 500 characters, are not shown here.]\n"
        "51: ERROR reset by peer\n" + "omega\n" * 10
    )


def test_the_note_names_identifiers_and_how_to_read_the_rest() -> None:
    clipped = clip(LOG, measure=pieces, back=by_ref("tr_0123456789abcdef"), keep_tokens=300)
    assert (
        'characters, are not shown here, read_tool_result(ref="tr_0123456789abcdef") shows them. They name: ITEM-'
        in clipped
    )
    assert "]\n137: ERROR reset by 10.0.0.7\n" in clipped


def test_one_long_line_is_clipped_within_the_line() -> None:
    clipped = clip("word " * 1000, measure=pieces)
    assert clipped == "word " * 100 + "\n[… 4,300 characters, are not shown here.]\n" + "word " * 40


@pytest.mark.parametrize("text", ["", "short", "x" * 740, "line\n" * 140])
def test_a_text_that_would_not_get_shorter_stays(text: str) -> None:
    assert clip(text, measure=pieces) == text


def test_a_text_within_its_target_stays() -> None:
    assert clip(LOG, measure=pieces, keep_tokens=100_000) == LOG


@pytest.mark.parametrize("keep", [60, 100, 250, 700, 2000, 5000])
@pytest.mark.parametrize(
    "text",
    [
        LOG,
        LOG.replace("row", "Error"),
        "word " * 9000,
        "今天天气很好。订单TCK-4821失败了，请重试。" * 900,
        "🇩🇪👨‍👩‍👧🏽" * 3000,
    ],
    ids=["log", "errors", "prose", "cjk", "emoji"],
)
def test_a_target_is_met_and_most_of_it_used(text: str, keep: int) -> None:
    tokens = pieces(clip(text, measure=pieces, keep_tokens=keep))
    assert keep * 0.7 <= tokens <= keep


def test_a_text_of_two_densities_still_meets_its_target() -> None:
    text = "a, b; c. " * 4000 + "internationalisation " * 50_000 + " " * 100_000
    assert 700 <= pieces(clip(text, measure=pieces, keep_tokens=1000)) <= 1000


def test_below_the_least_target_the_note_stands_alone() -> None:
    assert clip(LOG, measure=pieces, keep_tokens=5) == "[… lines 1 to 900, 23,290 characters, are not shown here.]"
    assert clip("§" * 10, measure=pieces, keep_tokens=5) == "§" * 10


def test_a_head_or_a_tail_alone_can_be_kept() -> None:
    head = clip("word " * 1000, measure=pieces, tail_chars=0)
    tail = clip("word " * 1000, measure=pieces, head_chars=0)
    assert head.endswith("[… 4,500 characters, are not shown here.]")
    assert tail.startswith("[… 4,800 characters, are not shown here.]")


@given(st.text(max_size=3000), st.integers(0, 300), st.none() | st.integers(0, 200))
def test_a_clipped_text_is_never_longer_and_made_of_the_source(text: str, head: int, keep: int | None) -> None:
    clipped = clip(text, measure=pieces, head_chars=head, tail_chars=head // 2, keep_tokens=keep)
    assert len(clipped) <= len(text) or (keep is not None and pieces(clipped) < pieces(text))
    assert clipped == clip(text, measure=pieces, head_chars=head, tail_chars=head // 2, keep_tokens=keep)
    before, _, after = clipped.partition("[… ")
    assert text.startswith(before.removesuffix("\n"))
    assert text.endswith(after.rpartition("\n")[2] if "\n" in after else "")
    if keep is not None and keep >= 60:
        assert pieces(clipped) <= keep
