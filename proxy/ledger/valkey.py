"""The ledger in Valkey or Redis, for several replicas. What has to be one step is a script there (`valkey.lua`).

The server has to be one, or a primary with replicas; not a cluster. What survives its restart is what it is configured
to write to disk (`appendonly yes`), and with `maxmemory` it must not evict (`noeviction`).
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any, cast

from proxy.extras import extra
from proxy.ledger import OVERHEAD, WITHDRAWN, Entry, Figures, Held, Kind, LedgerFault, Limits, Listed, Reason, before

CONNECTIONS = 32  # at once; more operations wait for one
REMOVED_AT_ONCE = 200  # entries; nobody else is served by the server meanwhile
SPARE = 1.1  # a value's own life there, in times to live: only for when no proxy comes back to remove it

# The first that fits.
REASONS: tuple[tuple[str, Reason], ...] = (
    ("OutOfMemoryError", "full"),
    ("TimeoutError", "slow"),
    ("AuthenticationError", "unwritable"),
    ("AuthorizationError", "unwritable"),
    ("NoPermissionError", "unwritable"),
    ("ReadOnlyError", "unwritable"),
    ("ConnectionError", "gone"),
)  # by name, of the client's own
REPLIES: dict[str, Reason] = {"FULL": "full", "OOM": "full", "MISCONF": "unwritable", "NOREPLICAS": "unwritable"}


class ValkeyLedger:
    """`clock` tells seconds since 1970; replicas should agree about it to a minute."""

    def __init__(self, url: str, limits: Limits, clock: Callable[[], float] = time.time) -> None:
        """Raises MissingExtra."""
        self._client = extra("valkey.asyncio", "valkey", "a ledger in Valkey or Redis")
        self._errors = extra("valkey.exceptions", "valkey", "a ledger in Valkey or Redis")
        self._url, self._limits, self._clock = url, limits, clock
        self._server: Any = None
        self._script: Any = None
        self._turns = asyncio.Semaphore(CONNECTIONS)
        self._figures = Figures()
        self._reasons = [*((getattr(self._errors, name), reason) for name, reason in REASONS), (OSError, "gone")]

    async def open(self) -> None:
        if self._server is None:
            self._server = self._client.Valkey.from_url(
                self._url, socket_timeout=self._limits.timeout, socket_connect_timeout=self._limits.timeout
            )
            self._script = self._server.register_script(files("proxy.ledger").joinpath("valkey.lua").read_text("utf-8"))
        await self._run("size")

    async def close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.aclose()

    async def get(self, tenant: str, kind: Kind, keys: Sequence[str]) -> dict[str, bytes]:
        values = await self._run("get", tenant, kind, *keys)
        return {key: value for key, value in zip(keys, values, strict=True) if value is not None}

    async def add(self, tenant: str, entries: Sequence[Entry]) -> dict[str, bytes]:
        stood = await self._run("add", tenant, *_flat(entries))
        pairs = zip(entries, stood, strict=True)
        return {entry.key: value for entry, value in pairs if value is not None and value != entry.value}

    async def put(self, tenant: str, entry: Entry) -> None:
        await self._run("put", tenant, *_flat([entry]))

    async def confirm(self, tenant: str, kind: Kind, keys: Sequence[str]) -> None:
        await self._run("confirm", tenant, kind, *keys)

    async def withdraw(self, tenant: str, kind: Kind, keys: Sequence[str]) -> None:
        if kind in WITHDRAWN:
            await self._run("withdraw", tenant, kind, *keys)

    async def conversations(self, tenant: str | None) -> list[Listed]:
        listed: list[Listed] = []
        for talk, used in await self._talks(tenant, "+inf"):
            entries, size, started = await self._run("weigh", talk)
            owner, name = talk.split(":", 1)
            if started is not None:  # else it was removed meanwhile
                listed.append(Listed(owner, name, entries, size, float(started), used))
        return listed

    async def held(self, tenant: str, conversation: str) -> list[Held]:
        flat = await self._run("held", tenant, conversation)
        rows = zip(flat[::3], flat[1::3], flat[2::3], strict=True)
        held = [_held(member.decode(), int(size), confirmed == b"1") for member, size, confirmed in rows]
        return sorted(held, key=lambda one: (one.kind, one.key))

    async def purge(self, *, tenant: str | None = None, older_than: float = 0.0) -> int:
        talks = await self._talks(tenant, repr(before(self._clock(), older_than)))
        for talk, _ in talks:
            while await self._run("shrink", talk, REMOVED_AT_ONCE) != [1]:
                await asyncio.sleep(0)  # others first
        return len(talks)

    async def size(self) -> int:
        await self._run("size")
        return self._figures.size

    def figures(self) -> Figures:
        return self._figures

    async def _talks(self, tenant: str | None, until: str) -> list[tuple[str, float]]:
        """`TENANT:CONVERSATION` and the last use, of those used up to a time."""
        async with self._turns:
            rows = await self._told(
                lambda server: server.zrevrangebyscore("edgewise:used", until, "-inf", withscores=True)
            )
        found = [(name.decode(), float(used)) for name, used in rows]
        return [(name, used) for name, used in found if tenant is None or name.startswith(f"{tenant}:")]

    async def _run(self, operation: str, *arguments: object) -> Any:
        """What the operation gives. Raises LedgerFault."""
        now, limits = self._clock(), self._limits
        life = int((limits.ttl + limits.grain) * SPARE * 1000)
        common = (operation, now, limits.cutoff(now), limits.grain, life, limits.cap, OVERHEAD)
        async with self._turns:
            size, conversations, given = await self._told(lambda _: self._script(args=[*common, *arguments]))
        self._figures = Figures(size, conversations)
        return given

    async def _told(self, ask: Callable[[Any], Any]) -> Any:
        if self._server is None:
            raise LedgerFault("closed")
        try:
            return await ask(self._server)
        except (self._errors.ValkeyError, OSError) as error:
            raise LedgerFault(self._reason(error)) from None

    def _reason(self, error: Exception) -> Reason:
        for kind, reason in self._reasons:
            if isinstance(error, kind):
                return reason
        return REPLIES.get(str(error).split(" ", 1)[0], "broken")


def _held(member: str, size: int, confirmed: bool) -> Held:
    kind, key = member.split(":", 1)
    return Held(cast(Kind, kind), key, size, confirmed)


def _flat(entries: Sequence[Entry]) -> list[object]:
    return [part for entry in entries for part in (entry.kind, entry.key, entry.conversation, entry.value)]
