"""Real clients, unmodified, through a real `edgewise serve` in front of the kit's scripted upstream.

    python e2e/clients.py [client...]

Each client runs its smoke script twice: at a generous window, where nothing may be edited, and at a tight one, found
for it from what it sent. Its largest request is over the limit there, none is refused, and the scripted upstream, which
knows its next step by counting the messages of the turn, still sees where it is: of the windows like that, from the
largest down, the middle. To pass twice, both scripts succeed, the generous run edits nothing, the tight one edits at
least one request and refuses none. Exit code 1 when fewer than eight clients pass twice, 2 where the kit is absent.
"""

import json
import os
import shutil
import subprocess
import sys
from bisect import bisect_left
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from runpy import run_path
from typing import Any

from processes import NotAvailable, edgewise, free_port, logged, running, wait_for
from server import SHARED, WORK

from policies.jsonraw import loads
from policies.request import ChatRequest
from proxy.engine import Engine
from proxy.policyfile import load
from proxy.settings import Settings

KIT = SHARED / "kit"
HOME = WORK / "clients"
NEEDED = 8  # clients that pass twice
GENEROUS = 131_072  # tokens
TIMEOUT = 300  # seconds for one smoke script; the kit's own limit is 200
CLIENTS = (
    "openai-python", "openai-node", "ai-sdk", "langchain-langgraph", "litellm", "llama-index", "openai-agents",
    "pydantic-ai", "smolagents", "qwen-agent", "opencode", "aider",
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One smoke script at one window: what the kit's runner said, and what the proxy logged of its requests."""

    window: int
    succeeded: bool
    said: str
    requests: list[dict[str, Any]]
    bodies: list[bytes]  # as they reached the upstream

    def count(self, outcome: str) -> int:
        return sum(request["outcome"] == outcome for request in self.requests)

    @property
    def edited(self) -> int:
        return self.count("edited")

    @property
    def clean(self) -> bool:
        return self.succeeded and bool(self.requests) and not self.count("refused")

    @property
    def figures(self) -> str:
        return f"{self.window:8}{len(self.requests):5}{self.edited:8}  {'ok  ' if self.clean else 'FAIL'}"


def run(client: str, window: int) -> Run:
    """The kit's own runner, for one client, with everything else started for it alone."""
    home = WORK / "runs" / client / str(window)
    shutil.rmtree(home, ignore_errors=True)
    port = free_port()
    stub = [sys.executable, KIT / "stub.py", "--port", port, "--record", home / "recorded"]
    with running(stub, home / "stub.log") as upstream:
        base = f"http://127.0.0.1:{port}"
        wait_for(f"{base}/health", upstream)
        with edgewise(f"{base}/v1", home / "edgewise.log", window=window) as root:
            where = {"STUB": base, "BASE_URL": f"{root}/v1", "WORK": str(HOME)}
            code, said = _bash("run_all.sh", client, where)
    return Run(
        window, code == 0, said.partition("\n")[0], logged(home / "edgewise.log"), _recorded(home / "recorded" / client)
    )


def tight(bodies: list[bytes]) -> int | None:
    """A window at which the largest request is over its limit, and all fit with what the upstream's script needs."""
    engine, decide = Engine(Settings.load(), load("balanced")), run_path(str(KIT / "stub.py"))["decide"]
    requests = [ChatRequest.parse(body) for body in bodies]
    largest = max(requests, key=lambda request: engine.count(request, GENEROUS).received_total)

    def fits_whole(window: int) -> bool:
        made = engine.count(largest, window)
        return made.budget.limit is not None and made.received_total <= made.budget.limit

    def is_workable(window: int) -> bool:
        plans = [(request, engine.plan_sync(request, window)) for request in requests]
        return all(
            made.refusal is None and decide(loads(request.forward(made.prompt))) == decide(loads(request.body))
            for request, made in plans
        )

    highest = bisect_left(range(GENEROUS), True, key=fits_whole) - 1
    windows = list(takewhile(is_workable, (highest * share // 200 for share in range(200, 0, -1))))
    return windows[len(windows) // 2] if windows else None


def setup(client: str) -> bool:
    """Install a client, once; whether it is there."""
    mark = HOME / f"{client}.installed"
    if not mark.exists():
        _, said = _bash("setup.sh", client, {"WORK": str(HOME)}, timeout=1200)
        if f"{client} ok" not in said.splitlines():
            print(f"{client}: not installed: {said.strip()[-300:]}", file=sys.stderr)
            return False
        mark.touch()
    return True


def compare(client: str) -> bool:
    """Prints the line of a client; whether it passes twice."""
    generous = run(client, GENEROUS)
    line = f"{client:22}{generous.figures:30}"
    if not generous.clean or generous.edited:
        return _line(line, f"FAILED at the generous window: {generous.said}")
    window = tight(generous.bodies)
    if window is None:
        return _line(line, "FAILED: at no window is it edited and the script whole")
    narrow = run(client, window)
    levels = ", ".join(sorted({str(request["level"]) for request in narrow.requests if request["outcome"] == "edited"}))
    if not narrow.clean:
        return _line(f"{line}{narrow.figures}", f"FAILED: {narrow.count('refused')} refused; {narrow.said}")
    return _line(f"{line}{narrow.figures}  {levels}", "" if narrow.edited else "FAILED: nothing was edited")


def main(clients: list[str]) -> int:
    if not (KIT / "clients/run_all.sh").exists():
        print(f"{KIT}/clients is absent: set EDGEWISE_SHARED to the folder that holds kit/", file=sys.stderr)
        return 2
    HOME.mkdir(parents=True, exist_ok=True)
    print("method: the kit's smoke scripts through `edgewise serve`; window in tokens, requests seen, of them edited\n")
    print(f"{'client':22}{'generous':>8}{'seen':>5}{'edited':>8}{'':7}{'tight':>10}{'seen':>5}{'edited':>8}")
    try:
        passed = sum([compare(client) for client in clients or CLIENTS if setup(client)])
    except NotAvailable as error:
        print(error, file=sys.stderr)
        return 2
    wanted = min(NEEDED, len(clients or CLIENTS))
    print(f"\n{passed} of {len(clients or CLIENTS)} clients pass at both windows; at least {wanted} are needed")
    return 0 if passed >= wanted else 1


def _line(line: str, fault: str) -> bool:
    print(line, fault, flush=True)
    return not fault


def _recorded(folder: Path) -> list[bytes]:
    records = [json.loads(path.read_bytes()) for path in sorted(folder.glob("*.json"))]
    return [record["raw"].encode() for record in records if record["path"].endswith("/chat/completions")]


def _bash(script: str, client: str, env: dict[str, str], timeout: float = TIMEOUT) -> tuple[int, str]:
    command = ["bash", str(KIT / "clients" / script), client]
    done = subprocess.run(command, env=os.environ | env, timeout=timeout, check=False, capture_output=True)
    return done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace").strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
