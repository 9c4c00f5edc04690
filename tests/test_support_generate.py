import json
from collections import Counter

import msgspec
from support.drafts import KINDS
from support.generate import case, requests
from support.grammar import faults


def test_a_case_is_the_same_each_time() -> None:
    assert [case(7, index).body for index in range(20)] == [made.body for made in requests(7, 20)]


def test_validity_is_what_the_grammar_says_of_the_bytes() -> None:
    for made in requests(1, 150):
        assert made.valid == (not faults(json.loads(made.body)))


def test_every_kind_and_both_verdicts_turn_up() -> None:
    kinds = Counter((made.what, made.valid) for made in requests(2, 1_500))
    assert {what for what, _ in kinds} == {kind.__name__ for kind in KINDS}
    assert kinds["broken", False] > 50
    assert kinds["loop", True] > 200


def test_windows_lie_between_1k_and_200k() -> None:
    windows = [made.window for made in requests(3, 300)]
    assert 1_000 <= min(windows) < 1_500
    assert 100_000 < max(windows) <= 200_000


def test_bodies_hold_what_common_parsers_choke_on() -> None:
    bodies = [made.body for made in requests(4, 300)]
    assert any(b"\\ud800" in body for body in bodies)
    assert any(b"9007199254740993" in body for body in bodies)
    assert any(b"1e5" in body for body in bodies)
    refused = 0
    for body in bodies:
        body.decode()  # always UTF-8: lone surrogates stand as escapes
        try:
            msgspec.json.decode(body)
        except msgspec.DecodeError:
            refused += 1
    assert 10 < refused < 90
