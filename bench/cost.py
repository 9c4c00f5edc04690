"""What Edgewise costs, beside nginx on the same way in the same run (method: bench/README.md).

`python bench/cost.py [--quick] [--alone] [--only NAME ...]`; NAME is one of cpu, latency, stall. Fails when a bar is
missed.
"""

import argparse
import asyncio
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import nginx
import uvloop
from load import Conversation, Wire, cpu, embedding, flood, grown, http, small

HERE = Path(__file__).resolve().parent
EDGEWISE = Path(sys.executable).parent / "edgewise"
US, MS = 1e6, 1e3

Requests = Callable[[random.Random, int], Sequence[bytes]]


@dataclass(frozen=True)
class Proxy:
    name: str
    port: int
    pid: int


@dataclass(frozen=True)
class Stage:
    """What runs: ports of the upstream and of both proxies."""

    upstream: int
    nginx: Proxy
    edgewise: Proxy
    rounds: int
    scale: float  # of the number of requests
    chance: random.Random


@dataclass(frozen=True)
class Figure:
    """A figure against its bar; `beside` is nginx's, where there is one, `bar` None for what is only told."""

    name: str
    value: float
    unit: str
    bar: float | None = None
    beside: float | None = None
    most: float | None = None  # times nginx

    @property
    def ok(self) -> bool:
        within = self.bar is None or self.value <= self.bar
        return within and (self.most is None or self.beside is None or self.value <= self.most * self.beside)

    def __str__(self) -> str:
        bar = [f"<= {self.bar:g} {self.unit}"] if self.bar is not None else []
        bar += [f"<= {self.most:g} x"] if self.most is not None else []
        beside = f"{self.beside:9.1f} {self.value / self.beside:6.2f} x" if self.beside else " " * 18
        verdict = ("ok" if self.ok else "OVER") if bar else ""
        return f"{self.name:<44} {self.value:9.1f} {self.unit:<3} {beside}  {' and '.join(bar):<22} {verdict}"


# -- processor time


async def _cost(proxy: Proxy, requests: Sequence[bytes], per: int = 1) -> float:
    """CPU of the proxy, in µs a request (or a `per`-th of one)."""
    before = cpu(proxy.pid)
    await flood(proxy.port, requests)
    return (cpu(proxy.pid) - before) * US / len(requests) / per


async def _costs(stage: Stage, make: Requests, number: int, *, warm: bool = False) -> tuple[float, float]:
    """Medians of the rounds, of Edgewise and nginx, one after the other in each round."""
    ours, theirs = [], []
    for _ in range(stage.rounds):
        requests = make(stage.chance, max(16, int(number * stage.scale)))
        if warm:
            await flood(stage.edgewise.port, requests[:1], 1)
        theirs.append(await _cost(stage.nginx, requests))
        ours.append(await _cost(stage.edgewise, requests))
    return median(ours), median(theirs)


def _embeddings(_: random.Random, number: int) -> list[bytes]:
    return [embedding()] * number


def _chats(chance: random.Random, number: int) -> list[bytes]:
    return [http("/chat/completions", small(chance)) for _ in range(number)]


def _resent(chance: random.Random, number: int) -> list[bytes]:
    return [Conversation(chance, 400_000).request] * number


def _growing(chance: random.Random, number: int) -> list[bytes]:
    return list(grown(chance, 400_000 - 3_600 * number // 2, number))


async def _chunk(proxy: Proxy, chance: random.Random, scale: float) -> tuple[float, float]:
    """CPU an event in µs: the difference of long and short streams; and the reads an event came in."""
    spent, reads, lengths = [], [], (100, max(300, int(1500 * scale)))
    for chunks in lengths:
        body = small(chance, stream=True)
        requests = [http("/chat/completions", body, b"x-chunks: %d" % chunks)] * 8
        before = cpu(proxy.pid)
        reads.append(await flood(proxy.port, requests))
        spent.append(cpu(proxy.pid) - before)
    events = 8 * (lengths[1] - lengths[0])
    return (spent[1] - spent[0]) * US / events, (reads[1] - reads[0]) / events


async def _stream(stage: Stage) -> list[Figure]:
    ours, theirs = [], []
    for _ in range(stage.rounds):
        theirs.append(await _chunk(stage.nginx, stage.chance, stage.scale))
        ours.append(await _chunk(stage.edgewise, stage.chance, stage.scale))
    reads = median(one for _, one in ours)
    cost, beside = median(one for one, _ in ours), median(one for one, _ in theirs)
    return [Figure(f"CPU, an event of a stream ({reads:.2f} reads each)", cost, "µs", None, beside, 2.5)]


async def processor(stage: Stage) -> list[Figure]:
    ours, theirs = await _costs(stage, _embeddings, 2000)
    figures = [Figure("CPU, pass-through of 1 KB", ours, "µs", 150, theirs, 10)]
    ours, theirs = await _costs(stage, _chats, 2000)
    figures.append(Figure("CPU, chat of 1 KB, question new", ours, "µs", 400, theirs))
    figures += await _stream(stage)
    ours, theirs = await _costs(stage, _resent, 200, warm=True)
    figures.append(Figure("CPU, chat of 400 KB, sent again", ours / 1e3, "ms", 2.5, theirs / 1e3))
    ours, theirs = await _costs(stage, _growing, 60, warm=True)
    figures.append(Figure("CPU, chat of 400 KB, a round of 3.6 KB new", ours / 1e3, "ms", 2.5, theirs / 1e3))
    return figures


# -- latency


async def _added(stage: Stage, requests: Sequence[bytes]) -> tuple[float, float]:
    """Median latency through Edgewise and direct, ms; each request goes both ways, one at a time."""
    direct, through = await Wire.to(stage.upstream), await Wire.to(stage.edgewise.port)
    times = [(await direct.ask(request), await through.ask(request)) for request in requests]
    direct.close()
    through.close()
    return median(one for _, one in times) * MS, median(one for one, _ in times) * MS


async def latency(stage: Stage) -> list[Figure]:
    figures = []
    number = max(20, int(200 * stage.scale))
    for name, size, repeat, bar in (
        ("10k tokens warm", SIZE_10K, number, 2),
        ("100k tokens warm", SIZE_100K, number // 2, 6),
        ("100k tokens cold", SIZE_100K, 1, 50),
    ):
        if repeat == 1:
            requests = [Conversation(stage.chance, size).request for _ in range(max(10, number // 6))]
        else:
            requests = [Conversation(stage.chance, size).request] * repeat
            await flood(stage.edgewise.port, requests[:1], 1)
        through, direct = await _added(stage, requests)
        figures.append(Figure(f"added latency, {name} (direct {direct:.2f})", through - direct, "ms", bar))
    return figures


SIZE_10K, SIZE_100K = 46_000, 445_000  # bytes of a conversation of so many tokens


async def _stalled(stage: Stage, port: int) -> float:
    """The worst of the small requests that are sent one after another while six cold ones run, ms."""
    large = [Conversation(stage.chance, SIZE_100K).request for _ in range(6)]
    wire = await Wire.to(port)
    await wire.ask(http("/chat/completions", small(stage.chance)))
    running = asyncio.create_task(flood(port, large, 6))
    worst = 0.0
    while not running.done():
        worst = max(worst, await wire.ask(http("/chat/completions", small(stage.chance))))
    await running
    wire.close()
    return worst * MS


async def stall(stage: Stage) -> list[Figure]:
    runs = [
        (await _stalled(stage, stage.edgewise.port), await _stalled(stage, stage.nginx.port))
        for _ in range(3 * stage.rounds)
    ]
    ours, theirs = [one for one, _ in runs], [one for _, one in runs]
    name = f"worst small request, median of {len(runs)} runs"
    return [
        Figure(name, median(ours), "ms", 50, median(theirs)),
        Figure("worst small request of all runs", max(ours), "ms", None, max(theirs)),
    ]


# -- the stage


@contextmanager
def upstream_running() -> Iterator[int]:
    """The scripted upstream; its port."""
    with subprocess.Popen([sys.executable, HERE / "upstream.py"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.terminate()


@contextmanager
def edgewise_running(upstream: int, *, planner: bool = True, **settings: str) -> Iterator[Proxy]:
    """`edgewise serve` in front of that port; `settings` by the end of their names."""
    base = f"http://127.0.0.1:{upstream}/v1"
    command = [str(EDGEWISE), "serve", "--upstream", base, "--port", "0"]
    if not planner:
        command = [sys.executable, str(HERE / "unplanned.py")]
        settings["UPSTREAMS"] = json.dumps({"gpt-*": base})  # other models are refused once the request was read
    clean = {name: value for name, value in os.environ.items() if not name.startswith("EDGEWISE_")}
    clean |= {f"EDGEWISE_{name}": value for name, value in settings.items()}
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(command, env=clean, stdout=subprocess.PIPE, stderr=log, text=True) as server,
    ):
        assert server.stdout is not None
        try:
            found = re.search(r"http://[^:]+:(\d+)", server.stdout.readline())
            assert found is not None
            yield Proxy("edgewise", int(found.group(1)), server.pid)
        finally:
            server.terminate()


PARTS = {"cpu": processor, "latency": latency, "stall": stall}


async def measure(stage: Stage, parts: Sequence[str]) -> list[Figure]:
    await _costs(stage, _chats, 500)  # the encoding is loaded, the pools are filled
    await asyncio.sleep(1)
    before = cpu(stage.edgewise.pid)
    await asyncio.sleep(1)
    idle = (cpu(stage.edgewise.pid) - before) * MS
    figures = [Figure("CPU of Edgewise when idle, in a second", idle, "ms")]
    for part in parts:
        figures += await PARTS[part](stage)
    return figures


def method() -> str:
    """What README.md says of this script."""
    _, _, rest = (HERE / "README.md").read_text("utf-8").partition("## Cost\n")
    return rest.partition("\n## ")[0].strip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the requests, three rounds")
    parser.add_argument("--alone", action="store_true", help="before all other work of the machine (needs root)")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="NAME")
    options = parser.parse_args()
    print(__doc__)
    print(method())
    if options.alone:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))  # what is started from here inherits it
    with ExitStack() as stack:
        upstream = stack.enter_context(upstream_running())
        port, worker = stack.enter_context(nginx.running(upstream))
        edgewise = stack.enter_context(edgewise_running(upstream))
        stage = Stage(
            upstream=upstream,
            nginx=Proxy("nginx", port, worker),
            edgewise=edgewise,
            rounds=3 if options.quick else 7,
            scale=0.1 if options.quick else 1.0,
            chance=random.Random(time.time_ns()),
        )
        figures = uvloop.run(measure(stage, options.only))
    print(f"{'':<44} {'Edgewise':>13} {'nginx':>9} {'ratio':>7}   bar")
    for figure in figures:
        print(figure)
    return 0 if all(figure.ok for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
