"""A store behind a deadline and a breaker, counted and logged: what the proxy works with."""

import asyncio
import logging
import time
from collections.abc import Coroutine, Sequence
from typing import TypeVar

from proxy.breaker import Breaker
from proxy.ledger import Entry, Figures, Held, Kind, Ledger, LedgerFault, Listed, Reason, Store
from proxy.ledger.metrics import LedgerMetrics, Operation

T = TypeVar("T")
WAITING: frozenset[Reason] = frozenset({"slow", "locked", "gone"})  # faults that cost a request time
TOLD_AGAIN = 600.0  # seconds after which a fault that goes on is logged again
PATIENCE = 10  # times the deadline, at the start and the end, when nobody waits for an answer

log = logging.getLogger("edgewise")


class Kept:
    """`timeout` in seconds is for one operation. What people ask (lists, purges) has no deadline."""

    def __init__(self, store: Store, metrics: LedgerMetrics, timeout: float) -> None:
        self._store, self._metrics, self._timeout = store, metrics, timeout
        self._breaker = Breaker(time.monotonic)
        self._told: dict[Reason, float] = {}  # when it was logged
        metrics.figures = store.figures

    async def open(self) -> None:
        """A store that cannot be opened now is logged, counted, and tried again later."""
        try:
            await self._within("open", self._store.open(), self._timeout * PATIENCE)
        except LedgerFault:
            return  # `_within` told it; requests go through without a ledger

    async def close(self) -> None:
        try:
            async with asyncio.timeout(self._timeout * PATIENCE):
                await self._store.close()
        except TimeoutError:
            self._tell(LedgerFault("slow"))

    async def get(self, tenant: str, kind: Kind, keys: Sequence[str]) -> dict[str, bytes]:
        found = await self._within("get", self._store.get(tenant, kind, keys))
        self._metrics.looked_up(kind, keys, found)
        return found

    async def add(self, tenant: str, entries: Sequence[Entry]) -> dict[str, bytes]:
        others = await self._within("add", self._store.add(tenant, entries))
        self._metrics.added(entries, others)
        return others

    async def put(self, tenant: str, entry: Entry) -> None:
        await self._within("put", self._store.put(tenant, entry))

    async def confirm(self, tenant: str, kind: Kind, keys: Sequence[str]) -> None:
        await self._within("confirm", self._store.confirm(tenant, kind, keys))

    async def withdraw(self, tenant: str, kind: Kind, keys: Sequence[str]) -> None:
        await self._within("withdraw", self._store.withdraw(tenant, kind, keys))

    async def conversations(self, tenant: str | None) -> list[Listed]:
        return await self._store.conversations(tenant)

    async def held(self, tenant: str, conversation: str) -> list[Held]:
        return await self._store.held(tenant, conversation)

    async def purge(self, *, tenant: str | None = None, older_than: float = 0.0) -> int:
        return await self._store.purge(tenant=tenant, older_than=older_than)

    async def size(self) -> int:
        return await self._store.size()

    def figures(self) -> Figures:
        return self._store.figures()

    async def _within(self, operation: Operation, work: Coroutine[None, None, T], timeout: float | None = None) -> T:
        began = time.perf_counter()
        try:
            result = await self._answer(work, timeout or self._timeout)
        except LedgerFault as fault:
            self._metrics.failed(operation, time.perf_counter() - began, fault.reason)
            self._tell(fault)
            raise
        self._metrics.done(operation, time.perf_counter() - began)
        return result

    async def _answer(self, work: Coroutine[None, None, T], timeout: float) -> T:
        """Raises LedgerFault."""
        if not self._breaker.admits(timeout):
            work.close()
            raise LedgerFault("resting")
        try:
            async with asyncio.timeout(timeout):
                result = await work
        except TimeoutError:
            self._breaker.failed()
            raise LedgerFault("slow") from None
        except LedgerFault as fault:
            if fault.reason in WAITING:
                self._breaker.failed()
            else:
                self._breaker.succeeded()
            raise
        self._breaker.succeeded()
        return result

    def _tell(self, fault: LedgerFault) -> None:
        now = time.monotonic()
        if now - self._told.get(fault.reason, float("-inf")) >= TOLD_AGAIN:
            self._told[fault.reason] = now
            log.warning("%s", fault)


class Guarded:
    """A ledger whose faults are None, or False: for callers that go on without. They were counted and logged."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def get(self, tenant: str, kind: Kind, keys: Sequence[str]) -> dict[str, bytes] | None:
        return await _or_none(self._ledger.get(tenant, kind, keys))

    async def add(self, tenant: str, entries: Sequence[Entry]) -> dict[str, bytes] | None:
        """None: no entry may be relied on, so no ref may be sent that was not there before."""
        return await _or_none(self._ledger.add(tenant, entries))

    async def put(self, tenant: str, entry: Entry) -> bool:
        return await _or_none(_true(self._ledger.put(tenant, entry))) or False

    async def confirm(self, tenant: str, kind: Kind, keys: Sequence[str]) -> bool:
        return await _or_none(_true(self._ledger.confirm(tenant, kind, keys))) or False

    async def withdraw(self, tenant: str, kind: Kind, keys: Sequence[str]) -> bool:
        return await _or_none(_true(self._ledger.withdraw(tenant, kind, keys))) or False


async def _or_none(work: Coroutine[None, None, T]) -> T | None:
    try:
        return await work
    except LedgerFault:
        return None


async def _true(work: Coroutine[None, None, None]) -> bool:
    await work
    return True
