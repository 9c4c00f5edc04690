"""Where injected text goes: merged into messages that are there already, so that no template sees a strange turn."""

import msgspec

from policies.draft import Draft
from policies.jsonraw import dumps
from policies.messages import merged, with_part
from policies.plan import Inject
from policies.request import Item
from policies.spans import Bucket, Evict, Span, Tier

OVERHEAD = 6  # tokens a merge may cost beside its text: the blank line, or the frame of a message of its own


def reserve(draft: Draft, injections: list[Inject]) -> int:
    """Tokens to keep free until the injections are placed."""
    return sum(draft.measure(edit.text) + OVERHEAD for edit in injections)


def place(draft: Draft, edit: Inject) -> str | None:
    """Merge the text; the id of the message that holds it, or None when there is no place for it now. What was sent
    before is none."""
    if edit.place == "head":
        return _head(draft, edit)
    users = [span for span in draft.messages if span.is_user]
    if edit.place == "note":
        return _merge(draft, users[0], edit, at_end=False) if users else None
    last = next((span for span in reversed(draft.messages) if span.tier is not Tier.L0), None)
    holder = last if last is not None and last.is_result else users[-1] if users else None
    if holder is None or holder.id in draft.frozen:
        return None
    return _behind_result(draft, holder, edit) if holder.is_result else _merge(draft, holder, edit, at_end=True)


def _head(draft: Draft, edit: Inject) -> str:
    system = next((span for span in draft.messages if span.bucket is Bucket.SYSTEM), None)
    if system is not None:
        return _merge(draft, system, edit, at_end=True)
    item = Item.of(dumps({"role": "system", "content": edit.text}))
    tokens = draft.counter.facts(item).tokens
    span = Span("n-head", item, edit.bucket, Tier.L0, Evict.PINNED, tokens, "system")
    first = draft.messages
    draft.insert(span, before=first[0].id if first else None)
    return span.id


def _behind_result(draft: Draft, span: Span, edit: Inject) -> str | None:
    """In a tool loop the newest result carries the text; one that is JSON gets it as a part of its own."""
    text = draft.message(span).text.lstrip()
    if text[:1] in ("{", "["):
        return _put(draft, span, with_part(span.item.raw, edit.text), edit)
    return _merge(draft, span, edit, at_end=True)


def _merge(draft: Draft, span: Span, edit: Inject, *, at_end: bool) -> str:
    return _put(draft, span, merged(span.item.raw, edit.text, at_end=at_end), edit)


def _put(draft: Draft, span: Span, raw: bytes, edit: Inject) -> str:
    item = Item.of(raw)
    added = draft.cost(span, item) - draft.cost(span, span.item)
    changed = msgspec.structs.replace(
        span,
        item=item,
        tokens=span.tokens + added,
        merged=(*span.merged, (edit.bucket, added)),
        bare=span.bare or span.item,
    )
    draft.put(changed)
    return span.id
