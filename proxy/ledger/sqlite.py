"""The embedded ledger: SQLite in a directory of its own, written by one thread.

All that waits while a commit runs goes into the next one, so two hundred requests at once cost a few of them. Reads go
first. A damaged file is kept under another name and a new one is begun.
"""

import logging
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from proxy.ledger import Entry, Figures, Held, Kind, LedgerFault, Limits, Listed, Reason, before, files
from proxy.ledger.database import Database
from proxy.ledger.worker import Done, Job, Worker, failed

SWEEP_EVERY = 60.0  # seconds between looks for what has expired
FIGURES_EVERY = 5.0  # seconds

REASONS: dict[int, Reason] = {
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_BUSY: "locked",
    sqlite3.SQLITE_LOCKED: "locked",
    sqlite3.SQLITE_CORRUPT: "broken",
    sqlite3.SQLITE_NOTADB: "broken",
}

log = logging.getLogger("edgewise")


class SqliteLedger:
    """`clock` tells seconds since 1970. A store that cannot be opened is tried again at the next operation."""

    def __init__(self, directory: Path, limits: Limits, clock: Callable[[], float] = time.time) -> None:
        self._directory, self._limits, self._clock = directory, limits, clock
        self._worker: Worker | None = None
        self._database: Database | None = None
        self._seen: tuple[int, int] | None = None  # the file that is open
        self._figures = Figures()
        self._figures_at = self._sweep_at = float("-inf")

    async def open(self) -> None:
        if self._worker is None:
            self._worker = Worker(self._serve, self._let_go, SWEEP_EVERY)
        await self._ask(lambda database: database.size())

    async def close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.close()

    async def get(self, tenant: str, kind: Kind, keys: Sequence[str]) -> dict[str, bytes]:
        return dict(await self._ask(lambda database: database.get(tenant, kind, keys, self._clock())))

    async def add(self, tenant: str, entries: Sequence[Entry]) -> dict[str, bytes]:
        return dict(await self._write(lambda database: database.add(tenant, entries, self._clock())))

    async def put(self, tenant: str, entry: Entry) -> None:
        await self._write(lambda database: database.put(tenant, entry, self._clock()))

    async def confirm(self, tenant: str, kind: Kind, keys: Sequence[str]) -> None:
        await self._write(lambda database: database.confirm(tenant, kind, keys))

    async def withdraw(self, tenant: str, kind: Kind, keys: Sequence[str]) -> None:
        await self._write(lambda database: database.withdraw(tenant, kind, keys))

    async def conversations(self, tenant: str | None) -> list[Listed]:
        return list(await self._ask(lambda database: database.conversations(tenant)))

    async def held(self, tenant: str, conversation: str) -> list[Held]:
        return list(await self._ask(lambda database: database.held(tenant, conversation)))

    async def purge(self, *, tenant: str | None = None, older_than: float = 0.0) -> int:
        cutoff, removed, more = before(self._clock(), older_than), 0, True
        while more:
            part, more = await self._write(lambda database: database.remove(cutoff, tenant))
            removed += part
        await self._ask(lambda database: database.give_back())
        return removed

    async def size(self) -> int:
        return int(await self._ask(lambda database: database.size()))

    def figures(self) -> Figures:
        return self._figures

    async def _ask(self, work: Callable[[Database], Any], *, writes: bool = False) -> Any:
        if self._worker is None:
            raise LedgerFault("closed")
        return await self._worker.ask(work, writes=writes)

    async def _write(self, work: Callable[[Database], Any]) -> Any:
        return await self._ask(work, writes=True)

    # What follows runs in the worker's thread.

    def _serve(self, jobs: Sequence[Job], hand_over: Callable[[Sequence[Done]], None]) -> None:
        try:
            self._sweep(self._opened())
        except (sqlite3.Error, LedgerFault) as error:
            hand_over(failed(jobs, self._fault(error)))
            return
        hand_over([self._read(job) for job in jobs if not job.writes])
        hand_over(self._commit([job for job in jobs if job.writes]))
        self._look()

    def _read(self, job: Job) -> Done:
        try:
            return job, job.work(self._database or self._opened())
        except Exception as error:  # whatever it is, its caller waits for it
            return job, self._fault(error)

    def _commit(self, jobs: Sequence[Job]) -> list[Done]:
        """One transaction for all; it counts for none of them before it is on the disk."""
        done: list[Done] = []
        try:
            database = self._database or self._opened()
            if jobs or database.stale:
                with database.transaction():
                    database.touch()
                    for job in jobs:
                        done.append((job, _result(job, database)))
                database.stale.clear()
        except (sqlite3.Error, LedgerFault) as error:
            return failed(jobs, self._fault(error))
        except Exception as error:  # one job is wrong in itself: the others shall not fail with it
            return [(jobs[0], error)] if len(jobs) == 1 else [one for job in jobs for one in self._commit([job])]
        return done

    def _opened(self) -> Database:
        """Raises sqlite3.Error or LedgerFault."""
        path = self._directory / files.NAME
        if self._database is not None and files.identity(path) != self._seen:
            self._let_go()  # somebody removed or replaced the file under us
        if self._database is None:
            path = files.prepared(self._directory)
            self._seen = files.identity(path)
            try:
                self._database = Database(path, self._limits)
            except sqlite3.Error as error:
                if reason_of(error) != "broken":
                    raise
                self._start_anew()
                self._database = Database(files.prepared(self._directory), self._limits)
                self._seen = files.identity(path)
        return self._database

    def _sweep(self, database: Database) -> None:
        """What has expired goes, unless somebody else writes. That it cannot go is no fault of any request's."""
        now = self._clock()
        if now < self._sweep_at:
            return
        more, cutoff = False, self._limits.cutoff(now)
        try:
            with database.transaction(wait=False):
                _, more = database.remove(cutoff)
            files.forget(self._directory, cutoff)
        except (sqlite3.Error, LedgerFault) as error:
            log.warning("ledger: what has expired could not be removed now: %s", reason_of(error))
            self._fault(error)
        self._sweep_at = now if more else now + min(SWEEP_EVERY, self._limits.grain)

    def _look(self) -> None:
        now = self._clock()
        if self._database is not None and now >= self._figures_at:
            try:
                figures = self._database.figures()
            except sqlite3.Error as error:
                self._fault(error)
                return
            self._figures = msgspec.structs.replace(figures, replaced=self._figures.replaced)
            self._figures_at = now + FIGURES_EVERY

    def _fault(self, error: Exception) -> Exception:
        """What callers are told. What can be done about it is done."""
        if not isinstance(error, sqlite3.Error):
            return error
        reason = reason_of(error)
        if reason == "unwritable":
            self._let_go()  # opened again next time: directories and disks come back
        elif reason == "broken":
            try:
                self._start_anew()
            except LedgerFault as worse:
                return worse
        return LedgerFault(reason)

    def _start_anew(self) -> None:
        self._let_go()
        kept = files.move_aside(self._directory / files.NAME, self._seen)
        if kept is not None:
            log.error("ledger: the database was damaged; it is kept as %s, and a new one is begun", kept)
            self._figures = msgspec.structs.replace(self._figures, replaced=self._figures.replaced + 1)

    def _let_go(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            database.close()


def _result(job: Job, database: Database) -> Any:
    """What is wrong with one job alone is told to its caller alone; nothing was written for it."""
    try:
        return job.work(database)
    except LedgerFault as fault:
        return fault


def reason_of(error: sqlite3.Error | LedgerFault) -> Reason:
    """What SQLite says, in a word for callers."""
    if isinstance(error, LedgerFault):
        return error.reason
    return REASONS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, "unwritable")
