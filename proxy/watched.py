"""What is made from files, and made anew when one of them changes; a fault keeps what there was."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, Literal, TypeVar

T = TypeVar("T")
Make = Callable[[set[Path]], T]
"""Makes the value, and adds every file that it read, or looked for, to the set. Raises ValueError with one line."""

Looked = Literal["same", "loaded", "invalid"]
State = tuple[tuple[str, int, int, int], ...]


class Watched(Generic[T]):
    """`value` is the last one that could be made; `fault` says why a newer one could not, "" where all is well."""

    def __init__(self, make: Make[T]) -> None:
        """Raises what `make` raises."""
        self._make, self._files = make, set[Path]()
        self.value = make(self._files)
        self.fault = ""
        self._state = _state(self._files)

    def look(self) -> Looked:
        """Whether the files are others than at the last look, and what became of it. "invalid" is told once for each
        state of the files."""
        state = _state(self._files)
        if state == self._state:
            return "same"
        seen: set[Path] = set()
        try:
            self.value = self._make(seen)
            self.fault, self._files = "", seen
        except ValueError as error:
            self.fault = str(error)
            self._files |= seen  # a file that is missing may come
        self._state = _state(self._files)
        return "invalid" if self.fault else "loaded"


def _state(files: Iterable[Path]) -> State:
    """What tells a file from itself later: when it was written, its size, and which file stands there."""
    return tuple(sorted(_one(path) for path in files))


def _one(path: Path) -> tuple[str, int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return str(path), 0, 0, 0
    return str(path), found.st_mtime_ns, found.st_size, found.st_ino
