"""Progress of long work on a terminal: one line on stderr that goes away again."""

import sys
import time
from typing import TextIO

PATIENCE = 1.0  # seconds of work before anything is shown
EVERY = 0.2  # seconds between updates


class Progress:
    """`step` after each piece of work; `hide` before other output. Silent where `stream` is no terminal."""

    def __init__(self, noun: str, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._noun = noun
        self._count = 0
        self._next = time.monotonic() + PATIENCE
        self._shown = False
        self._shows = self._stream.isatty()

    def step(self) -> None:
        self._count += 1
        if self._shows and (now := time.monotonic()) >= self._next:
            self._next = now + EVERY
            self._shown = True
            self._stream.write(f"\r\x1b[K{self._count:,} {self._noun}")
            self._stream.flush()

    def hide(self) -> None:
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = False
