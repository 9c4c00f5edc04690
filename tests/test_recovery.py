"""What of a conversation is still the same after its client changed it. A letter is a message."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.recovery import CHANGES, change, recovered

LETTERS = st.lists(st.sampled_from([bytes([letter]) for letter in b"abcdefgh"]), max_size=30)


def hashes(text: str) -> list[bytes]:
    return [letter.encode() for letter in text]


def pairs(old: str, new: str) -> dict[int, int]:
    return recovered(dict(enumerate(hashes(old))), hashes(new))


@pytest.mark.parametrize(
    ("what", "old", "new", "expected"),
    [
        ("nothing known", "", "Sab", {}),
        ("went on", "Sabc", "Sabcde", {0: 0, 1: 1, 2: 2, 3: 3}),
        ("a clock in the system prompt", "Sabc", "Tabcd", {1: 1, 2: 2, 3: 3}),
        ("a text trimmed", "Sabcd", "SaBcd", {0: 0, 1: 1, 3: 3, 4: 4}),
        ("a message deleted", "Sabcd", "Sacd", {0: 0, 1: 1, 2: 3, 3: 4}),
        ("a message inserted", "Sabc", "SaNbc", {0: 0, 1: 1, 3: 2, 4: 3}),
        ("compacted but for the end", "Sabcdefgh", "SNgh", {0: 0, 2: 7, 3: 8}),
        ("two changed places", "abcd", "acbd", {0: 0, 2: 1, 3: 3}),
        ("all is new", "Sab", "Txy", {}),
        ("repeated texts, first deleted", "SokokX", "SkokX", {0: 0, 1: 2, 2: 3, 3: 4, 4: 5}),
        (
            "a repeated text jumps to no later place",
            "SaokbokcX",
            "SokaokbokcX",
            {0: 0, 3: 1, **dict(zip(range(4, 11), range(2, 9), strict=True))},
        ),
    ],
)
def test_messages_are_found_again_in_their_order(what: str, old: str, new: str, expected: dict[int, int]) -> None:
    assert pairs(old, new) == expected, what


def test_gaps_between_the_unique_messages_are_filled_in_order() -> None:
    assert pairs("SaabXaab", "TaabXab") == {1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 7}


def test_only_what_is_known_of_the_old_request_can_be_found() -> None:
    assert recovered({3: b"d", 1: b"b"}, hashes("Xbcd")) == {1: 1, 3: 3}


@given(LETTERS, LETTERS)
def test_pairs_are_equal_in_order_and_each_at_most_once(old: list[bytes], new: list[bytes]) -> None:
    found = recovered(dict(enumerate(old)), new)
    assert list(found) == sorted(found)
    assert list(found.values()) == sorted(set(found.values()))
    assert all(new[at] == old[place] for at, place in found.items())
    assert change(old, new, found) in CHANGES


@given(LETTERS, LETTERS)
def test_a_conversation_that_went_on_keeps_everything(old: list[bytes], more: list[bytes]) -> None:
    found = recovered(dict(enumerate(old)), old + more)
    assert found == {index: index for index in range(len(old))}
    assert change(old, old + more, found) == "appended"


def test_thousands_of_messages_in_another_order_take_no_square_of_time() -> None:
    numbers = [number.to_bytes(4, "big") for number in range(50_000)]
    shuffled = random.Random(7).sample(numbers, len(numbers))
    found = recovered(dict(enumerate(numbers)), shuffled)
    assert 300 < len(found) < 500  # the longest rising run of n shuffled numbers is about 2√n


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "Sab", "appended"),
        ("Sab", "Sab", "appended"),
        ("Sab", "Sabcd", "appended"),
        ("Sabc", "Tabcd", "system_changed"),
        ("Sabc", "TUabcd", "system_changed"),
        ("Sabc", "abcd", "truncated"),
        ("Sabc", "SaX", "branched"),
        ("Sabc", "Sa", "branched"),
        ("Sabc", "xyz", "branched"),
        ("Sabcd", "SaBcde", "edited"),
        ("Sabcd", "SNabcd", "edited"),
        ("Sabcd", "TaBcd", "edited"),
        ("Sabcd", "TabcX", "edited"),
        ("Sabcdef", "Sefg", "truncated"),
        ("Sabcdef", "Sabdef", "truncated"),
        ("Sabcdefgh", "SNghi", "compacted"),
        ("Sabcdefgh", "SNo", "compacted"),
        ("Sabcdefgh", "SabcdeX", "branched"),
        ("Sabcdefgh", "SabcdX", "branched"),
        ("Sabcdefgh", "SNOPQRST", "branched"),
    ],
)
def test_what_the_client_did_has_a_name(old: str, new: str, expected: str) -> None:
    assert change(hashes(old), hashes(new), pairs(old, new)) == expected
