"""Originals that are stored, and the tool that reads them: offered beside the client's own once a ref
stands (DESIGN 7)."""

from policies.draft import Draft
from policies.readback_tool import DEFINITION, NAME
from policies.recorded import Recorded
from policies.refs import REF, stored
from policies.request import Item, Prompt
from policies.spans import Bucket, Evict, Span, Tier

OWN_TOOL = "t-own"  # the id of its span
ITEM = Item.of(DEFINITION)


def offer(draft: Draft) -> Span:
    """Puts the tool behind those of the client."""
    bare = Span(OWN_TOOL, ITEM, Bucket.TOOLS, Tier.L2, Evict.PINNED, 0, "", NAME)
    span = Span(OWN_TOOL, ITEM, Bucket.TOOLS, Tier.L2, Evict.PINNED, draft.cost(bare, ITEM), "", NAME)
    draft.offer(span)
    return span


def is_offered(draft: Draft) -> bool:
    return draft.get(OWN_TOOL) is not None


def is_taken(draft: Draft) -> bool:
    """A tool of the client has its name."""
    return any(span.name == NAME for span in draft.tools)


def own_tokens(draft: Draft) -> int:
    """What the tool costs at most: among others it costs less than alone."""
    model, counter = draft.prompt.model, draft.counter
    return counter.bill(Prompt(model, (), (ITEM,))).total - counter.bill(Prompt(model, ())).total


def originals(draft: Draft, recorded: Recorded | None) -> dict[str, bytes]:
    """By ref, the texts to which the messages as they stand now show a way that no earlier request has shown."""
    if not draft.issued:
        return {}
    known = {raw for made in recorded.made.values() for raw in made.raws} if recorded is not None else set()
    found: dict[str, bytes] = {}
    for span in draft.messages:
        if span.item is draft.received(span).item or span.item.raw in known:
            continue
        for ref in map(bytes.decode, REF.findall(span.item.raw)):
            if ref in draft.issued:
                found[ref] = stored(draft.issued[ref])
    return found
