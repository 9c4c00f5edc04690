"""Bar 1: counts against what the real API billed, and what a bill costs.

    python bench/counts.py [--misses]

Method: every recorded chat row of api.openai.com without audio, files, images of unknown size and search-preview models
is counted by the rules of the model that served it and compared with the prompt tokens that were billed. Speed: CPU of
one process for a prompt of 200 messages, 400 kB, with tools, seen for the first time and again.
"""

import sys
import time
from collections import Counter as Tally
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from support.recorded import Recorded, openai_chat, prompt_of

from policies.counting.models import Counters
from policies.request import Prompt
from proxy import ranks

BARS = {"exact": 0.90, "within 2": 0.95, "mean error": 0.004}


class Count(NamedTuple):
    """One row: what was billed, and what was counted."""

    row: Recorded
    counted: int

    @property
    def miss(self) -> int:
        return self.row.billed - self.counted


def main() -> int:
    """Prints one line a measure; exit code 1 when a bar is missed."""
    print(__doc__)
    counters = Counters(ranks.load)
    try:
        counts = [Count(row, counters.of(row.model).bill(row.prompt).total) for row in openai_chat()]
    except pytest.skip.Exception as absent:
        print(absent)
        return 0
    scores = score(counts)
    passed = [_line(name, value, BARS[name]) for name, value in scores.items()]
    print(f"{'rows':<12}{len(counts):>10}")
    if "--misses" in sys.argv:
        for (model, miss), rows in sorted(Tally((count.row.model, count.miss) for count in counts).items()):
            print(f"  {model:<40}{miss:>+6}{rows:>6}")
    for name, seconds in speeds().items():
        print(f"{name:<12}{seconds * 1e3:>10.3f} ms")
    return 0 if all(passed) else 1


def score(counts: Sequence[Count]) -> dict[str, float]:
    """Shares of the rows, and the mean of the relative errors."""
    rows = len(counts)
    return {
        "exact": sum(count.miss == 0 for count in counts) / rows,
        "within 2": sum(abs(count.miss) <= 2 for count in counts) / rows,
        "mean error": sum(abs(count.miss) / count.row.billed for count in counts) / rows,
    }


def speeds() -> dict[str, float]:
    """CPU seconds of a bill, for the first time and again."""
    prompt = long_prompt()
    counters = Counters(ranks.load)
    counter = counters.of("gpt-4o")
    cold = _timed(lambda: counter.bill(prompt), 1)
    warm = _timed(lambda: counter.bill(prompt), 200)
    return {"cold bill": cold, "warm bill": warm}


def long_prompt() -> Prompt:
    """200 messages, 400 kB: 66 rounds of a call and a 6 kB result, and 20 tools."""
    messages: list[dict[str, object]] = [{"role": "system", "content": "Find the cause. " * 20}]
    for turn in range(66):
        arguments = f'{{"path": "src/module_{turn}.py", "limit": {turn}}}'
        call = {"id": f"call_{turn}", "type": "function", "function": {"name": "read_file", "arguments": arguments}}
        result = "".join(f"{line:>5}  value_{line} = compute(input_{turn}, {line * turn})\n" for line in range(130))
        messages += [
            {"role": "user", "content": f"Go on with step {turn}."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{turn}", "content": result},
        ]
    path = {"path": {"type": "string", "description": "Path of the file"}}
    tools = [
        {"type": "function", "function": {"name": f"tool_{n}", "parameters": {"type": "object", "properties": path}}}
        for n in range(20)
    ]
    return prompt_of({"model": "gpt-4o", "messages": messages, "tools": tools})


def _timed(work: Callable[[], object], times: int) -> float:
    start = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - start) / times


def _line(name: str, value: float, bar: float) -> bool:
    passed = value <= bar if "error" in name else value >= bar
    print(f"{name:<12}{value:>10.3%}   bar {bar:.1%}  {'pass' if passed else 'MISSED'}")
    return passed


if __name__ == "__main__":
    sys.exit(main())
