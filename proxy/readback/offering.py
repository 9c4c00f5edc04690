"""The way back to originals, for the answer to one request in whose prompt the proxy's own tool stands (DESIGN 7)."""

from policies.counting import Counter
from policies.plan import Plan
from policies.request import ChatRequest
from policies.spilling import OWN_TOOL
from proxy.originals import Originals
from proxy.readback.loop import Readback
from proxy.recall import Conversation


def readback_of(plan: Plan, request: ChatRequest, counter: Counter, conversation: Conversation) -> Readback | None:
    """None where the tool is not offered: the answer then goes through as it comes."""
    store = conversation.store
    if store is None or all(span.id != OWN_TOOL for span in plan.sent[-1:]):
        return None
    budget = plan.budget
    room = None if budget.window is None else max(0, budget.window - budget.reserve - plan.sent_total)
    originals = Originals(store, conversation.tenant, request.prompt)
    return Readback(originals.read, conversation.record, counter.text, room)
