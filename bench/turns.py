"""Bar 5 of issue 4: what a long conversation costs, turn by turn (method: bench/README.md).

`python bench/turns.py [--quick] [--alone] [--turns N]`. Fails when turn 1,000 costs more than 1.5 x turn 10 beyond the
pass over its bytes, or when the ledger grows by more than what is new.
"""

import argparse
import asyncio
import json
import os
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median

import uvloop
from cost import Proxy, edgewise_running, upstream_running
from load import MODEL, Wire, cpu, http, prose, small, tool

HERE = Path(__file__).resolve().parent
US = 1e6
CHECKPOINTS = (10, 100, 300, 1000)  # turns
SETTLED = 0.06  # seconds after a turn until all that it brought about was done: log lines wait up to 0.05
NOBODY, SMALL = b"nobody", MODEL.encode()  # models: one that is forwarded nowhere, and that of small requests
MOST = 1.5  # times turn 10
GROWTH = 2.5  # bytes of the ledger for each byte that is new: a result is stored when a stub replaces it, and its round
LARGE = 100_000  # characters of a result of 17,000 tokens
CASES = (  # name, model, large results
    ("nothing is ever decided (a window of 1 M)", "gpt-4.1", 0),
    ("after an epoch (a window of 128k, which the results of the first turns fill)", "gpt-4o", 8),
)

# Whether memory goes back to the system between two requests, to be cleared again for the next, depends on what else
# lies in the heap: a third of what a long body costs, for one of two proxies. Here it stays with both.
KEPT = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}

_serial = count()


class Talk:
    """A conversation of turns of about 450 tokens: a question, a call, its result, an answer. The results of the first
    `large` turns have 17,000 tokens."""

    def __init__(self, chance: random.Random, model: str, large: int) -> None:
        self._chance, self.model, self._large = chance, model, large
        self._tools = [tool(f"tool_{number}") for number in range(8)]
        self._messages: list[str] = []
        self._say({"role": "system", "content": prose(chance, 1200)})

    def _say(self, message: dict[str, object]) -> None:
        self._messages.append(json.dumps(message))

    @property
    def messages(self) -> int:
        return len(self._messages)

    @property
    def body(self) -> bytes:
        head = json.dumps({"model": self.model, "tools": self._tools})[:-1]
        return f'{head}, "messages": [{", ".join(self._messages)}]}}'.encode()

    def turn(self) -> Sequence[bytes]:
        """The bodies of the turn's two requests."""
        chance, call_id = self._chance, f"call_{next(_serial)}"
        self._say({"role": "user", "content": prose(chance, 200)})
        asked = self.body
        arguments = json.dumps({"query": prose(chance, 60), "limit": 20})
        function = {"name": f"tool_{chance.randrange(8)}", "arguments": arguments}
        calls = [{"id": call_id, "type": "function", "function": function}]
        self._say({"role": "assistant", "content": None, "tool_calls": calls})
        self._large -= 1
        result = prose(chance, 1100 if self._large < 0 else LARGE)
        self._say({"role": "tool", "tool_call_id": call_id, "content": result})
        told = self.body
        self._say({"role": "assistant", "content": prose(chance, 400)})
        return asked, told


@dataclass
class Point:
    """A few turns: their number, and of each request CPU in µs and bytes."""

    turn: int
    messages: int = 0
    size: list[int] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)  # bytes too
    spent: list[float] = field(default_factory=list)  # by the proxy
    bytes: list[float] = field(
        default_factory=list
    )  # to read, open and digest what came, and to write what is forwarded
    kept: float = 0.0  # bytes by which the ledger grew, a turn

    @property
    def beyond(self) -> float:
        return median(self.spent) - median(self.bytes)

    def __str__(self) -> str:
        parts = (median(self.size) / 1e3, median(self.sent) / 1e3, median(self.spent), median(self.bytes), self.beyond)
        return f"{self.turn:6} {self.messages:9} " + " ".join(f"{part:10.0f}" for part in parts) + f" {self.kept:11.0f}"


COLUMNS = ("KB", "KB sent", "µs", "of bytes", "beyond")
HEAD = f"{'turn':>6} {'messages':>9} {' '.join([f'{name:>10}' for name in COLUMNS])} {'ledger/turn':>11}"


@dataclass(frozen=True)
class Way:
    """A proxy, and a connection to it."""

    proxy: Proxy
    wire: Wire

    async def cost(self, requests: Sequence[bytes]) -> float:
        """CPU of the proxy, µs a request; one after another, and all that follows them."""
        before = cpu(self.proxy.pid)
        for request in requests:
            with suppress(RuntimeError):  # the proxy forwards nothing of this model
                await self.wire.ask(request)
        await asyncio.sleep(SETTLED)
        return (cpu(self.proxy.pid) - before) * US / max(1, len(requests))

    async def bytes(self, bodies: Sequence[bytes], sent: int, model: str, chance: random.Random) -> float:
        """What it costs to read bodies of `model`, and to forward so much of each, beyond a small request; by a proxy
        without planner."""
        unread = [_request(body.replace(model.encode(), NOBODY, 1)) for body in bodies]
        least, none = small(chance), small(chance).replace(SMALL, NOBODY, 1)
        read = await self.cost(unread) - await self.cost([_request(none)] * 2)
        both = await self.cost([_request(body) for body in bodies]) - await self.cost([_request(least)] * 2)
        return read + max(0.0, both - read) * sent / len(bodies[-1])


@dataclass(frozen=True)
class Stage:
    """`unplanned` is the same proxy without its planner."""

    edgewise: Way
    unplanned: Proxy
    ledger: Path
    chance: random.Random

    async def send(self, talk: Talk, turns: int) -> None:
        for _ in range(turns):
            for body in talk.turn():
                await self.edgewise.wire.ask(_request(body))

    def kept(self) -> int:
        """Bytes of all entries of the ledger."""
        with closing(sqlite3.connect(f"file:{self.ledger}/ledger.db?mode=ro", uri=True)) as ledger:
            return int(ledger.execute("SELECT coalesce(sum(size), 0) FROM entries").fetchone()[0])


def _request(body: bytes) -> bytes:
    return http("/chat/completions", body)


async def _measured(stage: Stage, talk: Talk, point: Point, turns: int) -> None:
    """`turns` turns more, each measured by itself."""
    unplanned = Way(stage.unplanned, await Wire.to(stage.unplanned.port))
    await unplanned.bytes([talk.body], 0, talk.model, stage.chance)
    for _ in range(turns):
        bodies = talk.turn()
        point.spent.append(await stage.edgewise.cost([_request(body) for body in bodies]))
        point.sent.append(stage.edgewise.wire.forwarded)
        point.size.append(len(bodies[-1]))
        point.bytes.append(await unplanned.bytes(bodies, point.sent[-1], talk.model, stage.chance))
    unplanned.wire.close()
    point.messages = talk.messages


async def _short(stage: Stage, model: str, large: int, times: int) -> Point:
    """Turn 10 of conversations that are new."""
    point = Point(CHECKPOINTS[0])
    for _ in range(times):
        talk = Talk(stage.chance, model, large)
        await stage.send(talk, CHECKPOINTS[0] - 2)
        before = stage.kept()
        await _measured(stage, talk, point, 3)
        point.kept = (stage.kept() - before) / 3
    return point


async def _long(stage: Stage, talk: Talk, checkpoints: Sequence[int], turns: int) -> tuple[list[Point], list[float]]:
    """One conversation; its checkpoints, and for each stretch between them what the ledger grew by, for each byte that
    is new."""
    done = 0
    points, growth = list[Point](), list[float]()
    for turn in checkpoints:
        size, kept = len(talk.body), stage.kept()
        await stage.send(talk, turn - turns // 2 - done)
        done = turn - turns // 2
        point = Point(turn)
        await _measured(stage, talk, point, turns)
        done += turns
        grown = stage.kept() - kept
        point.kept = grown / max(1, done - (points[-1].turn if points else 0))
        growth.append(grown / (len(talk.body) - size))
        points.append(point)
        print(point, flush=True)
    return points, growth


async def measure(stage: Stage, options: argparse.Namespace) -> bool:
    ok, turn_10 = True, 0.0
    for name, model, large in CASES:
        print(f"\n{name}\n{HEAD}")
        checkpoints = [turn for turn in CHECKPOINTS[1:] if turn <= options.turns]
        first = await _short(stage, model, large, 3 if options.quick else 10)
        print(first, flush=True)
        talk, turns = Talk(stage.chance, model, large), 4 if options.quick else 30
        points, growth = await _long(stage, talk, checkpoints, turns)
        last, turn_10 = points[-1], turn_10 or first.beyond
        bars = [
            (f"turn {last.turn:,} costs beyond its bytes, x turn {first.turn}", last.beyond / first.beyond, MOST),
            ("... x turn 10 where nothing is decided", last.beyond / turn_10, None),
            ("the ledger grows by at most, for each byte that is new", max(growth), GROWTH),
        ]
        for text, value, most in bars:
            verdict = "" if most is None else f"<= {most}  {'ok' if value <= most else 'OVER'}"
            print(f"{text:<60} {value:6.2f}  {verdict}")
            ok = ok and (most is None or value <= most)
    return ok


def method() -> str:
    """What README.md says of this script."""
    _, _, rest = (HERE / "README.md").read_text("utf-8").partition("## Turns\n")
    return rest.partition("\n## ")[0].strip() + "\n"


async def _run(proxies: Sequence[Proxy], ledger: Path, options: argparse.Namespace) -> bool:
    ways = [Way(proxy, await Wire.to(proxy.port)) for proxy in proxies]
    for way in ways:
        for _ in range(50):  # the encoding is loaded, the code is warm
            await way.wire.ask(_request(small(random.Random(0))))
        await way.cost([])  # what is left of that
        print(f"idle: {await way.cost([]):.0f} µs in {SETTLED} s")
    ways[1].wire.close()
    ok = await measure(Stage(ways[0], proxies[1], ledger, random.Random(time.time_ns())), options)
    ways[0].wire.close()
    return ok


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer turns are measured")
    parser.add_argument("--turns", type=int, default=CHECKPOINTS[-1], help="where the conversation ends")
    parser.add_argument("--alone", action="store_true", help="before all other work of the machine (needs root)")
    options = parser.parse_args()
    print(__doc__)
    print(method())
    if options.alone:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))  # what is started from here inherits it
    os.environ |= KEPT
    with ExitStack() as stack:
        ledger = stack.enter_context(tempfile.TemporaryDirectory())
        upstream = stack.enter_context(upstream_running())
        planned = stack.enter_context(edgewise_running(upstream, LEDGER=ledger))
        unplanned = stack.enter_context(edgewise_running(upstream, planner=False))
        return 0 if uvloop.run(_run((planned, unplanned), Path(ledger), options)) else 1


if __name__ == "__main__":
    sys.exit(main())
