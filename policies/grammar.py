"""The repairs of `repair` carried out on a draft."""

import msgspec

from policies.draft import Draft
from policies.editor import Editor
from policies.plan import Action
from policies.repair import Add, Mend, Remove, repairs
from policies.request import Item
from policies.spans import Bucket, Evict, Span, Tier

UNREPAIRED = "there is nothing but results without a call, and a call would have to be invented"


def mend(draft: Draft, editor: Editor) -> None:
    """Repair what the client sent wrong; a valid conversation is left as it is."""
    spans = draft.messages
    found = list(repairs([span.item for span in spans], [draft.facts(span) for span in spans]))
    gone = {repair.index for repair in found if isinstance(repair, Remove)}
    if all(span.tier is Tier.L0 or at in gone for at, span in enumerate(spans)):
        if gone:  # nothing but instructions would be left, which is no conversation
            editor.refuse("repair", Action.REPAIR, UNREPAIRED)
        return
    for number, repair in enumerate(found):
        span = spans[repair.index]
        if isinstance(repair, Remove):
            draft.remove(span.id)
            _record(editor, span.id, (span.tokens, 0), repair.because)
        elif isinstance(repair, Mend):
            item = Item.of(repair.raw)
            cost = draft.counter.facts(item).tokens
            draft.put(msgspec.structs.replace(span, item=item, tokens=cost))
            _record(editor, span.id, (span.tokens, cost), repair.because)
        else:
            _add(draft, editor, f"n{number}", (repair, spans))
    if found:
        draft.rebill()


def _add(draft: Draft, editor: Editor, span_id: str, place: tuple[Add, list[Span]]) -> None:
    repair, spans = place
    item, behind = Item.of(repair.raw), spans[repair.index]
    cost = draft.counter.facts(item).tokens
    tier = behind.tier if behind.tier in (Tier.L1, Tier.L3) else Tier.L3
    following = spans[repair.index + 1].id if repair.index + 1 < len(spans) else None
    span = Span(
        span_id, item, Bucket.TOOL_RESULTS, tier, Evict.RECONSTRUCTIBLE, cost, "tool", turn=behind.turn,
        round=behind.round,
    )  # fmt: skip
    draft.insert(span, before=following)
    _record(editor, span_id, (0, cost), repair.because)


def _record(editor: Editor, span_id: str, tokens: tuple[int, int], because: str) -> None:
    editor.record("repair", Action.REPAIR, (span_id,), tokens, because)
