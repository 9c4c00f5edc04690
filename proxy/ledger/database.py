"""The ledger's tables in SQLite, and what is done with them. Everything here waits for the disk: it runs in the
ledger's own thread.

Values lie apart from what changes about them, so that a confirmation does not write a long text again.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from proxy.ledger import OVERHEAD, WITHDRAWN, Entry, Figures, Held, Kind, LedgerFault, Limits, Listed

VERSION = 1
JOURNAL = 64 << 20  # bytes that the log may keep after it was written into the database
REMOVED_AT_ONCE = 200  # entries; more wait for the next transaction, so that requests come in between

SCHEMA = """
CREATE TABLE conversations(
  id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, started REAL NOT NULL, used REAL NOT NULL,
  UNIQUE(tenant, name));
CREATE INDEX by_use ON conversations(used);
CREATE TABLE entries(
  id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, size INTEGER NOT NULL,
  owner INTEGER NOT NULL, claims INTEGER NOT NULL DEFAULT 1, confirmed INTEGER NOT NULL DEFAULT 0,
  UNIQUE(tenant, kind, key));
CREATE TABLE bodies(entry INTEGER PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE holds(conversation INTEGER NOT NULL, entry INTEGER NOT NULL, PRIMARY KEY(conversation, entry))
  WITHOUT ROWID;
CREATE INDEX by_entry ON holds(entry);
"""

# CROSS JOIN keeps the order: else all entries of the tenant may be read, and the keys looked up among them.
GET = """
SELECT e.key, b.value, c.id, c.used FROM json_each(?) wanted
CROSS JOIN entries e ON e.tenant = ? AND e.kind = ? AND e.key = wanted.value
JOIN bodies b ON b.entry = e.id JOIN conversations c ON c.id = e.owner"""
USE = """
INSERT INTO conversations(tenant, name, started, used) VALUES(?, ?, ?, ?)
ON CONFLICT DO UPDATE SET used = max(used, excluded.used) RETURNING id"""
INSERT = """
INSERT INTO entries(tenant, kind, key, size, owner) VALUES(?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id"""
STANDS = """
SELECT e.id, b.value FROM entries e JOIN bodies b ON b.entry = e.id WHERE e.tenant = ? AND e.kind = ? AND e.key = ?"""
CLAIM = "UPDATE entries SET owner = ?, claims = claims + 1 WHERE id = ?"
HOLD = "INSERT OR IGNORE INTO holds(conversation, entry) VALUES(?, ?)"
CONFIRM = """
UPDATE entries SET confirmed = 1 WHERE tenant = ? AND kind = ? AND key IN (SELECT value FROM json_each(?))"""
WITHDRAW = """
UPDATE entries SET claims = claims - 1
WHERE tenant = ? AND kind = ? AND confirmed = 0 AND key IN (SELECT value FROM json_each(?)) RETURNING id, claims"""
LIST = """
SELECT c.tenant, c.name, count(e.id), coalesce(sum(e.size), 0), c.started, c.used FROM conversations c
LEFT JOIN holds h ON h.conversation = c.id LEFT JOIN entries e ON e.id = h.entry
WHERE ? IS NULL OR c.tenant = ? GROUP BY c.id ORDER BY c.used DESC, c.id DESC"""
HELD = """
SELECT e.kind, e.key, e.size, e.confirmed FROM conversations c
JOIN holds h ON h.conversation = c.id JOIN entries e ON e.id = h.entry
WHERE c.tenant = ? AND c.name = ? ORDER BY e.kind, e.key"""
OLDEST = """
SELECT id FROM conversations WHERE used <= ?1 AND (?2 IS NULL OR tenant = ?2) ORDER BY used LIMIT 1"""
RELEASE = """
DELETE FROM holds WHERE conversation = ?1 AND entry IN (
  SELECT entry FROM holds WHERE conversation = ?1 LIMIT ?2) RETURNING entry"""
HAND_OVER = "UPDATE entries SET owner = ifnull((SELECT min(conversation) FROM holds WHERE entry = id), 0) WHERE id = ?"


class Database:
    """An open database. The thread that made it is the only one that may use it."""

    def __init__(self, path: Path, limits: Limits) -> None:
        """Raises sqlite3.Error."""
        self.stale: dict[int, float] = {}  # conversations, and a use of each that is not written down
        self._limits, self._patience = limits, limits.timeout * 0.8
        self._sql = sqlite3.connect(path, timeout=self._patience, isolation_level=None)
        try:
            self._prepare()
        except sqlite3.Error:
            self._sql.close()
            raise

    def _prepare(self) -> None:
        run = self._sql.execute
        run("PRAGMA auto_vacuum = INCREMENTAL")  # before the first table, so that a purge can give space back
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")  # what was added outlives the machine's power, too
        run(f"PRAGMA journal_size_limit = {JOURNAL}")
        run("PRAGMA secure_delete = ON")  # what is removed can be read no more
        (version,) = run("PRAGMA user_version").fetchone()
        if version == 0:
            with self.transaction():
                if run("PRAGMA user_version").fetchone() == (0,):  # another process may have been first
                    for statement in SCHEMA.split(";"):
                        run(statement)
                    run(f"PRAGMA user_version = {VERSION}")
        elif version != VERSION:
            error = sqlite3.DatabaseError("made by another version")
            error.sqlite_errorcode = sqlite3.SQLITE_NOTADB
            raise error

    def close(self) -> None:
        self._sql.close()

    @contextmanager
    def transaction(self, *, wait: bool = True) -> Iterator[None]:
        """Raises sqlite3.Error; then nothing of it was done. `wait` for other processes that write."""
        self._sql.execute(f"PRAGMA busy_timeout = {int(self._patience * 1000) if wait else 0}")
        self._sql.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._sql.execute("COMMIT")
        except BaseException:
            if self._sql.in_transaction:  # some errors roll back by themselves
                self._sql.execute("ROLLBACK")
            raise

    def get(self, tenant: str, kind: Kind, keys: Sequence[str], now: float) -> dict[str, bytes]:
        """That the conversations were used is only noted, for `touch`."""
        rows = self._sql.execute(GET, (json.dumps(keys), tenant, kind)).fetchall()
        late = now - self._limits.grain
        self.stale.update((owner, now) for _, _, owner, used in rows if used < late)
        return {key: value for key, value, _, _ in rows}

    def touch(self) -> None:
        """Write down the uses that were noted."""
        sql = "UPDATE conversations SET used = max(used, ?) WHERE id = ?"
        self._sql.executemany(sql, [(used, one) for one, used in self.stale.items()])

    def add(self, tenant: str, entries: Sequence[Entry], now: float) -> dict[str, bytes]:
        """What stands where it is another value. Raises LedgerFault before anything is written."""
        self._check_room(tenant, entries, now)
        others: dict[str, bytes] = {}
        users = {name: self._use(tenant, name, now) for name in {entry.conversation for entry in entries}}
        for entry in entries:
            stands = self._insert(tenant, entry, users[entry.conversation])
            if stands is not None and stands != entry.value:
                others[entry.key] = stands
        return others

    def put(self, tenant: str, entry: Entry, now: float) -> None:
        """Raises LedgerFault before anything is written."""
        self._check_room(tenant, [entry], now)
        if self._insert(tenant, entry, self._use(tenant, entry.conversation, now)) not in (None, entry.value):
            (one,) = self._sql.execute(
                "UPDATE entries SET size = ? WHERE tenant = ? AND kind = ? AND key = ? RETURNING id",
                (len(entry.value), tenant, entry.kind, entry.key),
            ).fetchone()
            self._sql.execute("UPDATE bodies SET value = ? WHERE entry = ?", (entry.value, one))

    def confirm(self, tenant: str, kind: Kind, keys: Sequence[str]) -> None:
        self._sql.execute(CONFIRM, (tenant, kind, json.dumps(keys)))

    def withdraw(self, tenant: str, kind: Kind, keys: Sequence[str]) -> None:
        if kind in WITHDRAWN:
            rows = self._sql.execute(WITHDRAW, (tenant, kind, json.dumps(keys))).fetchall()
            self._delete([one for one, claims in rows if claims <= 0])

    def conversations(self, tenant: str | None) -> list[Listed]:
        return [Listed(*row) for row in self._sql.execute(LIST, (tenant, tenant))]

    def held(self, tenant: str, conversation: str) -> list[Held]:
        rows = self._sql.execute(HELD, (tenant, conversation))
        return [Held(kind, key, size, bool(confirmed)) for kind, key, size, confirmed in rows]

    def remove(self, cutoff: float, tenant: str | None = None) -> tuple[int, bool]:
        """Conversations of a tenant (None: of all) last used at or before `cutoff`, the oldest first: how many are
        gone, and whether it has to be called again."""
        removed, left = 0, REMOVED_AT_ONCE
        while left > 0:
            row = self._sql.execute(OLDEST, (cutoff, tenant)).fetchone()
            if row is None:
                return removed, False
            freed = [entry for (entry,) in self._sql.execute(RELEASE, (row[0], left)).fetchall()]
            self._sql.executemany(HAND_OVER, [(entry,) for entry in freed])
            orphans = "SELECT id FROM entries WHERE owner = 0 AND id IN (SELECT value FROM json_each(?))"
            self._delete([entry for (entry,) in self._sql.execute(orphans, (json.dumps(freed),)).fetchall()])
            if len(freed) < left:
                self._sql.execute("DELETE FROM conversations WHERE id = ?", row)
                removed += 1
            left -= max(1, len(freed))
        return removed, True

    def give_back(self) -> None:
        """Free space goes back to the file system, as far as others let it."""
        self._sql.execute("PRAGMA incremental_vacuum").fetchall()
        self._sql.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def size(self) -> int:
        """Bytes in use."""
        pages, free, each = (
            self._sql.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * each)

    def figures(self) -> Figures:
        (conversations,) = self._sql.execute("SELECT count(*) FROM conversations").fetchone()
        return Figures(self.size(), conversations)

    def _check_room(self, tenant: str, entries: Sequence[Entry], now: float) -> None:
        """Only what is new needs room, and what has expired makes some. Raises LedgerFault."""
        cap, most = self._limits.cap, sum(len(entry.value) + OVERHEAD for entry in entries)
        if self.size() + most <= cap:
            return
        growth = sum(self._growth(tenant, entry) for entry in entries)
        if growth > 0 and self.size() + growth > cap:
            more = True
            while more and self.size() + growth > cap:
                _, more = self.remove(self._limits.cutoff(now))
            if self.size() + growth > cap:
                raise LedgerFault("full")

    def _growth(self, tenant: str, entry: Entry) -> int:
        sql = "SELECT size FROM entries WHERE tenant = ? AND kind = ? AND key = ?"
        row = self._sql.execute(sql, (tenant, entry.kind, entry.key)).fetchone()
        if row is None:
            return len(entry.value) + OVERHEAD
        return max(0, len(entry.value) - int(row[0])) if entry.kind not in ("node", "round", "original") else 0

    def _use(self, tenant: str, conversation: str, now: float) -> int:
        (one,) = self._sql.execute(USE, (tenant, conversation, now, now)).fetchone()
        return int(one)

    def _insert(self, tenant: str, entry: Entry, conversation: int) -> bytes | None:
        """What stood there before; None: nothing."""
        place = (tenant, entry.kind, entry.key)
        row = self._sql.execute(INSERT, (*place, len(entry.value), conversation)).fetchone()
        if row is not None:
            self._sql.execute("INSERT INTO bodies(entry, value) VALUES(?, ?)", (row[0], entry.value))
            self._sql.execute(HOLD, (conversation, row[0]))
            return None
        one, stands = self._sql.execute(STANDS, place).fetchone()
        self._sql.execute(CLAIM, (conversation, one))
        self._sql.execute(HOLD, (conversation, one))
        return bytes(stands)

    def _delete(self, entries: Sequence[int]) -> None:
        for table, column in (("holds", "entry"), ("bodies", "entry"), ("entries", "id")):
            self._sql.executemany(f"DELETE FROM {table} WHERE {column} = ?", [(one,) for one in entries])  # noqa: S608 - names from the line above
