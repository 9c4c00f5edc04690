import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.grown import Grown, Pieced, Run, before, leave, now


def test_a_plain_tuple_remembers_nothing() -> None:
    leave((1, 2), "sum", 3)
    assert now((1, 2), "sum") is None
    assert before((1, 2), "sum") == (0, None)


def test_a_grown_tuple_is_equal_to_a_plain_one_and_its_slices_are_plain() -> None:
    made = Grown.of((1, 2, 3), {}, {}, 0)
    assert made == (1, 2, 3)
    assert type(made[1:]) is tuple
    assert type((*made, 4)) is tuple


def test_what_was_left_for_the_beginning_is_told_with_its_length() -> None:
    first = Grown.of((1, 2), {}, {}, 0)
    leave(first, "sum", 3)
    second = Grown.of((1, 2, 3), {}, first.trail, 2)
    assert now(first, "sum") == 3
    assert before(second, "sum") == (2, 3)
    assert before(second, "product") == (0, None)
    assert now(second, "sum") is None


@given(
    st.lists(st.lists(st.integers(), max_size=4), max_size=5), st.integers(0, 4), st.lists(st.integers(), max_size=3)
)
def test_a_run_is_what_was_put_into_it_whatever_is_put_behind_it_elsewhere(
    parts: list[list[int]], branch: int, other: list[int]
) -> None:
    runs, said = [Run[int]()], [list[int]()]
    for part in parts:
        runs.append(runs[-1].and_then(part))
        said.append([*said[-1], *part])
    at = min(branch, len(parts))
    runs.append(runs[at].and_then(other))
    said.append([*said[at], *other])
    for run, plain in zip(runs, said, strict=True):
        assert list(run) == plain
        assert run == plain
        assert run[1:3] == plain[1:3]
        assert run[-2:] == plain[-2:]
        assert len(run) == len(plain)
        assert [run[at] for at in range(-len(plain), len(plain))] == plain + plain


def test_a_run_ends_where_it_ends() -> None:
    short = Run([1, 2])
    longer = short.and_then([3])
    assert longer == [1, 2, 3]
    for at in (2, -3):
        with pytest.raises(IndexError):
            short[at]
    assert short.and_then([]) is short


@given(st.lists(st.integers(), max_size=5), st.lists(st.integers(), max_size=3), st.sets(st.integers(0, 4)))
def test_pieces_read_like_one_sequence(older: list[int], tail: list[int], patched: set[int]) -> None:
    places = {at: -1 for at in patched if at < len(older)}
    plain = [places.get(at, one) for at, one in enumerate(older)] + tail
    made = Pieced(Run(older), tuple(tail), places)
    assert list(made) == plain
    assert made == plain
    assert [made[at] for at in range(-len(plain), len(plain))] == plain + plain
    assert made[1:3] == plain[1:3]
    assert repr(made) == repr(tuple(plain))


def test_sequences_of_other_things_or_lengths_differ() -> None:
    run = Run([1, 2])
    assert run == run.and_then([])
    assert run != [1]
    assert run != [1, 3]
    assert run != 7


def test_of_two_that_put_something_behind_the_same_at_once_one_copies() -> None:
    run = Run([1])
    run._claims[1] = Run()  # as another thread leaves it in the middle of its work
    assert run.and_then([2]) == [1, 2]
    assert run == [1]
    assert len(run._items) == 1
