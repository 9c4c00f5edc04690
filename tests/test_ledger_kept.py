"""A ledger behind its deadline: what callers wait for, and what is told of it."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from support.ledgers import ALICE, Clock, entry

from proxy.ledger import Entry, Figures, Kind, Ledger, LedgerFault, Limits, Reason
from proxy.ledger.kept import Guarded, Kept
from proxy.ledger.memory import MemoryLedger
from proxy.ledger.metrics import LedgerMetrics
from proxy.ledger.off import OffLedger
from proxy.ledger.sqlite import SqliteLedger


class Troubled(MemoryLedger):
    """A store whose next operations hang, or fail for a reason."""

    def __init__(self) -> None:
        super().__init__(Limits(), Clock())
        self.trouble: Reason | None = None
        self.asked = 0

    async def open(self) -> None:
        await self._suffer()
        await super().open()

    async def close(self) -> None:
        await self._suffer()
        await super().close()

    async def get(self, tenant: str, kind: Kind, keys: Sequence[str]) -> dict[str, bytes]:
        await self._suffer()
        return await super().get(tenant, kind, keys)

    async def add(self, tenant: str, entries: Sequence[Entry]) -> dict[str, bytes]:
        await self._suffer()
        return await super().add(tenant, entries)

    async def _suffer(self) -> None:
        self.asked += 1
        if self.trouble == "slow":
            await asyncio.Event().wait()
        if self.trouble is not None:
            raise LedgerFault(self.trouble)


@pytest.fixture
def metrics() -> LedgerMetrics:
    return LedgerMetrics()


@pytest.fixture
def store() -> Troubled:
    return Troubled()


@pytest.fixture
async def kept(store: Troubled, metrics: LedgerMetrics) -> Kept:
    made = Kept(store, metrics, 0.01)
    await made.open()
    return made


def shown(metrics: LedgerMetrics) -> dict[tuple[str, ...], float]:
    """What Prometheus would be told, by name and labels; times are left out."""
    registry = CollectorRegistry()
    registry.register(metrics)
    return {
        (sample.name.removeprefix("edgewise_ledger_"), *sample.labels.values()): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.value and "seconds" not in sample.name
    }


async def test_operations_entries_and_sizes_are_counted(kept: Kept, metrics: LedgerMetrics) -> None:
    await kept.add(ALICE, [entry("k1"), entry("tr_1", b"text", "original")])
    await kept.add(ALICE, [entry("k1", b"other")])
    await kept.get(ALICE, "node", ["k1", "k2", "k3"])
    await kept.put(ALICE, entry("h", b"1", "head"))
    await kept.confirm(ALICE, "node", ["k1"])
    await kept.withdraw(ALICE, "node", ["k1"])
    assert shown(metrics) == {
        ("operations_total", "open", "done"): 1,
        ("operations_total", "add", "done"): 2,
        ("operations_total", "get", "done"): 1,
        ("operations_total", "put", "done"): 1,
        ("operations_total", "confirm", "done"): 1,
        ("operations_total", "withdraw", "done"): 1,
        ("entries_total", "node", "added"): 1,
        ("entries_total", "original", "added"): 1,
        ("entries_total", "node", "stood"): 1,
        ("entries_total", "node", "found"): 1,
        ("entries_total", "node", "missing"): 2,
        ("bytes",): 3 * 200 + 1 + 4 + 1,
        ("conversations",): 1,
    }


async def test_a_store_that_hangs_costs_no_more_than_the_deadline(
    kept: Kept, store: Troubled, metrics: LedgerMetrics
) -> None:
    store.trouble = "slow"
    with pytest.raises(LedgerFault) as raised:
        await kept.get(ALICE, "node", ["k"])
    assert raised.value.reason == "slow"
    assert shown(metrics)["faults_total", "slow"] == 1
    assert shown(metrics)["operations_total", "get", "failed"] == 1


@pytest.mark.parametrize("trouble", ["slow", "locked", "gone"])
async def test_one_that_fails_again_and_again_is_left_alone(
    kept: Kept, store: Troubled, metrics: LedgerMetrics, trouble: Reason
) -> None:
    store.trouble = trouble
    for _ in range(3):
        with pytest.raises(LedgerFault, match=trouble):
            await kept.get(ALICE, "node", ["k"])
    asked = store.asked
    with pytest.raises(LedgerFault, match="resting"):
        await kept.add(ALICE, [entry("k")])
    assert store.asked == asked
    assert shown(metrics)["faults_total", "resting"] == 1


async def test_a_full_one_is_still_read(kept: Kept, store: Troubled) -> None:
    await kept.add(ALICE, [entry("k")])
    store.trouble = "full"
    for _ in range(10):
        with pytest.raises(LedgerFault, match="full"):
            await kept.add(ALICE, [entry("k2")])
    store.trouble = None
    assert await kept.get(ALICE, "node", ["k"]) == {"k": b"v"}


async def test_a_fault_is_logged_once_for_each_reason(
    kept: Kept, store: Troubled, caplog: pytest.LogCaptureFixture
) -> None:
    for trouble in ("full", "broken", "full", "broken"):
        store.trouble = trouble
        with pytest.raises(LedgerFault):
            await kept.get(ALICE, "node", ["canary"])
    assert [record.getMessage().split(": ")[1] for record in caplog.records] == ["full", "broken"]
    assert "canary" not in caplog.text


async def test_a_proxy_starts_without_its_ledger_and_uses_it_once_it_can(
    tmp_path: Path, metrics: LedgerMetrics, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "state").write_text("a file in its place")
    kept = Kept(SqliteLedger(tmp_path / "state" / "edgewise", Limits()), metrics, 5.0)
    await kept.open()
    assert "ledger: unwritable" in caplog.text
    (tmp_path / "state").unlink()
    assert await kept.add(ALICE, [entry("k")]) == {}
    await kept.close()


async def test_a_store_that_does_not_close_is_left(
    kept: Kept, store: Troubled, caplog: pytest.LogCaptureFixture
) -> None:
    store.trouble = "slow"
    await kept.close()
    assert "ledger: slow" in caplog.text


async def test_what_people_ask_goes_through(kept: Kept) -> None:
    await kept.add(ALICE, [entry("k")])
    (listed,) = await kept.conversations(None)
    assert [one.key for one in await kept.held(ALICE, listed.conversation)] == ["k"]
    assert (await kept.size(), kept.figures()) == (201, Figures(201, 1))
    assert await kept.purge(tenant=ALICE) == 1


async def test_a_guarded_ledger_answers_what_the_ledger_does(kept: Kept) -> None:
    guarded = Guarded(kept)
    assert await guarded.add(ALICE, [entry("k")]) == {}
    assert await guarded.get(ALICE, "node", ["k"]) == {"k": b"v"}
    assert await guarded.put(ALICE, entry("h", b"1", "head"))
    assert await guarded.confirm(ALICE, "node", ["k"])
    assert await guarded.withdraw(ALICE, "node", ["k"])


ASKED: dict[str, Callable[[Guarded], Coroutine[Any, Any, Any]]] = {
    "get": lambda ledger: ledger.get(ALICE, "node", ["k"]),
    "add": lambda ledger: ledger.add(ALICE, [entry("k")]),
    "put": lambda ledger: ledger.put(ALICE, entry("h", b"1", "head")),
    "confirm": lambda ledger: ledger.confirm(ALICE, "node", ["k"]),
    "withdraw": lambda ledger: ledger.withdraw(ALICE, "node", ["k"]),
}


@pytest.mark.parametrize("name", ASKED)
async def test_a_guarded_ledger_answers_nothing_where_there_was_a_fault(name: str) -> None:
    assert not await ASKED[name](Guarded(MemoryLedger(Limits())))


async def test_without_a_ledger_nothing_is_known_and_no_ref_may_be_sent() -> None:
    off: Ledger = OffLedger()
    await off.open()
    await off.put(ALICE, entry("h", b"1", "head"))
    await off.confirm(ALICE, "node", ["k"])
    await off.withdraw(ALICE, "node", ["k"])
    assert await off.get(ALICE, "head", ["h"]) == {}
    assert (await off.conversations(None), await off.purge(), await off.size()) == ([], 0, 0)
    with pytest.raises(LedgerFault) as raised:
        await off.add(ALICE, [entry("k")])
    assert raised.value.reason == "off"
    assert await OffLedger().held(ALICE, "c1") == []
    assert OffLedger().figures() == Figures()
    await off.close()
