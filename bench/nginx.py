"""nginx as the yardstick: the same way from client to upstream, by a proxy written in C.

Debian's package is unpacked, not installed, so nothing of it runs but what is started here, and no root is needed. One
worker, upstream connections kept alive, no buffering of responses, no access log.
"""

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CACHE = Path(__file__).resolve().parent.parent / "build" / "nginx"

CONFIG = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  client_max_body_size 64m;
  client_body_buffer_size 2m;
  keepalive_requests 1000000;
  upstream model {{ server 127.0.0.1:{upstream}; keepalive 64; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://model;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }}
  }}
}}
"""


def binary() -> Path:
    """The nginx of this machine, else Debian's, unpacked under build/. Raises CalledProcessError."""
    installed = shutil.which("nginx")
    if installed:
        return Path(installed)
    found = CACHE / "usr/sbin/nginx"
    if not found.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        fetch = ["apt-get", "download", "nginx"]
        if subprocess.run(fetch, check=False, cwd=CACHE, capture_output=True).returncode:
            subprocess.run(["apt-get", "update", "-qq"], check=True)  # the lists may be missing or out of date
            subprocess.run(fetch, cwd=CACHE, check=True, capture_output=True)
        (package,) = CACHE.glob("nginx_*.deb")
        subprocess.run(["dpkg-deb", "-x", package, CACHE], check=True)
    return found


@contextmanager
def running(upstream: int) -> Iterator[tuple[int, int]]:
    """nginx before the upstream at port `upstream` of loopback: its port, and the pid of its worker."""
    port = _free_port()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "nginx.conf"
        config.write_text(CONFIG.format(folder=folder, upstream=upstream, port=port), "utf-8")
        command = [str(binary()), "-p", folder, "-e", f"{folder}/error.log", "-c", str(config)]
        with subprocess.Popen(command) as master:
            try:
                yield port, _worker(master, port, Path(folder) / "error.log")
            finally:
                master.terminate()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _worker(master: subprocess.Popen[bytes], port: int, log: Path) -> int:
    for _ in range(500):
        children = Path(f"/proc/{master.pid}/task/{master.pid}/children").read_text("utf-8").split()
        with socket.socket() as probe:
            if children and probe.connect_ex(("127.0.0.1", port)) == 0:
                return int(children[0])
        if master.poll() is not None:
            break
        time.sleep(0.01)
    raise RuntimeError(f"nginx did not start: {log.read_text('utf-8')}")
