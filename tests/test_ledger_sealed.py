"""Values at rest, under a key."""

from pathlib import Path

import pytest
from support.ledgers import ALICE, BOB, FIRST, Clock, entry

from proxy.ledger import Entry, Limits
from proxy.ledger.memory import MemoryLedger
from proxy.ledger.sealed import SealedLedger
from proxy.ledger.sqlite import SqliteLedger

KEY, OTHER = b"k" * 32, b"o" * 32
TEXT = b"the patient's name is Canary Bird"


@pytest.fixture
async def store() -> MemoryLedger:
    made = MemoryLedger(Limits(), Clock())
    await made.open()
    return made


async def stored(store: MemoryLedger) -> Entry:
    """The only entry that there is, as the store has it."""
    (held,) = await store.held(ALICE, FIRST)
    return Entry(held.kind, held.key, (await store.get(ALICE, held.kind, [held.key]))[held.key], FIRST)


async def test_nothing_of_a_value_is_in_any_file(tmp_path: Path) -> None:
    ledger = SealedLedger(SqliteLedger(tmp_path, Limits()), KEY)
    await ledger.open()
    await ledger.add(ALICE, [entry("tr_1", TEXT, "original")])
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert b"tr_1" in files["ledger.db-wal"]
    assert not any(b"Canary" in content for content in files.values())
    assert await ledger.get(ALICE, "original", ["tr_1"]) == {"tr_1": TEXT}
    assert [held.key for held in await ledger.held(ALICE, FIRST)] == ["tr_1"]
    await ledger.close()


async def test_what_another_key_sealed_is_not_seen_and_nothing_unsealed_is(store: MemoryLedger) -> None:
    await store.add(ALICE, [entry("k", b"plain")])
    assert await SealedLedger(store, OTHER).add(ALICE, [entry("k", b"theirs")]) == {}
    ledger = SealedLedger(store, KEY)
    assert await ledger.get(ALICE, "node", ["k"]) == {}
    assert await ledger.add(ALICE, [entry("k", b"ours")]) == {}
    assert await ledger.get(ALICE, "node", ["k"]) == {"k": b"ours"}
    assert await SealedLedger(store, OTHER).get(ALICE, "node", ["k"]) == {"k": b"theirs"}


async def test_a_value_that_was_tampered_with_is_unknown_and_is_replaced(
    store: MemoryLedger, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = SealedLedger(store, KEY)
    await ledger.add(ALICE, [entry("k", TEXT)])
    there = await stored(store)
    for wrong in (there.value[:-1] + bytes([there.value[-1] ^ 1]), b"short"):
        await store.put(ALICE, entry(there.key, wrong))
        assert await ledger.get(ALICE, "node", ["k"]) == {}
    assert ledger.figures().unreadable == 2
    assert await ledger.add(ALICE, [entry("k", b"anew")]) == {}
    assert await ledger.get(ALICE, "node", ["k"]) == {"k": b"anew"}
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "Canary" not in caplog.text


async def test_a_value_cannot_be_put_in_the_place_of_another(store: MemoryLedger) -> None:
    ledger = SealedLedger(store, KEY)
    await ledger.add(ALICE, [entry("k", TEXT)])
    there = await stored(store)
    await store.add(BOB, [there])
    assert await ledger.get(BOB, "node", ["k"]) == {}
    await store.add(ALICE, [entry(there.key, there.value, "original")])
    assert await ledger.get(ALICE, "original", ["k"]) == {}
    await store.add(ALICE, [entry(there.key.replace("k", "other"), there.value)])
    assert await ledger.get(ALICE, "node", ["other"]) == {}
    assert await ledger.get(ALICE, "node", ["k"]) == {"k": TEXT}
