"""The ledger fails under the real proxy: requests go through, faults are counted, and no ref leaves that leads nowhere
(DESIGN 1.4, 1.7)."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from support.faulty import faults, last, messages_of, proxied, sent, unreadable, until_settled
from support.lasting import body, refs_in, talk
from support.prompts import Message
from support.upstream import OK, scripted
from support.valkeys import serving

from proxy.breaker import PATIENCE
from proxy.ledger import Limits
from proxy.ledger.sqlite import SqliteLedger

LITTLE = 4_096  # bytes; less than a change to the database takes
TIMEOUT = 0.25  # seconds for an operation of the ledger


@contextmanager
def locked(ledger: Path) -> Iterator[None]:
    """Another process writes, and does not come to an end."""
    with closing(sqlite3.connect(ledger / "ledger.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@contextmanager
def refusing(ledger: Path, kind: str) -> Iterator[None]:
    """The database takes no entry of a kind."""
    with closing(sqlite3.connect(ledger / "ledger.db", isolation_level=None)) as other:
        rule = f"WHEN new.kind = '{kind}' BEGIN SELECT raise(ABORT, 'refused'); END"
        other.execute(f"CREATE TRIGGER refusing BEFORE INSERT ON entries {rule}")
        yield
        other.execute("DROP TRIGGER refusing")


@contextmanager
def unwritable(ledger: Path) -> Iterator[None]:
    """Something else stands where its directory was."""
    kept = ledger.rename(ledger.with_name("elsewhere"))
    ledger.touch()
    yield
    ledger.unlink()
    kept.rename(ledger)


FAULTS = {"locked": locked, "unwritable": unwritable}


@pytest.mark.parametrize("fault", FAULTS)
async def test_while_the_store_fails_requests_go_through_without_new_refs(fault: str, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    async with scripted([OK]) as upstream:
        async with proxied(upstream, ledger, ledger_timeout=TIMEOUT) as proxy:
            first = await sent(proxy, upstream, talk("pumps", 14))
            issued = refs_in(first)
            assert issued
            with FAULTS[fault](ledger):
                during = await sent(proxy, upstream, talk("pumps", 15))
                assert during[: len(first)] == first
                assert refs_in(during) == issued
                far = await sent(proxy, upstream, talk("pumps", 22))
                assert refs_in(far) <= issued
                assert not refs_in(await sent(proxy, upstream, talk("valves", 14)))
                again = await sent(proxy, upstream, talk("pumps", 23))
                assert again[: len(far)] == far
            assert set(await faults(proxy)) <= {fault, "resting"}
            assert (await faults(proxy))[fault] >= 1
        async with proxied(upstream, ledger) as proxy:
            assert await unreadable(proxy, issued, talk("pumps", 14)) == {}


async def test_what_is_decided_while_the_store_fails_is_written_when_it_is_back(tmp_path: Path) -> None:
    """And with it what it builds on: a restart changes nothing."""
    ledger = tmp_path / "ledger"
    async with scripted([OK]) as upstream:
        async with proxied(upstream, ledger) as proxy:
            await sent(proxy, upstream, talk("pumps", 13))
            with refusing(ledger, "node"):
                await sent(proxy, upstream, talk("pumps", 22))
            before = await sent(proxy, upstream, talk("pumps", 23))
            await until_settled(proxy)
        async with proxied(upstream, ledger) as proxy:
            after = await sent(proxy, upstream, talk("pumps", 24))
    assert after[: len(before)] == before


async def test_a_store_that_answers_too_late_is_left_alone_and_requests_go_on(tmp_path: Path) -> None:
    """No write comes to its end within this deadline: not one that is begun, and not one that waits for it."""
    async with scripted([OK]) as upstream, proxied(upstream, tmp_path / "ledger", ledger_timeout=1e-6) as proxy:
        before: list[Message] = []
        for rounds in range(14, 24):
            now = await sent(proxy, upstream, talk("pumps", rounds))
            assert refs_in(now) == set()
            if "opened" not in await last(proxy):
                assert now[: len(before)] == before
            before = now
        found = await faults(proxy)
        assert found.keys() == {"slow", "resting"}
        assert found["slow"] == PATIENCE


@pytest.mark.parametrize("kind", ["original", "node"])
async def test_a_store_that_fails_to_add_what_was_planned_leads_to_a_plan_without_refs(
    kind: str, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    async with scripted([OK]) as upstream, proxied(upstream, ledger) as proxy:
        await proxy.chat()
        with refusing(ledger, kind):
            first = await sent(proxy, upstream, talk("pumps"))
            assert refs_in(first) == set()
            assert json.loads(upstream.requests[-1].body)["tools"] == body([])["tools"]
            second = await sent(proxy, upstream, talk("pumps", 17))
            assert second[: len(first)] == first
        assert (await faults(proxy)).keys() == {"unwritable"}


async def test_a_full_ledger_takes_no_more_and_what_it_has_stays(tmp_path: Path) -> None:
    ledger, size = tmp_path / "ledger", 150_000
    async with scripted([OK]) as upstream, proxied(upstream, ledger, ledger_max_bytes=size) as proxy:
        issued: dict[str, set[str]] = {}
        for number in range(20):
            topic = f"pumps {number}"
            first = await sent(proxy, upstream, talk(topic))
            assert (await sent(proxy, upstream, talk(topic, 17)))[: len(first)] == first
            issued[topic] = refs_in(messages_of(upstream))
        assert issued["pumps 0"]
        assert not issued["pumps 19"]
        assert set(await faults(proxy)) == {"full"}
        for topic, refs in issued.items():
            assert await unreadable(proxy, refs, talk(topic, 17)) == {}


async def test_a_disk_that_takes_no_more_costs_nobody_a_request(tmp_path: Path) -> None:
    """No process may write files longer than this: what a full disk looks like to one that has root's rights."""
    import resource  # noqa: PLC0415 - there is none on Windows

    ledger, (soft, hard) = tmp_path / "ledger", resource.getrlimit(resource.RLIMIT_FSIZE)
    async with scripted([OK]) as upstream, proxied(upstream, ledger) as proxy:
        first = await sent(proxy, upstream, talk("pumps", 14))
        resource.setrlimit(resource.RLIMIT_FSIZE, (LITTLE, hard))
        try:
            during = await sent(proxy, upstream, talk("pumps", 15))
            other = await sent(proxy, upstream, talk("valves", 16))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert during[: len(first)] == first
        assert refs_in(other) == set()
        assert (await faults(proxy)).keys() == {"unwritable"}
        after = await sent(proxy, upstream, talk("pumps", 16))
        assert after[: len(during)] == during
        assert await unreadable(proxy, refs_in(after), talk("pumps", 16)) == {}


def damage(ledger: Path) -> None:
    """All pages behind the first, which says what it is."""
    with closing(sqlite3.connect(ledger / "ledger.db")) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    path = ledger / "ledger.db"
    path.write_bytes(path.read_bytes()[:4096] + b"\xa5" * (path.stat().st_size - 4096))


async def test_a_damaged_file_is_replaced_and_gets_what_was_sent_before(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    async with scripted([OK]) as upstream, proxied(upstream, ledger) as proxy:
        first = await sent(proxy, upstream, talk("pumps", 14))
        damage(ledger)
        during = await sent(proxy, upstream, talk("pumps", 15))
        assert during[: len(first)] == first
        assert refs_in(during) == refs_in(first)
        assert await faults(proxy) == {"broken": 1.0}
        after = await sent(proxy, upstream, talk("pumps", 22))
        assert refs_in(after)
        assert await unreadable(proxy, refs_in(first) | refs_in(after), talk("pumps", 22)) == {}
        assert (ledger / "ledger.broken.db").exists()


@pytest.mark.parametrize("gone", ["file", "purge"])
async def test_a_ledger_that_was_emptied_gets_what_was_sent_before(gone: str, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    async with scripted([OK]) as upstream:
        async with proxied(upstream, ledger) as proxy:
            first = await sent(proxy, upstream, talk("pumps", 14))
            await until_settled(proxy)
            if gone == "file":
                for path in ledger.iterdir():
                    path.unlink()
            else:
                other = SqliteLedger(ledger, Limits())
                await other.open()
                assert await other.purge() == 1
                await other.close()
            during = await sent(proxy, upstream, talk("pumps", 15))
            assert during[: len(first)] == first
            assert await unreadable(proxy, refs_in(first), talk("pumps", 15)) == {}
            await until_settled(proxy)
        async with proxied(upstream, ledger) as proxy:
            after = await sent(proxy, upstream, talk("pumps", 15) + talk("pumps", 1)[2:3])
            assert after[: len(during)] == during


async def test_damaged_values_count_as_unknown(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    async with scripted([OK]) as upstream:
        async with proxied(upstream, ledger) as proxy:
            issued = refs_in(await sent(proxy, upstream, talk("pumps")))
            await until_settled(proxy)
        with closing(sqlite3.connect(ledger / "ledger.db", isolation_level=None)) as other:
            changed = "UPDATE bodies SET value = CAST(substr(value, 1, length(value) - 1) || 'x' AS BLOB)"
            assert other.execute(changed).rowcount > len(issued)
        async with proxied(upstream, ledger) as proxy:
            assert set((await unreadable(proxy, issued, talk("pumps"))).values()) == {503}
            again = refs_in(await sent(proxy, upstream, talk("pumps", 17)))
            assert again
            assert await unreadable(proxy, again, talk("pumps", 17)) == {}


async def test_a_server_that_goes_and_comes_back_empty_gets_what_was_sent_before(tmp_path: Path) -> None:
    async with scripted([OK]) as upstream:
        with serving(tmp_path) as url:
            port = int(url.rpartition(":")[2].partition("/")[0])
            proxying = proxied(upstream, url, ledger_timeout=TIMEOUT * 4)
            proxy = await proxying.__aenter__()
            first = await sent(proxy, upstream, talk("pumps", 14))
            issued = refs_in(first)
            assert issued
        during = await sent(proxy, upstream, talk("pumps", 15))
        assert during[: len(first)] == first
        assert refs_in(during) == issued
        assert not (await faults(proxy)).keys() - {"gone", "slow", "resting"}
        assert await faults(proxy)
        with serving(tmp_path / "anew", port):
            await proxying.__aexit__(None, None, None)
            async with proxied(upstream, url) as proxy:
                after = await sent(proxy, upstream, talk("pumps", 16))
                assert await unreadable(proxy, refs_in(after), talk("pumps", 16)) == {}
