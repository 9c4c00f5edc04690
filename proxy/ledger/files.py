"""The embedded ledger on disk: a directory that only its owner may enter, files that only its owner may read."""

import os
from contextlib import suppress
from pathlib import Path

from proxy.ledger import LedgerFault

NAME = "ledger.db"
BESIDE = ("-wal", "-shm")  # what SQLite keeps beside a database while it is open
BROKEN = "ledger.broken.db"


def prepared(directory: Path) -> Path:
    """The database file, there and private; directories that are missing are made with 0700. One that was there keeps
    its mode: it is the operator's. Raises LedgerFault."""
    path = directory / NAME
    try:
        _directory(directory)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.fchmod(handle, 0o600)  # SQLite gives the files beside it the same mode
        finally:
            os.close(handle)
    except OSError:
        raise LedgerFault("unwritable") from None
    return path


def identity(path: Path) -> tuple[int, int] | None:
    """Which file stands there; None: none that can be seen."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def move_aside(path: Path, seen: tuple[int, int] | None) -> Path | None:
    """Keep a damaged database under another name, where it replaces one that was kept before; that name. None where
    another process did it already: the file is no longer the one that was `seen`. Raises LedgerFault."""
    if seen is not None and identity(path) != seen:
        return None
    kept = path.with_name(BROKEN)
    try:
        path.replace(kept)
        for suffix in BESIDE:
            with suppress(FileNotFoundError):
                Path(f"{path}{suffix}").replace(f"{kept}{suffix}")
    except OSError:
        raise LedgerFault("unwritable") from None
    return kept


def forget(directory: Path, before: float) -> None:
    """Delete what was moved aside and last written before a time (seconds since 1970). Raises LedgerFault."""
    try:
        for suffix in ("", *BESIDE):
            path = directory / f"{BROKEN}{suffix}"
            if path.exists() and path.stat().st_mtime <= before:
                path.unlink()
    except OSError:
        raise LedgerFault("unwritable") from None


def _directory(path: Path) -> None:
    """Parents too: `mkdir(parents=True)` would make those with the mode of the umask."""
    for missing in reversed([one for one in (path, *path.parents) if not one.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
