"""Parts of Edgewise that need packages which the base install leaves out."""

from importlib import import_module
from typing import Any


class MissingExtra(RuntimeError):
    """An extra is not installed; the message says what to install."""


def extra(module: str, name: str, purpose: str) -> Any:
    """The module, imported now. Raises MissingExtra when a package of the extra called `name` is not there."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtra(f"{purpose} needs '{error.name}': pip install 'edgewise[{name}]'") from error
