"""An ASGI app on a port of 127.0.0.1, in a thread of this process."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import uvicorn

from proxy.exchange import ASGIApp

STOP = 5.0  # seconds that requests may go on after the end
POLL = 0.005  # seconds between looks at whether the server has started


def plain(app: ASGIApp) -> uvicorn.Config:
    """For an app of our own that needs no lifespan."""
    return uvicorn.Config(app, log_config=None, log_level="critical", access_log=False, lifespan="off", ws="none")


@contextmanager
def listening(config: uvicorn.Config) -> Iterator[str]:
    """Serve until the block ends. Yields the address, as `http://127.0.0.1:PORT`; the system chooses the port.

    Raises RuntimeError when the app does not start.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(config)
        thread = threading.Thread(target=_run, args=(server, listener), daemon=True, name="edgewise-loopback")
        thread.start()
        try:
            while not server.started:
                if not thread.is_alive():
                    raise RuntimeError("the server on loopback did not start")
                time.sleep(POLL)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(STOP)


def _run(server: uvicorn.Server, listener: socket.socket) -> None:
    with suppress(SystemExit):  # how uvicorn leaves when an app does not start; the other thread sees it
        server.run([listener])
