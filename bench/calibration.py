"""Issue 4, bar 7: counts of other providers' models, corrected by what their APIs billed.

    python bench/calibration.py [--groups] [--misses]

Method: every recorded row that is not api.openai.com's is put as a chat request (Anthropic's and Gemini's own formats
by tests/support/converted.py), and the rows of each upstream and model, if more than ten, are replayed in their order
as the proxy sees them: the prompt is counted with what was learned so far, anchored where a prefix of its messages was
billed before under the same tools; then its bill is observed. Shown are the rows after the tenth. Errors are |counted -
billed| / billed; a row is within its margin when what was billed is no more than count and margin. `prior` is the count
before anything is learned, `fitted` the count without anchors. Rows that no chat request can say (tools that run at the
provider's, containers, videos) are replayed too and spoil what is learned, but the bars are put to the others.

Priors (policies/counting/estimate.py) come from FACTS 1 and from fits to half A, models by the hash of their upstream
and name; so does the noise of the fit. Half B had no say in these. That calls, encrypted thoughts and media are terms
of their own was seen on both halves, and so was the room for media of unknown size.

OpenAI's own rows follow: their counters are exact and never fitted; the anchor alone is added, and may not make them
worse. The drift of a row, as in the metric `edgewise_count_drift_ratio`, is observed over counted tokens.
"""

import sys
from collections.abc import Callable, Sequence
from hashlib import md5
from pathlib import Path
from statistics import median

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from support.recorded import openai_chat
from support.replayed import AFTER, Group, Replayed, Row, others, replay_all

from policies.counting.models import Counters
from proxy import ranks

BARS = {"others": 0.06, "gemini": 0.15, "margin": 0.99}


def main() -> int:
    """Prints the figures; exit code 1 when a bar is missed."""
    print(__doc__)
    counters = Counters(ranks.load)
    try:
        rows = others()
    except pytest.skip.Exception as absent:
        print(absent)
        return 0
    replayed = replay_all(rows, counters, minimum=AFTER)
    said = _only(replayed, lambda row: row.said)
    if "--groups" in sys.argv:
        for group, found in replayed.items():
            print(_line(f"{group[0][:22]} {group[1][:34]}", found))
    print(f"{'':<58}{'rows':>5}{'prior':>8}{'fitted':>8}{'counted':>9}{'within':>8}")
    for name, some in (("all rows", replayed), ("rows that a chat request can say", said)):
        for half in ("A", "B", "AB"):
            part = {group: rows for group, rows in some.items() if half_of(group) in half}
            print(_line(f"{name}, half {half}: others", _rows(part, gemini=False)))
            print(_line(f"{name}, half {half}: gemini", _rows(part, gemini=True)))
    if "--misses" in sys.argv:
        _misses(said)
    passed = [_bar("others", said, gemini=False), _bar("gemini", said, gemini=True), _margin(said)]
    passed.append(_openai(counters))
    return 0 if all(passed) else 1


def half_of(group: Group) -> str:
    """By the hash of its name."""
    return "AB"[md5("|".join(group).encode(), usedforsecurity=False).digest()[0] % 2]


def _only(replayed: Replayed, which: Callable[[Row], bool]) -> Replayed:
    return {group: [row for row in rows if which(row)] for group, rows in replayed.items()}


def _rows(replayed: Replayed, *, gemini: bool) -> list[Row]:
    return [row for rows in replayed.values() for row in rows if row.gemini == gemini]


def _line(name: str, rows: Sequence[Row]) -> str:
    if not rows:
        return f"{name:<58}{0:>5}"
    prior, fitted, counted = (
        median(row.error(tokens) for row, tokens in zip(rows, column, strict=True))
        for column in zip(*((row.prior, row.fitted, row.counted) for row in rows), strict=True)
    )
    covered = sum(row.covered for row in rows) / len(rows)
    return f"{name:<58}{len(rows):>5}{prior:>8.1%}{fitted:>8.1%}{counted:>9.1%}{covered:>8.1%}"


def _bar(name: str, replayed: Replayed, *, gemini: bool) -> bool:
    found = median(row.error(row.counted) for row in _rows(replayed, gemini=gemini))
    print(f"median error, {name:<10}{found:>8.2%}   bar {BARS[name]:.0%}  {_verdict(passed=found <= BARS[name])}")
    return found <= BARS[name]


def _margin(replayed: Replayed) -> bool:
    rows = [row for found in replayed.values() for row in found]
    covered = sum(row.covered for row in rows) / len(rows)
    drifts = sorted(row.row.billed / max(1, row.counted) for row in rows)
    print(
        f"drift: median {median(drifts):.3f}, p10 {drifts[len(rows) // 10]:.3f}, p90 {drifts[len(rows) * 9 // 10]:.3f}"
    )
    sizes = sorted(row.room / max(1, row.counted + row.room) for row in rows if row.row.billed >= 500)
    print(f"within the margin       {covered:>8.2%}   bar {BARS['margin']:.0%}  {_verdict(passed=covered >= 0.99)}")
    print(f"median margin of rows of 500 tokens and more: {sizes[len(sizes) // 2]:.1%} of count and margin")
    return covered >= BARS["margin"]


def _openai(counters: Counters) -> bool:
    """OpenAI's own rows, with the anchor alone."""
    replayed = replay_all(openai_chat(), counters, minimum=0)
    rows = [row for found in replayed.values() for row in found]
    before = [row.prior == row.row.billed for row in rows], [row.error(row.prior) for row in rows]
    after = [row.counted == row.row.billed for row in rows], [row.error(row.counted) for row in rows]
    for name, (exact, errors) in (("counted", before), ("anchored", after)):
        print(f"OpenAI, {name:<9}{len(rows):>6} rows {sum(exact) / len(rows):>8.2%} exact, mean error", end=" ")
        print(f"{sum(errors) / len(rows):.4%}")
    covered = sum(row.covered for row in rows) / len(rows)
    print(f"OpenAI, within the margin {covered:.2%}, of the rows that are anchored", end=" ")
    print(f"{sum(row.anchored for row in rows) / len(rows):.1%}")
    return sum(after[0]) >= sum(before[0]) and sum(after[1]) <= sum(before[1])


def _misses(replayed: Replayed) -> None:
    for group, rows in replayed.items():
        for row in rows:
            if not row.covered:
                print(f"  {group[1]:<36} billed {row.row.billed:>7} counted {row.counted:>7} room {row.room:>6}")


def _verdict(*, passed: bool) -> str:
    return "pass" if passed else "MISSED"


if __name__ == "__main__":
    sys.exit(main())
