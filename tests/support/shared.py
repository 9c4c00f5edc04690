"""Third-party data to test against. It is not in the repository: tests that need it skip, with the reason."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

ROOT = Path(__file__).resolve().parents[2]


def shared(name: str) -> Path:
    """The path of a shared file or folder. Skips the calling test where it is absent."""
    path = Path(os.environ.get("EDGEWISE_SHARED", ROOT.parent / "shared")) / name
    if not path.exists():
        pytest.skip(f"{path} is absent: third-party test data is not part of the repository (set EDGEWISE_SHARED)")
    return path


def rows(path: Path) -> Iterator[Any]:
    """The values of a JSONL file."""
    with path.open("rb") as lines:
        for line in lines:
            yield msgspec.json.decode(line)
