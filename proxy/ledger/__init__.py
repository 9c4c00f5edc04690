"""The ledger: what was decided for which prefix, the originals of what was shortened, hidden rounds, observed usage.

Values are opaque bytes to it. Everything belongs to a tenant, and to the conversation that added it; it is kept until
the time to live after that conversation's last request. Several conversations may add the same entry: the last of them
that lives keeps it. `opening.open_ledger` gives the one that the settings ask for.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

Kind = Literal["node", "original", "round", "head", "usage"]
Reason = Literal["full", "locked", "broken", "unwritable", "gone", "slow", "resting", "closed", "off"]

WITHDRAWN: tuple[Kind, ...] = ("node", "round")  # kinds that go when nobody confirmed them
OVERHEAD = 200  # bytes that an entry takes beside its value, roughly, in any store
GRAIN = 0.1, 60.0  # a use is written down again after this share of the time to live, or these seconds if that is less

REMEDY: dict[Reason, str] = {
    "full": "it is at its size cap, or the disk is full; free the disk, purge, or raise EDGEWISE_LEDGER_MAX_BYTES",
    "locked": "another process holds the database; stop it",
    "broken": "what was stored cannot be read",
    "unwritable": "it may not be written; see who owns the directory, the disk, the server's password",
    "gone": "the server does not answer; see that it runs, and its address",
    "slow": "no answer within EDGEWISE_LEDGER_TIMEOUT",
    "resting": "it failed again and again and is left alone for a while",
    "closed": "it is not open",
    "off": "EDGEWISE_LEDGER is off",
}


class LedgerFault(Exception):
    """The store could not do what was asked. `reason` is one of few words, fit for a label; the message holds nothing
    that was stored."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(f"ledger: {reason}: {REMEDY[reason]}")
        self.reason: Reason = reason


class Entry(Struct, frozen=True):
    """`conversation` is a hex id, "" for what belongs to none (usage)."""

    kind: Kind
    key: str
    value: bytes
    conversation: str


class Listed(Struct, frozen=True):
    """A conversation. `size` in bytes of values as stored, times in seconds since 1970; `used` lags by a minute at
    most."""

    tenant: str
    conversation: str
    entries: int
    size: int
    started: float
    used: float


class Held(Struct, frozen=True):
    """An entry without its value; `size` in bytes as stored."""

    kind: Kind
    key: str
    size: int
    confirmed: bool


class Figures(Struct, frozen=True):
    """What a store last knew of itself. `replaced`: damaged files that were moved aside; `unreadable`: sealed values
    that the key did not open."""

    size: int = 0
    conversations: int = 0
    replaced: int = 0
    unreadable: int = 0


class Limits(Struct, frozen=True):
    """`ttl` and `timeout` in seconds, `cap` in bytes."""

    ttl: float = 7 * 86_400.0
    cap: int = 2 << 30
    timeout: float = 1.0

    @property
    def grain(self) -> float:
        share, most = GRAIN
        return min(most, self.ttl * share)

    def cutoff(self, now: float) -> float:
        """Conversations last used at or before this have expired. Uses are written down late, so they get that much
        more."""
        return now - self.ttl - self.grain


def before(now: float, older_than: float) -> float:
    """What a purge takes was used last at or before this: everything where no age is asked for, also what was used by a
    machine whose clock is ahead."""
    return now - older_than if older_than > 0 else float("inf")


class Ledger(Protocol):
    """Every operation raises LedgerFault."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def get(self, tenant: str, kind: Kind, keys: Sequence[str]) -> dict[str, bytes]:
        """Those that are known. Slides their time to live: that of the conversation that added each of them last."""
        ...

    async def add(self, tenant: str, entries: Sequence[Entry]) -> dict[str, bytes]:
        """Insert if absent, in one transaction, durable when it returns.

        What stands, by key, for every entry that was there before with another value: the first writer wins. What is
        new is unconfirmed. LedgerFault("full"): it would grow beyond its size cap; nothing was written.
        """
        ...

    async def put(self, tenant: str, entry: Entry) -> None:
        """Insert or replace (kinds head and usage)."""
        ...

    async def confirm(self, tenant: str, kind: Kind, keys: Sequence[str]) -> None:
        """The upstream answered 2xx."""
        ...

    async def withdraw(self, tenant: str, kind: Kind, keys: Sequence[str]) -> None:
        """Drops nodes and rounds that nobody confirmed, once all who added them have withdrawn; never originals."""
        ...

    async def conversations(self, tenant: str | None) -> list[Listed]:
        """The one used last comes first. None: those of all tenants."""
        ...

    async def purge(self, *, tenant: str | None = None, older_than: float = 0.0) -> int:
        """Removes conversations that were not used for `older_than` seconds, of all tenants unless one is named; how
        many."""
        ...

    async def size(self) -> int:
        """Bytes that count against the cap."""
        ...


class Store(Ledger, Protocol):
    """A ledger that also tells of itself, for metrics and people."""

    async def held(self, tenant: str, conversation: str) -> list[Held]:
        """What a conversation holds, in the order of kind and key."""
        ...

    def figures(self) -> Figures:
        """What was last known, without asking the store."""
        ...
