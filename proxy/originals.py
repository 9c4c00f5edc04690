"""Originals read again: for the model, for the API, and for a ledger that lost them.

A ref is a digest of what it names, so that nothing else is ever given back in its place.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec

from policies.messages import Message
from policies.recorded import Made
from policies.refs import REF, Refs, stored
from policies.request import Prompt
from proxy.ledger import Ledger, LedgerFault

T = TypeVar("T")

log = logging.getLogger("edgewise")


class Originals:
    """Those of one tenant: what is stored, and what the client itself has just sent again in `prompt`."""

    def __init__(self, ledger: Ledger, tenant: str, prompt: Prompt | None = None) -> None:
        self._ledger, self._tenant, self._prompt = ledger, tenant, prompt
        self._refs = Refs(bytes.fromhex(tenant))

    async def read(self, ref: str) -> bytes | None:
        """An original, byte for byte. Raises LedgerFault where the store cannot say, or holds it damaged, and the
        request does not hold it either."""
        try:
            found = (await self._ledger.get(self._tenant, "original", [ref])).get(ref)
            if found is not None and not self._refs.fits(ref, found):
                log.error("ledger: the original of %s is damaged", ref)
                raise LedgerFault("broken")
        except LedgerFault:
            again = self._sent_again().get(ref)
            if again is None:
                raise
            return again
        return found if found is not None else self._sent_again().get(ref)

    async def behind(self, made: Iterable[Made]) -> dict[str, bytes]:
        """What the ways back that stand in `made` lead to, by ref, as far as it can be had."""
        wanted = refs_in(made)
        found = {ref: text for ref, text in self._sent_again().items() if ref in wanted} if wanted else {}
        missing = sorted(wanted - found.keys())
        if missing:
            try:
                kept = await self._ledger.get(self._tenant, "original", missing)
            except LedgerFault:
                return found
            found |= {ref: text for ref, text in kept.items() if self._refs.fits(ref, text)}
        return found

    def _sent_again(self) -> dict[str, bytes]:
        if self._prompt is None:
            return {}
        texts = (Message.of(item.raw).text for item in self._prompt.messages)
        return {self._refs.ref_of(text): stored(text) for text in texts if text}


def refs_in(made: Iterable[Made]) -> set[str]:
    return {ref.decode() for one in made for raw in one.raws for ref in REF.findall(raw)}


def readable(decode: Callable[[bytes], T], found: Mapping[str, bytes], key: str) -> T | None:
    """What stands under a key of the ledger; None where nothing does, or nothing that can be read."""
    value = found.get(key)
    if value is None:
        return None
    try:
        return decode(value)
    except msgspec.DecodeError:
        log.warning("ledger: an entry is damaged, or another version's; it counts as unknown")
        return None
