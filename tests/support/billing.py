"""An upstream on a real socket that bills by a tokenizer of its own, and the proxy in front of it, turn by turn."""

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from support.prompts import Message, lines, round_of, system, user
from support.servers import Answer, Proxy, running

from policies.counting.models import counter_for
from policies.request import ChatRequest
from proxy.cli.embedded import Embedded, Said, Tokens
from proxy.loopback import listening, plain
from proxy.planning import Planning, planner_of
from proxy.ranks import load
from proxy.settings import Settings

WINDOW, RESERVE = 8_000, 1_000  # tokens
MODEL = "mystery-7b"  # nothing is known of it


@dataclass
class Biller:
    """`rate` and `preamble` are what its tokenizer makes of a prompt of OpenAI's rules. Keeps what came and what each
    request was billed."""

    rate: float = 1.3
    preamble: int = 200
    base: str = ""
    bodies: list[bytes] = field(default_factory=list)
    bills: list[int] = field(default_factory=list)

    def prompt(self, request: ChatRequest) -> int:
        own = counter_for("gpt-4o", load).bill(request.prompt).total
        self.bodies.append(request.body)
        self.bills.append(round(self.rate * own) + self.preamble)
        return self.bills[-1]

    @property
    def over(self) -> list[int]:
        """Bills that the window has no room for beside an answer."""
        return [bill for bill in self.bills if bill > WINDOW - RESERVE]


@contextmanager
def billing(biller: Biller) -> Iterator[Biller]:
    app = Embedded(Tokens(biller.prompt, load("o200k_base").count), lambda *_: Said("Yes."), window=1_000_000)
    with listening(plain(app)) as base:
        biller.base = f"{base}/v1"
        yield biller


@dataclass
class Asked:
    """One answer: what was said of the count, and what was billed."""

    answer: Answer
    counted: int
    billed: int

    @property
    def error(self) -> float:
        return abs(self.counted - self.billed) / self.billed


def steady(seen: Sequence[Asked]) -> list[Asked]:
    """Those whose prompt is the one before, grown: the first after a deep cut is made of other things, and its count is
    less sure."""
    return [one for before, one in pairwise(seen) if one.billed >= before.billed]


@dataclass
class Front:
    proxy: Proxy
    planner: Planning
    biller: Biller

    async def ask(self, messages: list[Message], model: str = MODEL, **more: Any) -> Asked:
        """Send, and let what it taught be learned."""
        answer = await self.proxy.chat({"model": model, "messages": messages, **more})
        await self.planner.bills.calibrating.settle()
        told = re.search(r"\bsent=(\d+)", answer.header("edgewise-budget") or "")
        assert told is not None, "the planner failed"
        return Asked(answer, int(told[1]), self.biller.bills[-1])

    def sample(self, name: str, **labels: str) -> float | None:
        return self.proxy.app.state.registry.get_sample_value(name, labels)


@asynccontextmanager
async def fronted(biller: Biller, **more: Any) -> AsyncIterator[Front]:
    given: dict[str, Any] = {"upstream": biller.base, "port": 0, "window": WINDOW, **more}
    planner = planner_of(Settings(**given))
    async with running(biller.base, planner=planner, window=WINDOW) as proxy:
        yield Front(proxy, planner, biller)


def talk(rounds: int) -> list[Message]:
    """A loop of one user message; each round is about 600 tokens by OpenAI's rules."""
    loop = [message for number in range(rounds) for message in round_of(number, lines(40, f"pump {number}"))]
    return [system("You run the pumps."), user("Find the fault."), *loop]
