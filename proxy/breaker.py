"""A circuit breaker: a server that fails again and again is left alone for a while, then tried once."""

from collections.abc import Callable

PATIENCE = 3  # failures in a row before the server is left alone
PAUSE = 30.0  # seconds that it is; doubled by each failure after that
LONGEST_PAUSE = 600.0  # seconds


class Breaker:
    """`clock` tells seconds that only grow. One that failed is tried by one question after each pause."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures = 0
        self._closed_until = 0.0

    def admits(self, seconds: float) -> bool:
        """Whether a question that takes at most `seconds` may be asked now."""
        now = self._clock()
        if now < self._closed_until:
            return False
        if self._failures >= PATIENCE:
            self._closed_until = now + seconds  # the others wait for what this one comes to
        return True

    def succeeded(self) -> None:
        self._failures, self._closed_until = 0, 0.0

    def failed(self) -> None:
        self._failures += 1
        if self._failures >= PATIENCE:
            pause = PAUSE * 2.0 ** min(self._failures - PATIENCE, 16)
            self._closed_until = self._clock() + min(LONGEST_PAUSE, pause)
