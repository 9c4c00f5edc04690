"""What every ledger promises, whichever store is behind it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.ledgers import ALICE, BOB, DAY, FIRST, SECOND, Clock, entries, entry

from proxy.ledger import REMEDY, Entry, LedgerFault, Limits, Store
from proxy.ledger.memory import MemoryLedger
from proxy.ledger.sealed import SealedLedger
from proxy.ledger.sqlite import SqliteLedger
from proxy.ledger.valkey import ValkeyLedger

CAP = 1 << 20  # bytes
LIMITS = Limits(ttl=7 * DAY, cap=CAP)
STORES = ("memory", "sqlite", "valkey", "sealed memory", "sealed sqlite", "sealed valkey")
SEAL = 12 + 16  # bytes that sealing adds to a value: nonce and tag


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=STORES)
async def ledger(request: pytest.FixtureRequest, clock: Clock, tmp_path: Path) -> AsyncIterator[Store]:
    made: Store
    match request.param.split()[-1]:
        case "memory":
            made = MemoryLedger(LIMITS, clock)
        case "sqlite":
            made = SqliteLedger(tmp_path, LIMITS, clock)
        case _:
            made = ValkeyLedger(request.getfixturevalue("valkey_url"), LIMITS, clock)
    if request.param.startswith("sealed"):
        made = SealedLedger(made, b"0123456789abcdef" * 2)
    await made.open()
    yield made
    await made.close()


def sealing(ledger: Store) -> int:
    return SEAL if isinstance(ledger, SealedLedger) else 0


async def test_what_was_added_is_found_and_what_was_not_is_left_out(ledger: Store) -> None:
    assert await ledger.add(ALICE, entries(["k1", "k2"], b"\x00\xff text")) == {}
    assert await ledger.get(ALICE, "node", ["k2", "none", "k1"]) == {"k1": b"\x00\xff text", "k2": b"\x00\xff text"}
    assert await ledger.get(ALICE, "node", []) == {}
    assert await ledger.add(ALICE, []) == {}


async def test_the_first_writer_wins_and_the_second_is_told_what_stands(ledger: Store) -> None:
    await ledger.add(ALICE, [entry("k1", b"first")])
    told = await ledger.add(ALICE, [entry("k1", b"second"), entry("k2", b"new")])
    assert told == {"k1": b"first"}
    assert await ledger.add(ALICE, [entry("k1", b"first")]) == {}
    assert await ledger.get(ALICE, "node", ["k1", "k2"]) == {"k1": b"first", "k2": b"new"}


async def test_of_one_key_twice_in_a_batch_the_first_wins(ledger: Store) -> None:
    assert await ledger.add(ALICE, [entry("k", b"1"), entry("k", b"2")]) == {"k": b"1"}
    assert await ledger.get(ALICE, "node", ["k"]) == {"k": b"1"}


async def test_of_many_writers_at_once_all_are_told_the_same(ledger: Store) -> None:
    told = await asyncio.gather(*(ledger.add(ALICE, [entry("k", b"%d" % n)]) for n in range(50)))
    stands = (await ledger.get(ALICE, "node", ["k"]))["k"]
    assert [others.get("k", stands) for others in told] == [stands] * 50
    assert sum(not others for others in told) == 1


async def test_tenants_and_kinds_are_apart(ledger: Store) -> None:
    await ledger.add(ALICE, [entry("k", b"hers"), entry("k2", b"hers", "original")])
    assert await ledger.get(BOB, "node", ["k"]) == {}
    assert await ledger.get(ALICE, "original", ["k"]) == {}
    assert await ledger.add(BOB, [entry("k", b"his")]) == {}
    assert await ledger.get(ALICE, "node", ["k"]) == {"k": b"hers"}
    await ledger.withdraw(BOB, "node", ["k"])
    assert await ledger.get(ALICE, "node", ["k"]) == {"k": b"hers"}
    assert await ledger.held(BOB, "k2") == []


async def test_a_head_is_replaced(ledger: Store) -> None:
    await ledger.put(ALICE, entry("h", b"epoch 1", "head"))
    await ledger.put(ALICE, entry("h", b"epoch 2, longer", "head"))
    assert await ledger.get(ALICE, "head", ["h"]) == {"h": b"epoch 2, longer"}
    assert [held.size - sealing(ledger) for held in await ledger.held(ALICE, FIRST)] == [15]


async def test_what_nobody_confirmed_can_be_withdrawn_and_what_was_confirmed_cannot(ledger: Store) -> None:
    await ledger.add(ALICE, entries(["k1", "k2"]))
    await ledger.confirm(ALICE, "node", ["k1", "never added"])
    await ledger.withdraw(ALICE, "node", ["k1", "k2", "never added"])
    assert await ledger.get(ALICE, "node", ["k1", "k2"]) == {"k1": b"v"}


async def test_what_two_requests_decided_goes_only_when_both_withdraw(ledger: Store) -> None:
    await ledger.add(ALICE, [entry("k")])
    await ledger.add(ALICE, [entry("k")])
    await ledger.withdraw(ALICE, "node", ["k"])
    assert await ledger.get(ALICE, "node", ["k"]) == {"k": b"v"}
    await ledger.withdraw(ALICE, "node", ["k"])
    assert await ledger.get(ALICE, "node", ["k"]) == {}


async def test_originals_are_never_withdrawn(ledger: Store) -> None:
    await ledger.add(ALICE, [entry("tr_1", b"text", "original")])
    await ledger.withdraw(ALICE, "original", ["tr_1"])
    assert await ledger.get(ALICE, "original", ["tr_1"]) == {"tr_1": b"text"}


async def test_a_conversation_is_kept_for_its_time_to_live_after_its_last_request(ledger: Store, clock: Clock) -> None:
    await ledger.add(ALICE, [entry("k"), entry("tr_1", b"text", "original")])
    clock.now += 6.9 * DAY
    assert await ledger.get(ALICE, "node", ["k"]) == {"k": b"v"}
    clock.now += 7 * DAY
    assert await ledger.get(ALICE, "original", ["tr_1"]) == {"tr_1": b"text"}
    clock.now += 7.1 * DAY
    assert await ledger.get(ALICE, "original", ["tr_1"]) == {}
    assert await ledger.get(ALICE, "node", ["k"]) == {}
    assert await ledger.conversations(None) == []


async def test_an_original_of_two_conversations_lives_as_long_as_one_of_them(ledger: Store, clock: Clock) -> None:
    await ledger.add(ALICE, [entry("tr_1", b"text", "original", FIRST), entry("k1", conversation=FIRST)])
    await ledger.add(ALICE, [entry("tr_1", b"text", "original", SECOND), entry("k2", conversation=SECOND)])
    clock.now += 5 * DAY
    await ledger.get(ALICE, "node", ["k1"])
    clock.now += 5 * DAY
    assert await ledger.get(ALICE, "node", ["k2"]) == {}
    assert await ledger.get(ALICE, "original", ["tr_1"]) == {"tr_1": b"text"}
    assert [listed.conversation for listed in await ledger.conversations(ALICE)] == [FIRST]
    clock.now += 5 * DAY  # the read before was a use of the conversation that still holds it
    assert await ledger.get(ALICE, "original", ["tr_1"]) == {"tr_1": b"text"}
    clock.now += 8 * DAY
    assert await ledger.get(ALICE, "original", ["tr_1"]) == {}


async def test_a_full_ledger_takes_nothing_new_and_keeps_what_it_has(ledger: Store) -> None:
    big = b"x" * (CAP // 4)
    for key in ("tr_0", "tr_1"):
        await ledger.add(ALICE, [entry(key, big, "original")])
    with pytest.raises(LedgerFault) as raised:
        await ledger.add(ALICE, [entry("tr_2", big, "original"), entry("tr_3", big, "original")])
    assert raised.value.reason == "full"
    with pytest.raises(LedgerFault):
        await ledger.add(ALICE, [entry("small"), entry("tr_big", big * 2, "original")])
    assert await ledger.get(ALICE, "node", ["small"]) == {}
    assert await ledger.add(ALICE, [entry("tr_0", big, "original")]) == {}
    assert await ledger.get(ALICE, "original", ["tr_0"]) == {"tr_0": big}
    assert await ledger.size() <= CAP


async def test_a_full_ledger_takes_heads_only_where_they_do_not_grow(ledger: Store) -> None:
    await ledger.put(ALICE, entry("h", b"x" * (CAP // 2), "head"))
    await ledger.put(ALICE, entry("h", b"y" * (CAP // 2), "head"))
    with pytest.raises(LedgerFault, match="full"):
        await ledger.put(ALICE, entry("h", b"z" * CAP, "head"))
    with pytest.raises(LedgerFault, match="full"):
        await ledger.put(ALICE, entry("h2", b"z" * CAP, "head"))
    assert (await ledger.get(ALICE, "head", ["h", "h2"]))["h"][:1] == b"y"


async def test_what_has_expired_makes_room(ledger: Store, clock: Clock) -> None:
    big = b"x" * (CAP // 2)
    await ledger.add(ALICE, [entry("tr_1", big, "original", FIRST)])
    clock.now += 8 * DAY
    assert await ledger.add(BOB, [entry("tr_2", big, "original", SECOND)]) == {}
    assert await ledger.get(ALICE, "original", ["tr_1"]) == {}
    assert await ledger.get(BOB, "original", ["tr_2"]) == {"tr_2": big}


async def test_conversations_are_listed_with_what_they_hold(ledger: Store, clock: Clock) -> None:
    await ledger.add(ALICE, [entry("k", b"12345"), entry("tr_1", b"123", "original")])
    clock.now += 3600
    await ledger.add(BOB, [entry("k", b"1", conversation=SECOND)])
    first, second = reversed(await ledger.conversations(None))
    assert (first.tenant, first.conversation, first.entries) == (ALICE, FIRST, 2)
    assert (second.tenant, second.conversation, second.entries) == (BOB, SECOND, 1)
    assert (first.started, first.used, second.used) == (clock.now - 3600, clock.now - 3600, clock.now)
    assert first.size - 2 * sealing(ledger) == 8
    assert [listed.tenant for listed in await ledger.conversations(BOB)] == [BOB]
    await ledger.confirm(ALICE, "node", ["k"])
    held = await ledger.held(ALICE, FIRST)
    assert [(one.kind, one.key, one.confirmed) for one in held] == [("node", "k", True), ("original", "tr_1", False)]


async def test_a_purge_takes_what_it_is_told(ledger: Store, clock: Clock) -> None:
    await ledger.add(ALICE, [entry("k1", conversation=FIRST)])
    await ledger.add(BOB, [entry("k2", conversation=FIRST)])
    clock.now += 3 * DAY
    await ledger.add(ALICE, [entry("k3", conversation=SECOND)])
    assert await ledger.purge(tenant=ALICE, older_than=2 * DAY) == 1
    assert await ledger.get(ALICE, "node", ["k1", "k3"]) == {"k3": b"v"}
    assert await ledger.get(BOB, "node", ["k2"]) == {"k2": b"v"}
    assert await ledger.purge() == 2
    assert await ledger.conversations(None) == []


async def test_a_purge_of_many_is_complete_and_gives_its_room_back(ledger: Store) -> None:
    empty = await ledger.size()
    for each in (FIRST, SECOND):
        await ledger.add(ALICE, entries([f"{each}{n}" for n in range(450)], b"x" * 500, each))
    assert await ledger.purge(tenant=ALICE) == 2
    assert await ledger.get(ALICE, "node", [f"{FIRST}7"]) == {}
    assert await ledger.size() <= empty + 8_192


async def test_a_closed_ledger_says_so(ledger: Store) -> None:
    await ledger.close()
    with pytest.raises(LedgerFault) as raised:
        await ledger.get(ALICE, "node", ["k"])
    assert raised.value.reason == "closed"
    await ledger.close()


async def test_figures_tell_of_size_and_conversations(ledger: Store, clock: Clock) -> None:
    await ledger.add(ALICE, [entry("k", b"x" * 10_000)])
    clock.now += 10
    await ledger.get(ALICE, "node", ["k"])
    assert await ledger.size() - 200_000 < 10_000 < ledger.figures().size
    assert ledger.figures().conversations == 1


def test_a_fault_names_its_reason_and_a_remedy() -> None:
    for reason, remedy in REMEDY.items():
        assert str(LedgerFault(reason)) == f"ledger: {reason}: {remedy}"


def test_an_entry_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        entry("k").value = b"other"  # type: ignore[misc] # the case
    assert Entry("node", "k", b"v", FIRST) == entry("k")
