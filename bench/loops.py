"""Bars 1 to 3 of issue 4: what is retained, what survives, and what it costs where decisions are made once.

    python bench/loops.py --only sixty --seeds 1 2 3 --epochs --lost

Method: conversations are sent request by request through the core with refs on (`tests/support/talks.py`); what it
records is kept as the ledger keeps it, encoded. Loops are built from recorded rounds in their own order, each result
grown by others to a size of its own; seeds are printed. Recorded conversations are sent at windows of overhead (tools,
system, first user message, our own tool) + 60 % of the rest; `fitting` sends them at windows that hold them just so,
and once more with half as much again.
Retained: tokens of the common prefix with the request before (tools, then whole messages), over the tokens of the
request before, summed. Cost: per request, tokens of that prefix at the read price and the rest at the write price,
against forwarding everything. Survival: of the values that later calls pass and that so far stood only in tool
results, how many stand in what was forwarded to the request that made the call; the rest must stand in an original
whose ref is there. Removed: tokens of tool results, over all requests, over those beyond their window, and of each
conversation's last one.
Torn: requests that do not begin with the one before and open no epoch. Lost: system rules and tasks that are missing.
Invalid: edited requests that break the chat grammar, by the tests' own judge or by mistral-common's validator.
Ends with 1 when a bar is missed.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

from measuring import PRICES, Figures, measure  # noqa: E402  (found by the path set above)
from support.sessions import conversations  # noqa: E402  (the same)
from support.talks import Talk, linked  # noqa: E402  (the same)
from windows60 import window_of  # noqa: E402  (the same)

from policies.budget import Budget, Margin  # noqa: E402  (the same)
from policies.counting.models import counter_for  # noqa: E402  (the same)
from policies.policy import Policy  # noqa: E402  (the same)
from policies.refs import Refs  # noqa: E402  (the same)
from policies.request import ChatRequest, Prompt  # noqa: E402  (the same)
from policies.spilling import ITEM  # noqa: E402  (the same)
from proxy.policyfile import load as load_policy  # noqa: E402  (the same)
from proxy.ranks import load  # noqa: E402  (the same)

EXACT = Margin(0.01, 8)
REFS = Refs(b"a tenant's key")
FITTING = (1.0, 1.5)  # the window, over what the last request needs
WITHIN = 0.01  # of what it costs to forward everything


@dataclass(frozen=True)
class Loop:
    """`rounds` rounds of about `tokens` in all, under so many user messages, at a window; and its bars."""

    rounds: int
    tokens: int
    topics: int
    window: int
    mean: float
    worst: float
    epochs: int
    survival: float
    costs: tuple[float, float, float]


LOOPS = {
    "sixty": Loop(60, 120_000, 1, 64_000, 0.96, 0.94, 3, 0.98, (0.57, 0.70, 0.59)),
    "switches": Loop(300, 330_000, 11, 128_000, 0.98, 0.0, 10, 0.0, (0.48, 0.55, 0.50)),
    "three-hundred": Loop(300, 600_000, 1, 128_000, 0.975, 0.0, 20, 0.95, (0.33, 0.33, 0.33)),
}
Bar = tuple[str, float, str, float]  # what, its figure, how it compares ("": nothing is asked of it), with what


def survival(found: Sequence[Figures]) -> float:
    uses = sum(one.uses for one in found)
    return 1 - sum(len(one.gone) for one in found) / uses if uses else 1.0


def removed(found: Sequence[Figures]) -> float:
    """Of all requests."""
    return 1 - sum(one.results_sent for one in found) / max(1, sum(one.results for one in found))


def removed_beyond(found: Sequence[Figures]) -> float:
    """Of requests that are beyond their window."""
    return 1 - sum(one.beyond_results_sent for one in found) / max(1, sum(one.beyond_results for one in found))


def removed_last(found: Sequence[Figures]) -> float:
    """Of the last request of each conversation."""
    return 1 - sum(one.last_results_sent for one in found) / max(1, sum(one.last_results for one in found))


def sound(found: Sequence[Figures]) -> Iterator[Bar]:
    """What holds of every conversation."""
    for name in ("over", "torn", "invalid", "lost", "refused", "unreadable"):
        yield name, sum(getattr(one, name) for one in found), "<=", 0


def costs(found: Sequence[Figures], bars: Sequence[float]) -> Iterator[Bar]:
    for at, (name, bar) in enumerate(zip(PRICES, bars, strict=True)):
        yield f"cost, {name}", mean(one.costs[at] for one in found), "<=", bar


def loops(loop: Loop, found: Sequence[Figures]) -> Iterator[Bar]:
    """The bars of conversations of one shape."""
    yield "retained, mean", mean(one.retained for one in found), ">=", loop.mean
    yield "retained, worst", min(one.retained for one in found), ">=" if loop.worst else "", loop.worst
    yield "epochs, most", max(len(one.epochs) for one in found), "<=", loop.epochs
    yield "survival", survival(found), ">=" if loop.survival else "", loop.survival
    yield from costs(found, loop.costs)
    yield from sound(found)


def recorded(found: Sequence[Figures]) -> Iterator[Bar]:
    yield "survival", survival(found), ">=", 0.975
    yield "results removed, all requests", removed(found), ">=", 0.5
    yield "results removed, beyond the window", removed_beyond(found), ">=", 0.5
    yield "results removed, last requests", removed_last(found), ">=", 0.5
    yield "retained", sum(one.common for one in found) / sum(one.before for one in found), "", 0.0
    yield from sound(found)


def fitting(found: Sequence[Figures]) -> Iterator[Bar]:
    for at, name in enumerate(PRICES):
        cost = sum(one.paid[at] for one in found) / sum(one.plain[at] for one in found)
        yield f"cost, {name}", cost, "<=", 1 + WITHIN
        yield f"cost of the dearest, {name}", max(one.costs[at] for one in found), "<=", 2.0
    yield from sound(found)


def judged(title: str, bars: Iterator[Bar]) -> int:
    """Prints each bar; how many are missed."""
    missed = 0
    for what, figure, how, bar in bars:
        if not how:
            print(f"  {title:<16}{what:<44}{figure:>9.4g}")
            continue
        holds = figure >= bar if how == ">=" else figure <= bar
        missed += not holds
        print(f"{'  ' if holds else '! '}{title:<16}{what:<44}{figure:>9.4g}  {how} {bar:g}")
    return missed


def show(figures: Figures, arguments: argparse.Namespace) -> Figures:
    """A line of one conversation."""
    cost = " ".join(f"{one:.3f}" for one in figures.costs)
    print(
        f"{figures.name[-44:]:<44} {figures.requests:3} requests, retained {figures.retained:6.2%}, "
        f"{len(figures.epochs):2} epochs, survival {survival([figures]):6.1%} of {figures.uses:3}, "
        f"results -{removed([figures]):3.0%}, cost {cost}",
        flush=True,
    )
    if arguments.epochs:
        print("   ", *figures.epochs, sep="\n    ")
    if arguments.lost and figures.gone:
        print("    lost:", *map(repr, figures.gone), sep="\n      ")
    return figures


def main() -> int:
    """Run, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="*", choices=(*LOOPS, "recorded", "fitting"))
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3, 4, 5])
    parser.add_argument("--policy", default="balanced")
    parser.add_argument("--epochs", action="store_true", help="say where epochs open")
    parser.add_argument("--lost", action="store_true", help="list the values that did not survive")
    arguments = parser.parse_args()
    print((__doc__ or "").partition("Method: ")[2])
    policy = load_policy(arguments.policy)
    only = arguments.only or (*LOOPS, "recorded", "fitting")
    missed = 0
    for name, loop in LOOPS.items():
        if name in only:
            found = [show(one, arguments) for one in run_loops(loop, policy, arguments.seeds)]
            missed += judged(name, loops(loop, found))
    if "recorded" in only:
        missed += judged("recorded", recorded([show(one, arguments) for one in run_recorded(policy)]))
    for share in FITTING if "fitting" in only else ():
        found = [show(one, arguments) for one in run_fitting(policy, share)]
        missed += judged(f"fitting x {share:g}", fitting(found))
    print(f"{missed} bars missed")
    return 1 if missed else 0


def run_loops(loop: Loop, policy: Policy, seeds: Sequence[int]) -> Iterator[Figures]:
    for seed in seeds:
        talk = linked(seed, loop.rounds, loop.tokens, loop.topics)
        budget = Budget.of(loop.window, None, EXACT)
        yield measure(talk, Talk(policy, counter_for(talk.model, load), budget, refs=REFS))


def run_recorded(policy: Policy) -> Iterator[Figures]:
    for talk in conversations():
        counter = counter_for(talk.model, load)
        own = counter.bill(Prompt(talk.model, (), (ITEM,))).tools[0] if talk.tools else 0
        window = window_of(talk) + own
        yield measure(talk, Talk(policy, counter, Budget(window), refs=REFS))


def run_fitting(policy: Policy, share: float) -> Iterator[Figures]:
    for talk in conversations():
        counter = counter_for(talk.model, load)
        last = ChatRequest.parse(list(talk.requests())[-1])
        window = int(share * counter.bill(last.prompt).total) + 1
        yield measure(talk, Talk(policy, counter, Budget(window), refs=REFS))


if __name__ == "__main__":
    sys.exit(main())
