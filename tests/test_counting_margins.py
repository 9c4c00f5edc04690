"""Margins: small where the rules are known."""

import pytest
from support.characters import Characters

from policies.counting import Bill, Counter
from policies.counting.estimate import UNKNOWN, EstimateCounter
from policies.counting.families import CHAT
from policies.counting.margins import ESTIMATE, EXACT, margin_of
from policies.counting.openai import OpenAICounter

OPENAI = OpenAICounter(CHAT, Characters())
OTHER = EstimateCounter(UNKNOWN, Characters())


@pytest.mark.parametrize(
    ("counter", "exact", "margin"), [(OPENAI, True, EXACT), (OPENAI, False, ESTIMATE), (OTHER, True, ESTIMATE)]
)
def test_only_an_exact_bill_by_known_rules_gets_the_small_margin(counter: Counter, exact: bool, margin: object) -> None:
    assert margin_of(Bill((), (), 0, exact), counter) is margin
