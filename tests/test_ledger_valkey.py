"""The ledger in Valkey: what the shared promises do not show."""

import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.ledgers import ALICE, BOB, DAY, FIRST, SECOND, Clock, entry
from support.valkeys import serving

from proxy.ledger import LedgerFault, Limits
from proxy.ledger.valkey import ValkeyLedger

LIMITS = Limits(timeout=2.0)


def say(url: str, *words: str) -> bytes:
    """The first bytes of what the server answers to a command."""
    where = urlsplit(url)
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=10) as wire:
        wire.sendall(f"{' '.join(words)}\r\n".encode())
        return wire.recv(65_536)


@pytest.fixture
async def ledger(valkey_url: str) -> AsyncIterator[ValkeyLedger]:
    made = ValkeyLedger(valkey_url, LIMITS)
    await made.open()
    yield made
    await made.close()


async def test_two_replicas_see_the_same(ledger: ValkeyLedger, valkey_url: str) -> None:
    other = ValkeyLedger(valkey_url.replace("valkey://", "redis://"), LIMITS)
    await other.open()
    await ledger.add(ALICE, [entry("k", b"first")])
    assert await other.add(ALICE, [entry("k", b"second")]) == {"k": b"first"}
    assert await other.get(ALICE, "node", ["k"]) == {"k": b"first"}
    await other.close()


async def test_values_expire_by_themselves_in_case_no_proxy_comes_back(ledger: ValkeyLedger, valkey_url: str) -> None:
    await ledger.add(ALICE, [entry("k")])
    (milliseconds,) = say(valkey_url, "PTTL", f"edgewise:e:{ALICE}:node:k").split()
    assert 7 * DAY * 1000 < int(milliseconds[1:]) < 8 * DAY * 1000


async def test_a_use_gives_every_value_of_the_conversation_its_life_anew(valkey_url: str) -> None:
    clock = Clock()
    ledger = ValkeyLedger(valkey_url, LIMITS, clock)
    await ledger.open()
    await ledger.add(ALICE, [entry("k1"), entry("k2"), entry("other", conversation=SECOND)])
    for key in ("k2", "other"):
        say(valkey_url, "PEXPIRE", f"edgewise:e:{ALICE}:node:{key}", "1000000")
    clock.now += 120
    await ledger.get(ALICE, "node", ["k1"])
    left = [int(say(valkey_url, "PTTL", f"edgewise:e:{ALICE}:node:{key}").split()[0][1:]) for key in ("k2", "other")]
    assert left[0] > 7 * DAY * 1000 > 1_000_000 >= left[1]
    await ledger.close()


async def test_nothing_stays_of_what_was_purged(ledger: ValkeyLedger, valkey_url: str) -> None:
    await ledger.add(ALICE, [entry(f"k{n}", b"x" * n) for n in range(300)])
    await ledger.add(ALICE, [entry("k1", b"x", conversation=SECOND), entry("u", b"1", "usage", "")])
    await ledger.put(ALICE, entry("h", b"1", "head"))
    await ledger.put(ALICE, entry("h", b"22", "head"))
    await ledger.withdraw(ALICE, "node", ["k7"])
    await ledger.add(BOB, [entry("k1", conversation=FIRST)])
    assert await ledger.purge() == 4
    assert await ledger.size() == 0
    assert say(valkey_url, "KEYS", "*").split()[:4] == [b"*1", b"$14", b"edgewise:bytes"]


async def test_what_the_server_lost_is_added_again_and_counted_once(ledger: ValkeyLedger, valkey_url: str) -> None:
    await ledger.add(ALICE, [entry("k", b"12345")])
    size = await ledger.size()
    say(valkey_url, "DEL", f"edgewise:e:{ALICE}:node:k")
    assert await ledger.get(ALICE, "node", ["k"]) == {}
    assert await ledger.add(ALICE, [entry("k", b"12345")]) == {}
    assert await ledger.add(ALICE, [entry("k", b"12345", conversation=SECOND)]) == {}
    assert await ledger.size() == size


async def test_a_server_that_has_no_memory_left_is_full(ledger: ValkeyLedger, valkey_url: str) -> None:
    await ledger.add(ALICE, [entry("k")])
    say(valkey_url, "CONFIG", "SET", "maxmemory", "1000")
    try:
        with pytest.raises(LedgerFault) as raised:
            await ledger.add(ALICE, [entry("k2", b"x" * 10_000)])
    finally:
        say(valkey_url, "CONFIG", "SET", "maxmemory", "0")
    assert raised.value.reason == "full"


async def test_keys_of_another_kind_in_our_place_are_a_broken_store(ledger: ValkeyLedger, valkey_url: str) -> None:
    say(valkey_url, "SET", f"edgewise:e:{ALICE}:node:k", "somebody")
    with pytest.raises(LedgerFault) as raised:
        await ledger.get(ALICE, "node", ["k"])
    assert raised.value.reason == "broken"
    assert "somebody" not in str(raised.value)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[str]:
    with serving(tmp_path) as url:
        say(url, "CONFIG", "SET", "requirepass", "canary")
        yield url


async def test_a_password_is_used_and_a_wrong_one_is_told_without_it(guarded: str) -> None:
    good = ValkeyLedger(guarded.replace("//", "//:canary@"), LIMITS)
    await good.open()
    assert await good.add(ALICE, [entry("k")]) == {}
    await good.close()
    wrong = ValkeyLedger(guarded.replace("//", "//:kanary@"), LIMITS)
    with pytest.raises(LedgerFault) as raised:
        await wrong.open()
    assert raised.value.reason == "unwritable"
    assert "anary" not in str(raised.value)
    await wrong.close()


async def test_a_server_that_is_gone_is_a_fault_until_it_is_back(tmp_path: Path) -> None:
    config: dict[str, Any] = {"appendonly": "yes"}
    with serving(tmp_path, **config) as url:
        ledger = ValkeyLedger(url, LIMITS)
        await ledger.open()
        await ledger.add(ALICE, [entry("k")])
    with pytest.raises(LedgerFault) as raised:
        await ledger.get(ALICE, "node", ["k"])
    assert raised.value.reason == "gone"
    with serving(tmp_path, port=urlsplit(url).port, **config):
        assert await ledger.get(ALICE, "node", ["k"]) == {"k": b"v"}
    await ledger.close()


async def test_a_server_that_does_not_answer_is_slow() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        ledger = ValkeyLedger(f"valkey://127.0.0.1:{silent.getsockname()[1]}", Limits(timeout=0.05))
        with pytest.raises(LedgerFault) as raised:
            await ledger.open()
        await ledger.close()
    assert raised.value.reason == "slow"
