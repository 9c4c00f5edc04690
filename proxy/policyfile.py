"""Policies by name or path: the presets that ship, and files of the operator."""

import dataclasses
import difflib
import hashlib
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from policies.policy import Policy, PolicyError
from proxy.plugins import find_step

DEFAULT = "balanced"


def presets() -> dict[str, Traversable]:
    """The shipped policy files by name, in alphabetical order."""
    files = {file.name.removesuffix(".toml"): file for file in _folder().iterdir() if file.name.endswith(".toml")}
    return dict(sorted(files.items()))


def load(name_or_path: str, *, beside: Path | None = None, seen: set[Path] | None = None) -> Policy:
    """The policy of that name, or in that file; what it names is read relative to it. A relative path starts at
    `beside` (default: where the process runs). Files of the operator that were read, or looked for, are added to
    `seen`. Raises PolicyError."""
    seen = set() if seen is None else seen
    shipped = presets().get(name_or_path)
    if shipped is not None:
        return _parse(shipped.read_text("utf-8"), f"preset '{name_or_path}'", _folder(), seen)
    path = (beside or Path()) / name_or_path
    seen.add(path)
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise PolicyError(_unknown(name_or_path)) from None
    except OSError as error:
        raise PolicyError(f"{name_or_path}: cannot be read: {error.strerror}; give a TOML file") from None
    except UnicodeDecodeError:
        raise PolicyError(f"{name_or_path}: is not UTF-8 text; give a TOML file") from None
    return _parse(text, name_or_path, path.parent, seen)


def _parse(text: str, place: str, folder: Traversable, seen: set[Path]) -> Policy:
    """With a digest of the file and of what it names, which says whether a policy has changed."""
    digest = hashlib.blake2b(text.encode(), digest_size=8)

    def noted(name: str) -> str:
        if isinstance(folder, Path):
            seen.add(folder / name)
        said = _text(folder / name)
        digest.update(said.encode())
        return said

    policy = Policy.parse(text, place, noted, find_step)
    return dataclasses.replace(policy, digest=digest.hexdigest())


def _text(path: Traversable) -> str:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        raise OSError(0, "it is not UTF-8 text") from None


def _folder() -> Traversable:
    return resources.files("policies") / "presets"


def _unknown(name: str) -> str:
    names = list(presets())
    near = difflib.get_close_matches(name, names, 1)
    hint = f"did you mean '{near[0]}'?" if near else f"presets are {', '.join(names)}"
    return f"policy '{name}': there is no preset and no file of that name; {hint}"
