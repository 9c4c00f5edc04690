from policies.grown import Grown, before, leave, now


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
