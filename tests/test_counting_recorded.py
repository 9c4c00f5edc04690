"""Bar 1: counts against what the real API billed."""

import pytest
from support.recorded import openai_chat, recorded

from policies.counting.estimate import EstimateCounter
from policies.counting.models import Counters
from proxy import ranks


@pytest.fixture(scope="module")
def pairs() -> list[tuple[int, int]]:
    """Billed and counted tokens of each row."""
    counters = Counters(ranks.load)
    return [(row.billed, counters.of(row.model).bill(row.prompt).total) for row in openai_chat()]


def test_nearly_all_rows_are_exact(pairs: list[tuple[int, int]]) -> None:
    assert sum(billed == counted for billed, counted in pairs) / len(pairs) >= 0.97


def test_nearly_all_rows_are_within_two_tokens(pairs: list[tuple[int, int]]) -> None:
    assert sum(abs(billed - counted) <= 2 for billed, counted in pairs) / len(pairs) >= 0.99


def test_the_mean_error_is_small(pairs: list[tuple[int, int]]) -> None:
    assert sum(abs(billed - counted) / billed for billed, counted in pairs) / len(pairs) <= 0.002


def test_the_exact_margin_covers_all_but_one_in_five_hundred(pairs: list[tuple[int, int]]) -> None:
    assert sum(billed <= counted * 1.01 + 8 for billed, counted in pairs) / len(pairs) >= 0.998


def test_rows_of_other_providers_are_estimates() -> None:
    counters = Counters(ranks.load)
    chat = [row for row in recorded() if row.api == "chat" and "claude" in row.model]
    assert chat
    for row in chat:
        counter = counters.of(row.model)
        assert isinstance(counter, EstimateCounter)
        assert not counter.bill(row.prompt).exact
