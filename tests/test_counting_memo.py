"""A memo holds what was asked for lately, in bounded space."""

from policies.counting.memo import Memo


def test_what_was_set_is_found_and_what_was_not_is_none() -> None:
    memo: Memo[str, int] = Memo(2)
    assert memo.set("a", 1) == 1
    assert memo.get("a") == 1
    assert memo.get("b") is None


def test_it_never_holds_more_than_two_generations() -> None:
    memo: Memo[int, int] = Memo(10)
    for number in range(1000):
        memo.set(number, number)
        assert len(memo) <= 20
    assert 999 in memo
    assert 0 not in memo


def test_what_is_asked_for_again_survives_a_change_of_generation() -> None:
    memo: Memo[str, int] = Memo(2)
    for key in ("a", "b", "c"):
        memo.set(key, 1)
    assert "a" in memo
    assert memo.get("a") == 1  # young again
    memo.set("d", 1)
    assert "a" in memo
    assert "b" not in memo


def test_many_are_found_in_both_generations_and_are_young_again() -> None:
    memo: Memo[str, int] = Memo(2)
    for key in ("a", "b", "c"):
        memo.set(key, ord(key))
    assert memo.all(["c", "a", "x", "a"]) == [99, 97, None, 97]
    memo.set("d", 1)
    assert "a" in memo
