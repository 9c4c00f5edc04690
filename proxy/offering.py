"""The way back to originals, for the answer to one request in whose prompt the proxy's own tool stands (DESIGN 7)."""

from policies.counting import Counter
from policies.messages import Message
from policies.plan import Plan
from policies.refs import Refs, stored
from policies.request import ChatRequest
from policies.spilling import OWN_TOOL
from proxy.ledger import LedgerFault, Store
from proxy.readback import Readback
from proxy.recall import Conversation


def readback_of(plan: Plan, request: ChatRequest, counter: Counter, conversation: Conversation) -> Readback | None:
    """None where the tool is not offered: the answer then goes through as it comes."""
    store, refs = conversation.store, conversation.refs
    if store is None or refs is None or all(span.id != OWN_TOOL for span in plan.sent):
        return None
    budget = plan.budget
    room = None if budget.window is None else max(0, budget.window - budget.reserve - plan.sent_total)
    originals = Originals(store, conversation.tenant, request, refs)
    return Readback(originals.read, conversation.record, counter.text, room)


class Originals:
    """Those that one request may ask for: what is stored, and what the client itself has just sent again."""

    def __init__(self, store: Store, tenant: str, request: ChatRequest, refs: Refs) -> None:
        self._store, self._tenant, self._request, self._refs = store, tenant, request, refs

    async def read(self, ref: str) -> bytes | None:
        """An original, byte for byte. Raises LedgerFault where the store cannot say, and the request does not hold it
        either."""
        try:
            found = (await self._store.get(self._tenant, "original", [ref])).get(ref)
        except LedgerFault:
            if (again := self._sent_again(ref)) is not None:
                return again
            raise
        return found if found is not None else self._sent_again(ref)

    def _sent_again(self, ref: str) -> bytes | None:
        for item in self._request.prompt.messages:
            text = Message.of(item.raw).text
            if text and self._refs.ref_of(text) == ref:
                return stored(text)
        return None
