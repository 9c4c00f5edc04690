"""Bars 2 and 3: every recorded conversation at four windows, and generated requests, judged one by one.

    python bench/fit.py --n 10000 --seed 1 --processes 2
    python bench/fit.py --only generated --seed 1 --index 4711     # one case again, with all that is wrong with it

Method: each request goes through `adapter.edgewise`, is timed there, and what comes out is judged by
`tests/support/judge.py`, which shares nothing with the pipeline. A request is slow by its CPU seconds, so that other
work on the machine is not held against it; wall seconds are printed beside them. Ends with 1 when anything is wrong.
"""

import argparse
import itertools
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

import adapter  # noqa: E402  (found by the path set above)
from support.bare import bare_tokens  # noqa: E402  (the same)
from support.generate import case  # noqa: E402  (the same)
from support.judge import ENOUGH, Outcome, judge  # noqa: E402  (the same)
from support.sessions import Conversation, big_sessions, conversations  # noqa: E402  (the same)

WINDOWS = (4_000, 8_000, 16_000, 32_000)
BIG_WINDOWS = (16_000, 64_000)
SLOW = 2.0  # CPU seconds


@dataclass(frozen=True)
class Work:
    """One request to try. `place` says how to make it again."""

    place: str
    body: bytes
    window: int


@dataclass
class Tally:
    """Sums over many requests; `add` merges that of another process."""

    cases: int = 0
    untouched: int = 0
    refused: int = 0
    exceptions: int = 0
    slow: int = 0
    seconds: list[float] = field(default_factory=list)  # of CPU
    waited: list[float] = field(default_factory=list)  # seconds on the wall clock
    shares: list[float] = field(default_factory=list)  # sent over limit, of requests from which something had to go
    levels: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        for name in ("cases", "untouched", "refused", "exceptions", "slow"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.seconds += other.seconds
        self.waited += other.waited
        self.shares += other.shares
        self.levels += other.levels
        self.kinds += other.kinds
        self.problems += other.problems

    def wrong(self, work: Work, kind: str, problem: str) -> None:
        self.kinds[kind] += 1
        self.problems.append(f"{work.place}: {problem}")

    def note(self, work: Work, outcome: Outcome) -> None:
        self.levels[outcome.level] += 1
        self.refused += outcome.sent is None
        self.untouched += outcome.sent is work.body
        if outcome.sent is not None and outcome.received_tokens > outcome.limit:
            self.shares.append(outcome.sent_tokens / max(1, outcome.limit))


def attempt(work: Work, tally: Tally) -> None:
    """One request through the product and before the judge. An exception of either is a finding of this request."""
    tally.cases += 1
    started, began = time.process_time(), time.perf_counter()
    try:
        outcome = adapter.edgewise(work.body, work.window)
    except (KeyboardInterrupt, SystemExit, ImportError):
        raise
    except BaseException as error:  # the tokenizer's panics are BaseExceptions
        tally.exceptions += 1
        tally.wrong(work, "exception", f"{type(error).__name__}: {str(error)[:200]}")
        return
    tally.seconds.append(time.process_time() - started)
    tally.waited.append(time.perf_counter() - began)
    if tally.seconds[-1] > SLOW:
        tally.slow += 1
        tally.wrong(work, "slow", f"slow: {tally.seconds[-1]:.1f} s of CPU")
    tally.note(work, outcome)
    least = bare_tokens(json.loads(work.body), adapter.text_tokens)
    if outcome.received_tokens < least:
        tally.wrong(
            work, "undercounted", f"undercounted: {outcome.received_tokens} tokens, its texts alone are {least}"
        )
    for problem in judge(work.body, outcome, adapter.count):
        tally.wrong(work, problem.partition(":")[0], problem)


def generated(seed: int, indexes: Iterable[int]) -> Iterator[Work]:
    """Generated requests, each at its own window."""
    for index in indexes:
        made = case(seed, index)
        yield Work(f"--seed {seed} --index {index} ({made.what}, window {made.window})", made.body, made.window)


def recorded() -> Iterator[Work]:
    """Each request of each recorded conversation at each window."""
    return _talks(conversations(), WINDOWS, every=1)


def made(seed: int) -> Iterator[Work]:
    """Every seventh request of the long conversations made of recorded results."""
    return _talks(big_sessions(seed), BIG_WINDOWS, every=7)


def _talks(talks: Sequence[Conversation], windows: Sequence[int], every: int) -> Iterator[Work]:
    for talk, window in itertools.product(talks, windows):
        for number, body in enumerate(talk.requests()):
            if number % every == 0:
                yield Work(f"{talk.name} request {number} window {window}", body, window)


def _share(arguments: argparse.Namespace, number: int) -> Tally:
    """The work of one process: every `processes`-th request, counted from `number`."""
    indexes = [arguments.index] if arguments.index is not None else range(arguments.n)
    sources: dict[str, Callable[[], Iterator[Work]]] = {
        "generated": lambda: generated(arguments.seed, indexes[number :: arguments.processes]),
        "recorded": lambda: itertools.islice(recorded(), number, None, arguments.processes),
        "made": lambda: itertools.islice(made(arguments.seed), number, None, arguments.processes),
    }
    tally = Tally()
    for name, source in sources.items():
        if arguments.only not in (None, name):
            continue
        try:
            requests = source()
        except pytest.skip.Exception as absent:  # a BaseException, which would leave the pool waiting for ever
            tally.problems.append(f"{name}: {absent}")
            continue
        for work in requests:
            attempt(work, tally)
            if number == 0 and tally.cases % 200 == 0:
                print(f"  {name}: {tally.cases * arguments.processes} requests, {len(tally.problems)} problems in "
                      "this process", file=sys.stderr)  # fmt: skip
    return tally


def table(tally: Tally) -> str:
    """The figures, a line each."""
    seconds, shares = sorted(tally.seconds), sorted(tally.shares)
    lines = [
        ("requests", tally.cases),
        ("untouched", tally.untouched),
        ("refused (wrongly)", f"{tally.refused} ({tally.kinds['refused wrongly']})"),
        ("over budget", tally.kinds["over budget"]),
        ("invalid (introduced + left)", f"{tally.kinds['invalid']} + {tally.kinds['unrepaired']}"),
        ("exceptions", tally.exceptions),
        (f"over {SLOW:.0f} s", tally.slow),
        ("CPU seconds p50 p99 max", _percentiles(seconds, (0.5, 0.99, 1), "{:.4f}")),
        ("wall seconds p50 p99 max", _percentiles(sorted(tally.waited), (0.5, 0.99, 1), "{:.4f}")),
        ("had to be cut", len(shares)),
        ("sent/limit p1 p10 p50 p90 p99", _percentiles(shares, (0.01, 0.1, 0.5, 0.9, 0.99), "{:.2f}")),
        (f"  of these under {ENOUGH:.0%} (avoidable)",
         f"{sum(share < ENOUGH for share in shares)} ({tally.kinds['thin']})"),
        ("levels", ", ".join(f"{level} {times}" for level, times in tally.levels.most_common())),
        ("problems by kind", ", ".join(f"{kind} {times}" for kind, times in tally.kinds.most_common()) or "none"),
    ]  # fmt: skip
    return "\n".join(f"{name:<34}{value}" for name, value in lines)


def _percentiles(values: Sequence[float], wanted: Sequence[float], form: str) -> str:
    if not values:
        return "-"
    return " ".join(form.format(values[min(len(values) - 1, int(len(values) * share))]) for share in wanted)


def main() -> int:
    """Run, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--n", type=int, default=10_000, help="generated requests (10000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--index", type=int, help="only this generated request")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", choices=("generated", "recorded", "made"))
    parser.add_argument("--show", type=int, default=10, help="problems to print (10)")
    arguments = parser.parse_args()
    if arguments.index is not None:
        arguments.only, arguments.processes = "generated", 1
    tally = Tally()
    jobs = [(arguments, number) for number in range(arguments.processes)]
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as pool:
        for part in pool.starmap(_share, jobs):
            tally.add(part)
    print(table(tally))
    for problem in tally.problems[: arguments.show]:
        print(f"! {problem}")
    return 1 if tally.problems else 0


if __name__ == "__main__":
    sys.exit(main())
