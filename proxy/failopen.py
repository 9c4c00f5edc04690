"""What may break without costing a user their request (DESIGN 1.7)."""

import logging
from typing import NamedTuple

from proxy.planner import Call
from proxy.state import State

log = logging.getLogger("edgewise")


class FailOpen(NamedTuple):
    """The one place that lets an error pass: a broken planner costs nobody their request (DESIGN 1.7)."""

    state: State
    call: Call

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, *_: object) -> bool:
        if isinstance(error, Exception):
            self.state.planner_failures.inc()
            log.error("%s: planning failed (%s), the request goes on as received", self.call.id, type(error).__name__)
        return isinstance(error, Exception)
