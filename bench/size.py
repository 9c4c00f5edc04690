"""What Edgewise weighs: the wheel, the install, the time until it is ready, the memory it then holds.

Method. The wheel in dist/ and requirements.lock are installed into a new virtual environment without pip; its
site-packages are summed, byte code included. `edgewise serve` starts from there on a free port of loopback, before an
upstream that answers at once; the time from the start of the process to the first 200 of /readyz counts. Memory is the
resident set of the process (/proc/PID/status), after twenty requests of a model with o200k_base, then twenty more of
one with cl100k_base. Linux only.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOOPBACK = "127.0.0.1"
ANSWER = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Yes."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    }
).encode()

BARS = {  # figure: (bar, unit)
    "wheel": (3.0, "MB"),
    "install": (120.0, "MB"),
    "ready": (2.0, "s"),
    "memory with o200k_base": (180.0, "MB"),
    "memory with both encodings": (215.0, "MB"),
}


class Upstream(BaseHTTPRequestHandler):
    """Answers every chat request with the same sentence, and knows no other path."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_error(404)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        if self.path != "/v1/chat/completions":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: the figures are the output."""


class Upstreams(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that is reset when the proxy stops is how each run ends; any other error is shown."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # typeshed's private union of sockets


@contextmanager
def upstream() -> Iterator[str]:
    server = Upstreams((LOOPBACK, 0), Upstream)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://{LOOPBACK}:{server.server_port}/v1"
    finally:
        server.shutdown()


def install(wheel: Path, venv: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(venv / "bin/python"), "install", "-qq", "--no-cache-dir"]
    subprocess.run([*pip, "--require-hashes", "-r", str(ROOT / "requirements.lock")], check=True)
    subprocess.run([*pip, "--no-deps", str(wheel)], check=True)


def megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def resident(pid: int) -> float:
    """The resident set in MB."""
    status = Path(f"/proc/{pid}/status").read_text("utf-8")
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024 / 1e6


def wait_ready(base: str, server: subprocess.Popen[bytes]) -> None:
    """Returns at the first 200 of /readyz. Raises RuntimeError when the server ends, or after 30 s."""
    for _ in range(3000):
        if server.poll() is not None:
            raise RuntimeError(f"edgewise serve ended with {server.returncode}")
        try:
            urllib.request.urlopen(f"{base}/readyz", timeout=2).close()
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.01)
        else:
            return
    raise RuntimeError("edgewise serve was not ready within 30 s")


def ask(base: str, model: str) -> None:
    question = {"model": model, "messages": [{"role": "user", "content": "Is this thing on? " * 200}]}
    headers = {"content-type": "application/json", "authorization": "Bearer sk-made-up"}
    for _ in range(20):
        request = urllib.request.Request(f"{base}/v1/chat/completions", json.dumps(question).encode(), headers)
        urllib.request.urlopen(request, timeout=30).close()


def serve(edgewise: Path, upstream_url: str) -> dict[str, float]:
    port = free_port()
    base = f"http://{LOOPBACK}:{port}"
    command = [str(edgewise), "serve", "--upstream", upstream_url, "--host", LOOPBACK, "--port", str(port)]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("EDGEWISE_")}
    started = time.monotonic()
    with subprocess.Popen(command, env=clean, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_ready(base, server)
            figures = {"ready": time.monotonic() - started}
            ask(base, "gpt-4o")
            figures["memory with o200k_base"] = resident(server.pid)
            ask(base, "gpt-4")
            figures["memory with both encodings"] = resident(server.pid)
        finally:
            server.terminate()
    return figures


def main() -> int:
    print(__doc__)
    (wheel,) = (ROOT / "dist").glob("edgewise-*.whl")
    figures = {"wheel": wheel.stat().st_size / 1e6}
    with tempfile.TemporaryDirectory() as folder, upstream() as upstream_url:
        install(wheel, Path(folder))
        figures["install"] = megabytes(Path(folder) / "lib")
        figures |= serve(Path(folder) / "bin/edgewise", upstream_url)
    for name, figure in figures.items():
        bar, unit = BARS[name]
        print(f"{name:<28} {figure:8.2f} {unit:<3} (at most {bar:g}) {'ok' if figure <= bar else 'OVER'}")
    return 1 if any(figure > BARS[name][0] for name, figure in figures.items()) else 0


if __name__ == "__main__":
    sys.exit(main())
