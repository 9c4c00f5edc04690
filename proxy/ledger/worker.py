"""A thread that does jobs for an event loop, all that wait at once: what they write shares one commit."""

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from proxy.ledger import LedgerFault

AT_ONCE = 256  # jobs

Result = Any  # what the job gives, or the exception that it ended with
Done = tuple["Job", Result]


class Job(Struct, eq=False):
    """`work` gets what the thread works on. `writes`: it has to be committed before it is done."""

    work: Callable[[Any], Any]
    writes: bool
    future: asyncio.Future[Any]


Serve = Callable[[Sequence[Job], Callable[[Sequence[Done]], None]], None]


class Worker:
    """`serve` is called in the thread with jobs, or none when there was nothing to do for `idle` seconds; it hands over
    every job once, with what came of it. `finish` is called in the thread at its end."""

    def __init__(self, serve: Serve, finish: Callable[[], None], idle: float) -> None:
        self._serve, self._finish, self._idle = serve, finish, idle
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="edgewise-ledger", daemon=True)
        self._thread.start()

    async def ask(self, work: Callable[[Any], Any], *, writes: bool) -> Any:
        """Raises what the job raises. A job whose caller has left is not begun."""
        future = self._loop.create_future()
        self._jobs.put(Job(work, writes, future))
        return await future

    async def close(self) -> None:
        """What was asked before is done first."""
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        going = True
        while going:
            asked = self._waiting()
            going = None not in asked
            jobs = [job for job in asked if job is not None and not job.future.cancelled()]
            if jobs or not asked:
                self._serve(jobs, self._hand_over)
        self._finish()

    def _waiting(self) -> list[Job | None]:
        jobs: list[Job | None] = []
        with suppress(queue.Empty):
            jobs.append(self._jobs.get(timeout=self._idle))
            while len(jobs) < AT_ONCE and None not in jobs:
                jobs.append(self._jobs.get_nowait())
        return jobs

    def _hand_over(self, done: Sequence[Done]) -> None:
        if done:
            self._loop.call_soon_threadsafe(_settle, done)


def _settle(done: Sequence[Done]) -> None:
    for job, result in done:
        if job.future.done():
            continue  # its caller has left
        if isinstance(result, BaseException):
            job.future.set_exception(result)
        else:
            job.future.set_result(result)


def failed(jobs: Sequence[Job], error: Exception) -> list[Done]:
    """Each gets an exception of its own: those who wait add their frames to it."""
    return [(job, LedgerFault(error.reason) if isinstance(error, LedgerFault) else error) for job in jobs]
