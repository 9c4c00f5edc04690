"""Counts against what the real API billed, and calibrated counts against what other providers' APIs billed."""

from statistics import median

import pytest
from support.recorded import openai_chat, recorded
from support.replayed import Row, others, replay_all

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


@pytest.fixture(scope="module")
def replayed() -> list[Row]:
    """Rows of other providers after ten observations of their upstream and model; those that a chat request can say."""
    groups = replay_all(others(), Counters(ranks.load), minimum=10)
    return [row for rows in groups.values() for row in rows if row.said]


@pytest.mark.parametrize(("gemini", "bar"), [(False, 0.06), (True, 0.15)])
def test_calibrated_counts_are_close(replayed: list[Row], gemini: bool, bar: float) -> None:
    assert median(row.error(row.counted) for row in replayed if row.gemini == gemini) <= bar


def test_nearly_all_calibrated_counts_are_within_their_margin(replayed: list[Row]) -> None:
    assert sum(row.covered for row in replayed) / len(replayed) >= 0.99


def test_anchors_make_exact_counts_no_worse() -> None:
    groups = replay_all(openai_chat(), Counters(ranks.load), minimum=0)
    rows = [row for found in groups.values() for row in found]
    assert sum(row.counted == row.row.billed for row in rows) >= sum(row.prior == row.row.billed for row in rows)
    assert sum(row.error(row.counted) for row in rows) <= sum(row.error(row.prior) for row in rows)
