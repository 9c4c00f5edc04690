"""The embedded ledger: what it does to the disk, and what the disk does to it."""

import asyncio
import os
import resource
import sqlite3
import struct
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from support.ledgers import ALICE, DAY, FIRST, Clock, entries, entry

from proxy.ledger import LedgerFault, Limits
from proxy.ledger.sqlite import SqliteLedger, reason_of

LIMITS = Limits(timeout=0.25)
PAGE = 4_096


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def ledger(tmp_path: Path, clock: Clock) -> AsyncIterator[SqliteLedger]:
    made = SqliteLedger(tmp_path / "state" / "edgewise", LIMITS, clock)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "edgewise" / "ledger.db"


def commits(path: Path) -> int:
    """Of the log beside a database: frames that end a transaction (sqlite.org/fileformat2.html#the_write_ahead_log)."""
    log = Path(f"{path}-wal").read_bytes()
    salts = log[16:24]
    frames = [log[at : at + 24] for at in range(32, len(log), PAGE + 24)]
    return sum(struct.unpack(">I", frame[4:8])[0] > 0 for frame in frames if frame[8:16] == salts)


@pytest.mark.usefixtures("ledger")
def test_only_the_owner_may_look(path: Path) -> None:
    modes = {each.name: oct(each.stat().st_mode & 0o777) for each in path.parent.iterdir()}
    assert modes == dict.fromkeys(("ledger.db", "ledger.db-wal", "ledger.db-shm"), "0o600")
    assert [oct(each.stat().st_mode & 0o777) for each in (path.parent, path.parent.parent)] == ["0o700", "0o700"]


async def test_a_directory_of_the_operator_keeps_its_mode_and_a_loose_file_does_not(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "ledger.db").touch(0o644)
    ledger = SqliteLedger(tmp_path, LIMITS)
    await ledger.open()
    assert oct((tmp_path / "ledger.db").stat().st_mode & 0o777) == "0o600"
    assert oct(tmp_path.stat().st_mode & 0o777) == "0o755"
    await ledger.close()


async def test_a_link_in_the_place_of_the_database_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch(0o644)
    (tmp_path / "ledger.db").symlink_to(tmp_path / "elsewhere")
    ledger = SqliteLedger(tmp_path, LIMITS)
    with pytest.raises(LedgerFault, match="unwritable"):
        await ledger.open()
    await ledger.close()


async def test_what_waits_together_is_committed_together(ledger: SqliteLedger, path: Path) -> None:
    before = commits(path)
    await asyncio.gather(*(ledger.add(ALICE, [entry(f"k{n}")]) for n in range(200)))
    assert 1 <= commits(path) - before <= 5
    assert len(await ledger.get(ALICE, "node", [f"k{n}" for n in range(200)])) == 200


async def test_reading_writes_a_use_down_once_a_minute(ledger: SqliteLedger, path: Path, clock: Clock) -> None:
    await ledger.add(ALICE, [entry("k")])
    before = commits(path)
    for _ in range(20):
        await ledger.get(ALICE, "node", ["k"])
    assert commits(path) == before
    clock.now += 61
    for _ in range(20):
        await ledger.get(ALICE, "node", ["k"])
    await ledger.size()
    assert commits(path) - before <= 2  # the use, and a look for what has expired


async def test_it_is_there_after_a_restart(ledger: SqliteLedger, path: Path) -> None:
    await ledger.add(ALICE, [entry("k", b"value")])
    await ledger.close()
    await ledger.open()
    assert await ledger.get(ALICE, "node", ["k"]) == {"k": b"value"}
    other = SqliteLedger(path.parent, LIMITS)
    await other.open()
    assert await other.add(ALICE, [entry("k", b"other")]) == {"k": b"value"}
    await other.add(ALICE, [entry("k2")])
    assert await ledger.get(ALICE, "node", ["k2"]) == {"k2": b"v"}
    await other.close()


async def test_while_another_process_writes_reads_go_on_and_writes_are_told(ledger: SqliteLedger, path: Path) -> None:
    await ledger.add(ALICE, [entry("k")])
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerFault) as raised:
            await ledger.add(ALICE, [entry("k2")])
        assert raised.value.reason == "locked"
        assert await ledger.get(ALICE, "node", ["k"]) == {"k": b"v"}
    assert await ledger.add(ALICE, [entry("k2")]) == {}


async def test_what_has_expired_stays_while_another_process_writes(
    ledger: SqliteLedger, path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    await ledger.add(ALICE, [entry("k")])
    clock.now += 8 * DAY
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert await ledger.get(ALICE, "node", ["none"]) == {}
    assert "what has expired could not be removed now: locked" in caplog.text
    clock.now += 61
    assert await ledger.get(ALICE, "node", ["k"]) == {}


async def test_a_file_that_is_no_database_is_kept_and_a_new_one_begun(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "ledger.db").write_bytes(b"no database, but somebody's text\n" * 500)
    ledger = SqliteLedger(tmp_path, LIMITS)
    await ledger.open()
    assert await ledger.add(ALICE, [entry("k")]) == {}
    kept = tmp_path / "ledger.broken.db"
    assert kept.read_bytes().startswith(b"no database")
    assert oct(kept.stat().st_mode & 0o777) == "0o600"
    assert ledger.figures().replaced == 1
    assert [record.getMessage() for record in caplog.records] == [
        f"ledger: the database was damaged; it is kept as {kept}, and a new one is begun"
    ]
    await ledger.close()


async def test_damage_that_shows_in_use_is_told_once_and_the_next_request_works(
    ledger: SqliteLedger, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await ledger.add(ALICE, [entry(f"k{n}", b"x" * 3_000) for n in range(50)])
    await ledger.close()
    with path.open("r+b") as damaged:
        damaged.seek(PAGE)
        damaged.write(b"\xa5" * PAGE * 40)
    await ledger.open()
    outcomes = await asyncio.gather(
        *(ledger.get(ALICE, "node", [f"k{n}"]) for n in range(20)),
        ledger.add(ALICE, [entry("new")]),
        return_exceptions=True,
    )
    assert {type(outcome) for outcome in outcomes} <= {dict, LedgerFault}
    assert await ledger.add(ALICE, [entry("newer")]) == {}
    assert await ledger.get(ALICE, "node", ["newer", "k1"]) == {"newer": b"v"}
    assert sum("damaged" in record.getMessage() for record in caplog.records) == 1
    assert ledger.figures().replaced == 1
    assert "k1" not in caplog.text


async def test_what_another_version_made_is_kept_aside(ledger: SqliteLedger, path: Path) -> None:
    await ledger.close()
    with closing(sqlite3.connect(path)) as newer:
        newer.execute("PRAGMA user_version = 99")
    await ledger.open()
    assert await ledger.add(ALICE, [entry("k")]) == {}
    with closing(sqlite3.connect(path.with_name("ledger.broken.db"))) as kept:
        assert kept.execute("PRAGMA user_version").fetchone() == (99,)


async def test_what_was_kept_aside_goes_when_its_time_has_come(ledger: SqliteLedger, path: Path, clock: Clock) -> None:
    kept = path.with_name("ledger.broken.db")
    kept.write_bytes(b"old")
    os.utime(kept, (clock.now, clock.now))
    clock.now += 6 * DAY
    await ledger.size()
    assert kept.exists()
    clock.now += 2 * DAY
    await ledger.size()
    assert not kept.exists()


async def test_a_directory_that_cannot_be_made_is_a_fault_until_it_can(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file in its place")
    ledger = SqliteLedger(tmp_path / "state" / "edgewise", LIMITS)
    with pytest.raises(LedgerFault, match="unwritable"):
        await ledger.open()
    with pytest.raises(LedgerFault, match="unwritable"):
        await ledger.get(ALICE, "node", ["k"])
    (tmp_path / "state").unlink()
    assert await ledger.add(ALICE, [entry("k")]) == {}
    await ledger.close()


async def test_a_database_that_was_removed_is_begun_anew(ledger: SqliteLedger, path: Path) -> None:
    await ledger.add(ALICE, [entry("k")])
    for each in path.parent.iterdir():
        each.unlink()
    assert await ledger.get(ALICE, "node", ["k"]) == {}
    assert await ledger.add(ALICE, [entry("k")]) == {}
    assert path.exists()


async def test_where_nothing_more_can_be_written_what_is_there_stays(ledger: SqliteLedger) -> None:
    await ledger.add(ALICE, [entry("k")])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512 * 1024, hard))
    try:
        with pytest.raises(LedgerFault) as raised:
            await ledger.add(ALICE, [entry("big", b"x" * 1024 * 1024), entry("small")])
        assert raised.value.reason == "unwritable"
        assert await ledger.get(ALICE, "node", ["k", "small"]) == {"k": b"v"}
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert await ledger.add(ALICE, [entry("big", b"x" * 1024 * 1024), entry("small")]) == {}
    assert set(await ledger.get(ALICE, "node", ["k", "big", "small"])) == {"k", "big", "small"}


def test_a_full_disk_is_called_full() -> None:
    with closing(sqlite3.connect(":memory:")) as small:
        small.execute("CREATE TABLE t(v)")
        small.execute("PRAGMA max_page_count = 3")
        with pytest.raises(sqlite3.OperationalError) as raised:
            small.execute("INSERT INTO t VALUES(zeroblob(100000))")
    assert reason_of(raised.value) == "full"


async def test_one_wrong_job_does_not_fail_its_neighbours(ledger: SqliteLedger) -> None:
    outcomes = await asyncio.gather(
        ledger.add(ALICE, [entry("k1")]),
        ledger.add(ALICE, [entry("k2"), entry("\ud800")]),
        ledger.add(ALICE, [entry("k3")]),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes] == [dict, UnicodeEncodeError, dict]
    assert set(await ledger.get(ALICE, "node", ["k1", "k2", "k3"])) == {"k1", "k3"}


async def test_a_caller_that_leaves_disturbs_nobody(ledger: SqliteLedger) -> None:
    leaving = [asyncio.create_task(ledger.add(ALICE, [entry(f"left{n}")])) for n in range(20)]
    staying = asyncio.create_task(ledger.add(ALICE, entries(["k1"])))
    await asyncio.sleep(0)
    for task in leaving:
        task.cancel()
    assert await staying == {}
    assert await ledger.get(ALICE, "node", ["k1"]) == {"k1": b"v"}
    assert [one.conversation for one in await ledger.conversations(ALICE)] == [FIRST]
