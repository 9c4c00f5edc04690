from proxy.bounded import Bounded


def test_what_was_used_longest_ago_goes_first() -> None:
    held: Bounded[str, int] = Bounded(2, 100)
    held.hold("a", 1, 1)
    held.hold("b", 2, 1)
    assert held.get("a") == 1
    held.hold("c", 3, 1)
    assert [held.get(key) for key in "abc"] == [1, None, 3]
    assert (len(held), held.size) == (2, 2)


def test_as_many_go_as_there_are_bytes_too_much() -> None:
    held: Bounded[str, int] = Bounded(10, 100)
    for number, key in enumerate("abcd"):
        held.hold(key, number, 25)
    held.hold("e", 4, 60)
    assert [held.get(key) for key in "abcde"] == [None, None, None, 3, 4]
    assert held.size == 85


def test_what_is_larger_than_all_may_be_is_not_held() -> None:
    held: Bounded[str, int] = Bounded(10, 100)
    held.hold("a", 1, 50)
    held.hold("b", 2, 50)
    held.hold("a", 3, 101)
    assert (held.get("a"), held.get("b"), len(held), held.size) == (None, 2, 1, 50)


def test_what_takes_the_place_of_another_is_counted_once() -> None:
    held: Bounded[str, int] = Bounded(10, 100)
    held.hold("a", 1, 40)
    held.hold("a", 2, 70)
    assert (held.get("a"), held.size) == (2, 70)
    held.drop("a")
    held.drop("b")
    assert (held.get("a"), held.size) == (None, 0)


def test_one_object_under_several_keys_has_its_bytes_once() -> None:
    held: Bounded[str, list[int]] = Bounded(10, 100)
    one, other = [1], [1]
    for key in "abc":
        held.hold(key, one, 60)
    assert (held.size, len(held)) == (60, 3)
    held.hold("c", one, 60)
    held.drop("a")
    assert (held.size, len(held)) == (60, 2)
    held.hold("d", other, 60)
    assert [held.get(key) for key in "abcd"] == [None, None, None, [1]]
    assert held.size == 60
