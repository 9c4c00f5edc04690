"""Originals are given back byte for byte, from the ledger or from what the client sends again, or not at all."""

from collections.abc import AsyncIterator

import pytest
from support.ledgers import ALICE, BOB, entry
from support.prompts import calls, chat, result, user

from policies.recorded import Made, decoded
from policies.refs import Refs
from proxy.ledger import LedgerFault, Limits
from proxy.ledger.memory import MemoryLedger
from proxy.originals import Originals, readable, refs_in

TEXT, OTHER = "pressure 7 bar", "valve 3 \ud800 open"
REFS = Refs(bytes.fromhex(ALICE))
REF, OTHER_REF = REFS.ref_of(TEXT), REFS.ref_of(OTHER)
PROMPT = chat([user("Look."), calls(("c", "read")), result("c", TEXT)]).prompt
STUB = Made((f'{{"role":"tool","content":"[gone, read_tool_result(ref=\\"{REF}\\")]"}}'.encode(),), "elide", "old")


@pytest.fixture
async def ledger() -> AsyncIterator[MemoryLedger]:
    made = MemoryLedger(Limits())
    await made.open()
    yield made
    await made.close()


async def test_what_is_stored_is_given_to_its_tenant_alone(ledger: MemoryLedger) -> None:
    original = OTHER.encode("utf-8", "surrogatepass")
    await ledger.add(ALICE, [entry(OTHER_REF, original, "original")])
    assert await Originals(ledger, ALICE).read(OTHER_REF) == original
    assert await Originals(ledger, BOB).read(OTHER_REF) is None
    assert await Originals(ledger, ALICE).read(REF) is None


async def test_what_the_client_sent_again_needs_no_store(ledger: MemoryLedger) -> None:
    assert await Originals(ledger, ALICE, PROMPT).read(REF) == TEXT.encode()
    await ledger.close()
    assert await Originals(ledger, ALICE, PROMPT).read(REF) == TEXT.encode()
    with pytest.raises(LedgerFault, match="closed"):
        await Originals(ledger, ALICE, PROMPT).read(OTHER_REF)


async def test_a_damaged_original_is_never_given_as_one(ledger: MemoryLedger) -> None:
    await ledger.add(ALICE, [entry(REF, b"pressure 9 bar", "original")])
    with pytest.raises(LedgerFault, match="broken"):
        await Originals(ledger, ALICE).read(REF)
    assert await Originals(ledger, ALICE, PROMPT).read(REF) == TEXT.encode()


async def test_what_ways_back_lead_to_is_found_in_the_request_or_in_the_store(ledger: MemoryLedger) -> None:
    assert refs_in([STUB]) == {REF}
    assert await Originals(ledger, ALICE, PROMPT).behind([STUB]) == {REF: TEXT.encode()}
    assert await Originals(ledger, ALICE).behind([STUB]) == {}
    await ledger.add(ALICE, [entry(REF, TEXT.encode(), "original")])
    assert await Originals(ledger, ALICE).behind([STUB]) == {REF: TEXT.encode()}
    assert await Originals(ledger, ALICE).behind([]) == {}
    await ledger.put(ALICE, entry(REF, b"damaged", "original"))
    assert await Originals(ledger, ALICE).behind([STUB]) == {}
    await ledger.close()
    assert await Originals(ledger, ALICE).behind([STUB]) == {}


def test_what_cannot_be_read_counts_as_unknown() -> None:
    assert readable(decoded, {}, "k") is None
    assert readable(decoded, {"k": b"damaged"}, "k") is None
    assert readable(bytes.decode, {"k": b"text"}, "k") == "text"
