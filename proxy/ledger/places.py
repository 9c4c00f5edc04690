"""Where a ledger may be, as the setting says it."""

import os
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, SecretStr

WORDS = ("memory", "off")
SCHEMES = ("valkey", "valkeys", "redis", "rediss")
SHORTEST_KEY = 32  # characters


def is_url(place: str) -> bool:
    return "://" in place


def directory_of(place: str | None) -> Path:
    """None: where the XDG base directory specification puts what a program keeps between its runs."""
    if place is not None:
        return Path(place).expanduser()
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if os.path.isabs(state) else Path("~/.local/state").expanduser()) / "edgewise"


def _checked_place(value: str) -> str:
    value = value.strip()
    if not value:
        raise ValueError("is empty; give a directory, valkey://HOST:PORT/DB, 'memory' or 'off', or unset it")
    if value.lower() in WORDS:
        return value.lower()
    if is_url(value):
        _check_url(value)
    return value


def _check_url(value: str) -> None:
    """The message does not quote the URL: it may hold a password."""
    if not _is_good(value):
        raise ValueError(f"is no URL of a server; write {'://, '.join(SCHEMES)}:// with HOST:PORT/DB, DB a number")


def _is_good(url: str) -> bool:
    try:
        parts = urlsplit(url)
        there = parts.scheme in SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is none, brackets that do not close
        return False
    return there and (parts.path.strip("/") or "0").isdecimal() and not parts.query and not parts.fragment


def _checked_key(value: SecretStr) -> SecretStr:
    if len(value.get_secret_value()) < SHORTEST_KEY:
        raise ValueError(f"is shorter than {SHORTEST_KEY} characters; make one with 'openssl rand -hex 32'")
    return value


LedgerPlace = Annotated[str, AfterValidator(_checked_place)]
LedgerKey = Annotated[SecretStr, AfterValidator(_checked_key)]
