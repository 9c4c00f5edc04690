"""A ledger in this process's memory: for tests, and where nothing may touch a disk. It ends with the process."""

import time
from collections.abc import Callable, Sequence

from msgspec import Struct

from proxy.ledger import OVERHEAD, WITHDRAWN, Entry, Figures, Held, Kind, LedgerFault, Limits, Listed, before

Place = tuple[str, Kind, str]  # tenant, kind, key
Talk = tuple[str, str]  # tenant, conversation


class _One(Struct):
    value: bytes
    owner: Talk  # who added it last
    holders: set[Talk]
    claims: int = 1
    confirmed: bool = False

    @property
    def size(self) -> int:
        return len(self.value) + OVERHEAD


class _Use(Struct):
    started: float
    used: float
    places: dict[Place, None]


class MemoryLedger:
    """`clock` tells seconds since 1970."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.time) -> None:
        self._limits, self._clock = limits, clock
        self._entries: dict[Place, _One] = {}
        self._talks: dict[Talk, _Use] = {}  # the one used last is the last
        self._size = 0
        self._is_open = False

    async def open(self) -> None:
        self._is_open = True

    async def close(self) -> None:
        self._is_open = False

    async def get(self, tenant: str, kind: Kind, keys: Sequence[str]) -> dict[str, bytes]:
        now = self._begin()
        found: dict[str, bytes] = {}
        for key in keys:
            one = self._entries.get((tenant, kind, key))
            if one is not None:
                found[key] = one.value
                self._use(one.owner, now)
        return found

    async def add(self, tenant: str, entries: Sequence[Entry]) -> dict[str, bytes]:
        now = self._begin()
        absent = {(entry.kind, entry.key): entry for entry in entries if self._at(tenant, entry) is None}
        growth = sum(len(entry.value) + OVERHEAD for entry in absent.values())
        if growth and self._size + growth > self._limits.cap:
            raise LedgerFault("full")
        others: dict[str, bytes] = {}
        for entry in entries:
            stands = self._insert(tenant, entry, now)
            if stands != entry.value:
                others[entry.key] = stands
        return others

    async def put(self, tenant: str, entry: Entry) -> None:
        now, there = self._begin(), self._at(tenant, entry)
        growth = len(entry.value) - len(there.value) if there else len(entry.value) + OVERHEAD
        if growth > 0 and self._size + growth > self._limits.cap:
            raise LedgerFault("full")
        self._insert(tenant, entry, now)
        if there is not None:
            there.value = entry.value
            self._size += growth

    async def confirm(self, tenant: str, kind: Kind, keys: Sequence[str]) -> None:
        self._begin()
        for key in keys:
            if one := self._entries.get((tenant, kind, key)):
                one.confirmed = True

    async def withdraw(self, tenant: str, kind: Kind, keys: Sequence[str]) -> None:
        self._begin()
        for key in keys if kind in WITHDRAWN else ():
            one = self._entries.get((tenant, kind, key))
            if one is not None and not one.confirmed:
                one.claims -= 1
                if one.claims <= 0:
                    self._drop((tenant, kind, key), one)

    async def conversations(self, tenant: str | None) -> list[Listed]:
        self._begin()
        return [
            Listed(*talk, len(use.places), self._weight(use), use.started, use.used)
            for talk, use in reversed(self._talks.items())
            if tenant in (None, talk[0])
        ]

    async def held(self, tenant: str, conversation: str) -> list[Held]:
        self._begin()
        use = self._talks.get((tenant, conversation))
        ones = [(place, self._entries[place]) for place in sorted(use.places if use else ())]
        return [Held(kind, key, len(one.value), one.confirmed) for (_, kind, key), one in ones]

    async def purge(self, *, tenant: str | None = None, older_than: float = 0.0) -> int:
        return self._remove(before(self._begin(), older_than), tenant)

    async def size(self) -> int:
        self._begin()
        return self._size

    def figures(self) -> Figures:
        return Figures(self._size, len(self._talks))

    def _begin(self) -> float:
        if not self._is_open:
            raise LedgerFault("closed")
        now = self._clock()
        self._remove(self._limits.cutoff(now), None)
        return now

    def _at(self, tenant: str, entry: Entry) -> _One | None:
        return self._entries.get((tenant, entry.kind, entry.key))

    def _insert(self, tenant: str, entry: Entry, now: float) -> bytes:
        """What stands there afterwards."""
        place: Place = (tenant, entry.kind, entry.key)
        talk = (tenant, entry.conversation)
        self._use(talk, now).places[place] = None
        one = self._entries.get(place)
        if one is None:
            self._entries[place] = one = _One(entry.value, talk, {talk})
            self._size += one.size
        else:
            one.owner = talk
            one.holders.add(talk)
            one.claims += 1
        return one.value

    def _use(self, talk: Talk, now: float) -> _Use:
        use = self._talks.pop(talk, None) or _Use(now, now, {})
        self._talks[talk] = use
        use.used = max(use.used, now)
        return use

    def _weight(self, use: _Use) -> int:
        return sum(len(self._entries[place].value) for place in use.places)

    def _remove(self, cutoff: float, tenant: str | None) -> int:
        """Conversations last used at or before `cutoff`."""
        gone: list[Talk] = []
        for talk, use in self._talks.items():
            if use.used > cutoff:
                break
            if tenant in (None, talk[0]):
                gone.append(talk)
        for talk in gone:
            for place in self._talks.pop(talk).places:
                self._release(place, talk)
        return len(gone)

    def _release(self, place: Place, talk: Talk) -> None:
        one = self._entries[place]
        one.holders.discard(talk)
        if not one.holders:
            self._drop(place, one)
        elif one.owner == talk:
            one.owner = min(one.holders)

    def _drop(self, place: Place, one: _One) -> None:
        del self._entries[place]
        self._size -= one.size
        for talk in one.holders:
            self._talks[talk].places.pop(place, None)
