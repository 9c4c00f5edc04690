"""`edgewise serve` as a user starts it."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support.plans import small

COMMAND = [sys.executable, "-m", "proxy.cli.main", "serve"]
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith(("EDGEWISE_", "PYTHON"))}


@contextmanager
def serving(*arguments: str) -> Iterator[tuple[list[str], subprocess.Popen[str]]]:
    """The lines it greets with, and the process."""
    with subprocess.Popen(
        [*COMMAND, "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    ) as running:
        assert running.stdout is not None
        greeting = [running.stdout.readline()]
        while greeting[-1].strip() and not greeting[-1].startswith(("  Look at", "  See")):
            greeting.append(running.stdout.readline())
            if greeting[-1].startswith("  Look at") and "embedded" in greeting[0]:
                greeting += [running.stdout.readline(), running.stdout.readline()]
        try:
            yield greeting, running
        finally:
            if running.poll() is None:
                running.send_signal(signal.SIGINT)
                running.wait(20)


def ask(address: str, *, key: str = "") -> tuple[Any, Any]:
    headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
    request = urllib.request.Request(f"{address}/v1/chat/completions", small().body, headers)
    with urllib.request.urlopen(request) as response:
        return json.load(response), response.headers


def test_with_no_upstream_the_printed_curl_line_answers_at_once() -> None:
    with serving() as (greeting, _):
        (line,) = [line for line in greeting if "curl" in line]
        words = shlex.split(line.partition("Try:")[2])
        url, body = words[2], words[words.index("-d") + 1]
        request = urllib.request.Request(url, body.encode(), {"content-type": "application/json"})
        with urllib.request.urlopen(request) as response:
            told = json.load(response)
    assert "not a model" in told["choices"][0]["message"]["content"]
    assert response.headers["edgewise-budget"].startswith(f"received={told['usage']['prompt_tokens']}, sent=")


def test_a_request_shows_in_headers_metrics_context_and_one_log_line_without_its_key() -> None:
    with serving("--window", "4000") as (greeting, running):
        address = re.findall(r"http://\S+", greeting[0])[0]
        _, headers = ask(address, key="sk-canary")
        with urllib.request.urlopen(f"{address}/metrics") as response:
            metrics = response.read().decode()
        name = headers["edgewise-request-id"]
        request = urllib.request.Request(
            f"{address}/context/requests/{name}", headers={"authorization": "Bearer sk-canary"}
        )
        with urllib.request.urlopen(request) as response:
            past = json.load(response)
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=20)
    (line,) = [line for line in errors.splitlines() if line.startswith("{")]
    assert json.loads(line)["id"] == past["id"] == name
    assert headers["edgewise-budget"] == "received=57, sent=57, limit=3457, level=none"
    assert 'edgewise_prompt_tokens_total{bucket="tools",policy="balanced",stage="sent"' in metrics
    assert "sk-canary" not in errors + metrics + json.dumps(past)
    assert running.returncode == 130


def test_with_an_upstream_it_says_where_it_forwards_to() -> None:
    with serving() as (first, _):
        base = re.findall(r"http://\S+", first[0])[0] + "/v1"
        with serving("--upstream", base, "--mode", "observe") as (greeting, _):
            told, headers = ask(re.findall(r"http://\S+", greeting[0])[0])
    assert f"forwards to {base} (policy balanced, mode observe)" in greeting[0]
    assert not any("curl" in line for line in greeting)
    assert "not a model" in told["choices"][0]["message"]["content"]
    assert ", planned=57, " in headers["edgewise-budget"]


def test_a_port_that_is_taken_is_code_2() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run([*COMMAND, "--port", port], capture_output=True, check=False, env=ENVIRONMENT)
    assert done.returncode == 2
    assert f"127.0.0.1:{port}: cannot be listened on; choose another --port or --host" in done.stderr.decode()
