"""Bar 1 of issue 3: folding is true. Generated documents and every recorded JSON result, folded and judged one by one.

    python bench/folding.py --n 10000 --seed 1
    python bench/folding.py --seed 1 --index 4711     # one document again

Method: each text is folded to a quarter, to a twentieth and to at most 60 of its tokens, to the shape of `classic`,
and into lossless tables. `tests/support/folding_check.py`, which shares no code with the product, then compares every
scalar that is left with the source at its path, spelling of numbers included, and adds up what is named as gone. The
output must be JSON, and shorter. Problems and outliers planted in the documents must be shown where the fold is to
the shape of `classic` or lossless; where it is to a size, shown or counted. Ends with 1 when anything is wrong.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "tests")]

from support.documents import Document, Place, document  # noqa: E402  (found by the path set above)
from support.folding_check import GONE, check, shown  # noqa: E402  (the same)
from support.sessions import recorded_results  # noqa: E402  (the same)

from policies.texts.folding import fold_json, fold_to_shape, tabulate  # noqa: E402  (the same)
from proxy.ranks import load  # noqa: E402  (the same)

COUNTED = "report problems"


def folds(source: str) -> Iterator[tuple[str, str]]:
    """Each way to fold a text, with what it comes to."""
    measure = load("o200k_base").count
    tokens = measure(source)
    for name, keep in (("quarter", tokens // 4), ("twentieth", tokens // 20), ("sixty", 60)):
        made = fold_json(source, keep_tokens=keep, measure=measure)
        if made is not None:
            yield name, made.text
    shaped = fold_to_shape(source, depth=2, items=1, measure=measure)
    if shaped is not None:
        yield "shape", shaped.text
    if (table := tabulate(source)) is not None:
        yield "tables", table


def judge(given: Document, tally: Counter[str]) -> list[str]:
    """Everything that is wrong with the folds of one document."""
    found = []
    for name, text in folds(given.text):
        tally[f"{name} folds"] += 1
        tally[f"{name} characters before"] += len(given.text)
        tally[f"{name} characters after"] += len(text)
        try:
            tally["scalars left"] += check(given.text, text)
        except (AssertionError, ValueError) as wrong:
            found.append(f"{name}: {wrong}")
            continue
        if name != "tables" and len(text) >= len(given.text):
            found.append(f"{name}: no shorter")
        found += [f"{name}: {problem}" for problem in _lost(given, name, text, tally)]
    return found


def _lost(given: Document, name: str, text: str, tally: Counter[str]) -> Iterator[str]:
    folded = json.loads(text)
    for kind, paths in (("problem", given.alarms), ("outlier", given.outliers)):
        gone = [path for path in paths if shown(folded, path) is GONE]
        tally[f"{name} {kind}s planted"] += len(paths)
        tally[f"{name} {kind}s shown"] += len(paths) - len(gone)
        if name == "shape":
            gone = [path for path in gone if _is_near(path)]
        if gone and name in ("tables", "shape"):
            yield f"{kind} at {gone[0]} is gone"
        elif gone and kind == "problem" and COUNTED not in text and "not shown" not in text:
            yield f"{kind} at {gone[0]} is gone and not counted"


def _is_near(path: Place) -> bool:
    """In an array near the root that stands in no other: the outer one of two has problems of its own to show."""
    return len(path) <= 4 and sum(isinstance(step, int) for step in path) == 1


def main() -> int:
    """Run, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--n", type=int, default=10_000, help="generated documents (10000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--index", type=int, help="only this document")
    arguments = parser.parse_args()
    tally: Counter[str] = Counter()
    problems = []
    for index in [arguments.index] if arguments.index is not None else range(arguments.n):
        problems += [f"document {index}: {one}" for one in judge(document(arguments.seed, index), tally)]
        tally["documents"] += 1
    try:
        for number, text in enumerate(recorded_results() if arguments.index is None else []):
            problems += [f"recorded {number}: {one}" for one in judge(Document(text, (), ()), tally)]
            tally["recorded results"] += 1
    except pytest.skip.Exception as absent:
        problems.append(f"recorded: {absent}")
    for name, figure in tally.items():
        print(f"{name:<32}{figure:>14,}")
    print(f"{'wrong':<32}{len(problems):>14,}")
    for problem in problems[:10]:
        print(f"! {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
