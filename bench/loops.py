"""Bars 1 to 3 of issue 4: what is retained, what survives, and what it costs when decisions are made once.

    python bench/loops.py --only sixty --seeds 1 2 3

Method: conversations are sent request by request through the core (`tests/support/talks.py`), what it records is kept
as the ledger keeps it, encoded. Loops are built from recorded rounds in their own order, results grown by others.
Retained: tokens of the common prefix with the request before (tools, then whole messages), over the tokens of the
request before, summed. Cost: per request, tokens of that prefix at the read price and the rest at the write price,
against forwarding everything. Survival: of the values that later calls pass and that so far stood only in tool results,
how many stand in what was forwarded to the request that made the call.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import mean

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

from support.sessions import Conversation, conversations  # noqa: E402  (found by the path set above)
from support.talks import Talk, forwarded_text, linked, passed_values  # noqa: E402  (the same)

from policies.budget import Budget, Margin  # noqa: E402  (the same)
from policies.counting import Counter  # noqa: E402  (the same)
from policies.counting.models import counter_for  # noqa: E402  (the same)
from policies.plan import Plan  # noqa: E402  (the same)
from policies.refs import Refs  # noqa: E402  (the same)
from policies.request import ChatRequest, Item, Prompt  # noqa: E402  (the same)
from policies.spilling import ITEM  # noqa: E402  (the same)
from proxy.policyfile import load as load_policy  # noqa: E402  (the same)
from proxy.ranks import load  # noqa: E402  (the same)

PRICES = ((1.0, 1.0), (0.1, 1.25), (0.5, 1.0))  # of a token read from the cache, and of one written
EXACT = Margin(0.01, 8)
REFS = Refs(b"a tenant")


@dataclass
class Figures:
    """Of one conversation."""

    name: str
    requests: int = 0
    edited: int = 0
    opened: int = 0
    common: int = 0
    before: int = 0
    over: int = 0
    torn: int = 0
    lost: int = 0
    refused: int = 0
    uses: int = 0
    visible: int = 0
    results: list[int] = field(default_factory=lambda: [0, 0])
    paid: list[float] = field(default_factory=lambda: [0.0] * len(PRICES))
    plain: list[float] = field(default_factory=lambda: [0.0] * len(PRICES))
    levels: list[str] = field(default_factory=list)

    @property
    def retained(self) -> float:
        return self.common / self.before if self.before else 1.0

    def costs(self) -> list[float]:
        return [a / b for a, b in zip(self.paid, self.plain, strict=True)]


@dataclass
class Cache:
    """What a provider's cache holds: the request before."""

    tools: tuple[Item, ...] = ()
    messages: tuple[Item, ...] = ()
    total: int = 0

    def common(self, prompt, tokens: Sequence[int], head: int) -> int:
        """Tokens of the prefix that this prompt shares with the request before."""
        if not self.total or [t.raw for t in prompt.tools] != [t.raw for t in self.tools]:
            return 0
        shared = head
        for one, before, cost in zip(prompt.messages, self.messages, tokens, strict=False):
            if one.raw != before.raw:
                break
            shared += cost
        return min(shared, self.total)

    def now(self, prompt, total: int) -> None:
        self.tools, self.messages, self.total = prompt.tools, prompt.messages, total


def run(talk: Conversation, counter: Counter, policy, budget: Budget) -> Figures:
    figures, sender = Figures(talk.name), Talk(policy, counter, budget, refs=REFS)
    ours, theirs = Cache(), Cache()
    uses: dict[int, list[str]] = {}
    for index, value in passed_values(talk.messages, talk.tools):
        uses.setdefault(index, []).append(value)
    ends = [end for end, message in enumerate(talk.messages) if message["role"] == "assistant" and end]
    previous: tuple[Item, ...] = ()
    for end in ends:
        request, made = sender.send(talk.request(end))
        figures.requests += 1
        figures.refused += made.refusal is not None
        figures.opened += made.opened
        if made.opened:
            figures.levels.append(f"{figures.requests}:{made.level.value}:{made.received_total}->{made.sent_total}")
        _pay(figures.plain, theirs, request.prompt, counter)
        before = ours.total
        common = _pay(figures.paid, ours, made.prompt, counter)
        if before:
            figures.common += min(common, before)
            figures.before += before
        figures.over += budget.limit is not None and ours.total > budget.limit
        heads = [item.raw for item in made.prompt.messages[: len(previous)]]
        figures.torn += not made.opened and heads != [item.raw for item in previous]
        previous = made.prompt.messages
        text = forwarded_text(made)
        figures.lost += (
            json.loads(request.prompt.messages[1].raw)["content"] not in text
            if len(request.prompt.messages) > 1
            and isinstance(json.loads(request.prompt.messages[1].raw)["content"], str)
            and json.loads(request.prompt.messages[1].raw)["role"] == "user"
            else 0
        )
        for value in uses.get(end, ()):
            figures.uses += 1
            figures.visible += value in text
        _results(figures, made)
    return figures


def _pay(sums: list[float], cache: Cache, prompt, counter: Counter) -> int:
    bill = counter.bill(prompt)
    common = cache.common(prompt, bill.messages, sum(bill.tools) + bill.overhead)
    for at, (read, write) in enumerate(PRICES):
        sums[at] += common * read + (bill.total - common) * write
    cache.now(prompt, bill.total)
    return common


def _results(figures: Figures, made: Plan) -> None:
    figures.results[0] += sum(span.tokens for span in made.received if span.is_result)
    figures.results[1] += sum(span.tokens for span in made.sent if span.is_result)


def show(figures: Figures) -> None:
    costs = " / ".join(f"{cost:.3f}" for cost in figures.costs())
    survived = figures.visible / figures.uses if figures.uses else 1.0
    removed = 1 - figures.results[1] / figures.results[0] if figures.results[0] else 0.0
    print(
        f"{figures.name:<44} {figures.requests:4} requests  retained {figures.retained:6.2%}  epochs {figures.opened:2}  "
        f"survival {survived:6.1%} of {figures.uses:3}  results -{removed:4.0%}  cost {costs}  over {figures.over} torn {figures.torn} lost {figures.lost} refused {figures.refused}",
        flush=True,
    )


SETS = {
    "sixty": ((60, 120_000, 1), 64_000),
    "switches": ((300, 330_000, 11), 128_000),
    "three-hundred": ((300, 600_000, 1), 128_000),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", choices=(*SETS, "recorded"))
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--policy", default="balanced")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    policy = load_policy(arguments.policy)
    counter = counter_for("gpt-4o", load)
    for name, (shape, window) in SETS.items():
        if arguments.only not in (None, name):
            continue
        all_ = []
        for seed in arguments.seeds:
            talk = linked(seed, *shape)
            figures = run(talk, counter, policy, Budget.of(window, None, EXACT))
            show(figures)
            if arguments.verbose:
                print("   ", *figures.levels)
            all_.append(figures)
        print(
            name,
            "mean retained",
            f"{mean(f.retained for f in all_):.2%}",
            "worst",
            f"{min(f.retained for f in all_):.2%}",
            "survival",
            f"{sum(f.visible for f in all_) / max(1, sum(f.uses for f in all_)):.2%}",
            "costs",
            [round(mean(f.costs()[i] for f in all_), 3) for i in range(3)],
        )
    if arguments.only in (None, "recorded"):
        all_ = []
        import windows60

        own = counter.bill(Prompt("gpt-4o", (), (ITEM,))).tools[0]  # overhead, as bar 2 has it

        for talk in conversations():
            window = windows60.window_of(talk) + (own if talk.tools else 0)
            figures = run(talk, counter, policy, Budget(window + 9 + window // 100, 0, 9 + window // 100))
            show(figures)
            all_.append(figures)
        removed = 1 - sum(f.results[1] for f in all_) / sum(f.results[0] for f in all_)
        print(
            "recorded",
            "survival",
            f"{sum(f.visible for f in all_) / max(1, sum(f.uses for f in all_)):.2%}",
            "removed",
            f"{removed:.1%}",
            "retained",
            f"{sum(f.common for f in all_) / sum(f.before for f in all_):.2%}",
            "epochs",
            sum(f.opened for f in all_),
            "over",
            sum(f.over for f in all_),
            "torn",
            sum(f.torn for f in all_),
            "lost",
            sum(f.lost for f in all_),
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
