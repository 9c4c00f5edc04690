"""What every test may rely on: nothing is written outside its own directories."""

import os
import shutil
import socket
from collections.abc import Iterator
from tempfile import mkdtemp
from urllib.parse import urlsplit

import pytest
from support.valkeys import serving


def pytest_configure() -> None:
    """Before any module notes the environment for the programs it starts: the ledger's default is the user's own.

    Inside this process each app has a ledger of its own, so that no test finds what another decided."""
    os.environ["XDG_STATE_HOME"] = mkdtemp(prefix="edgewise-tests-")
    os.environ["EDGEWISE_LEDGER"] = "memory"


def pytest_unconfigure() -> None:
    shutil.rmtree(os.environ.pop("XDG_STATE_HOME"), ignore_errors=True)


@pytest.fixture(scope="session")
def valkey_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("valkey")) as url:
        yield url


@pytest.fixture
def valkey_url(valkey_server: str) -> str:
    """Of a server that holds nothing."""
    where = urlsplit(valkey_server)
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=10) as wire:
        wire.sendall(b"FLUSHALL\r\n")
        assert wire.recv(16) == b"+OK\r\n"
    return valkey_server
