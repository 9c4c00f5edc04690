"""Programs that the end-to-end scripts start on loopback, and stop by their pid."""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

START = 60  # seconds for a program to answer: the machine may be busy
STOP = 10  # seconds for it to go

_LISTENS = re.compile(r"Edgewise listens on (http://\S+)")


class NotAvailable(Exception):
    """Something that the end-to-end scripts need is not here and cannot be fetched."""


@contextmanager
def running(command: list[Any], log: Path, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A program whose output goes to `log`; stopped, by its pid, at the end."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen([str(word) for word in command], stdout=output, stderr=output, env=env)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(STOP)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for(url: str, process: subprocess.Popen[bytes], seconds: float = START) -> None:
    """Returns when `url` answers with 200. Raises NotAvailable when the process ends, or after `seconds`."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
        else:
            return
    raise NotAvailable(f"{url} does not answer: {process.args!r}")


@contextmanager
def edgewise(upstream: str, log: Path, *, window: int | str) -> Iterator[str]:
    """Root URL of a real `edgewise serve` in front of `upstream`, with no other setting than its window."""
    program = Path(sys.executable).parent / "edgewise"
    command = [program, "serve", "--upstream", upstream, "--port", 0, "--window", window]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("EDGEWISE_")}
    with running(command, log, clean | {"PYTHONUNBUFFERED": "1"}) as process:
        root = _address(process, log)
        wait_for(f"{root}/readyz", process)
        yield root


def logged(log: Path) -> list[dict[str, Any]]:
    """The requests that an Edgewise wrote into its log, one object each, in their order."""
    lines = log.read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines if line.startswith('{"id"')]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    until = time.monotonic() + START
    while time.monotonic() < until and process.poll() is None:
        if found := _LISTENS.search(log.read_text("utf-8")):
            return found.group(1)
        time.sleep(0.05)
    raise NotAvailable(f"edgewise did not start; see {log}")
