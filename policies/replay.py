"""Earlier decisions on a draft: sent again as they were, given up at an epoch, and noted for the next request."""

from collections.abc import Sequence
from hashlib import sha256

import msgspec

from policies.draft import Draft
from policies.editor import Editor
from policies.plan import Decision
from policies.recorded import FRONT, UNSAID, Epoch, Made, Node, Recorded, Sent
from policies.request import Item
from policies.spans import Bucket, Evict, Span, Tier
from policies.spilling import OWN_TOOL, is_taken, offer


def replay(draft: Draft, editor: Editor, recorded: Recorded) -> None:
    """Puts what is recorded into a draft of what was received, and freezes all that was sent before."""
    messages = draft.messages
    for index, made in recorded.made.items():
        if index == FRONT:
            _head(draft, made.raws, before=messages[0].id if messages else None)
        elif index < len(messages):
            following = messages[index + 1].id if index + 1 < len(messages) else None
            _again(draft, editor, messages[index], made, following)
    _tools_again(draft, editor, recorded.sent)
    count = (
        max(recorded.count, newest_answer(messages) + 1) if recorded.count else 0
    )  # what was sent as it came is not recorded
    frozen = {span.id for span in messages[:count]} | {f"m{index}" for index in recorded.made}
    frozen |= {span.id for span in draft.spans if span.id[0] != "m"}  # what the client never saw, and tools
    draft.frozen = frozenset(frozen)
    draft.rebill()


def newest_answer(messages: Sequence[Span]) -> int:
    """Index of the assistant's last message, behind which all is new; -1: there is none."""
    return max((at for at, span in enumerate(messages) if span.role == "assistant"), default=-1)


def freeze_sent(draft: Draft, *, begun: bool = True) -> None:
    """Freezes what an earlier request must have sent: all that stands before the client's newest messages. Of a
    conversation that has not `begun` to be recorded, results with something behind them too: a request may have ended
    with them, and was not answered."""
    messages, last = draft.messages, newest_answer(draft.messages)
    frozen = {span.id for span in [*messages[: last + 1], *draft.tools]}
    if not begun:
        behind = max((at for at, span in enumerate(messages) if not span.is_result), default=-1)
        frozen.update(span.id for span in messages[:behind] if span.is_result)
    draft.frozen |= frozen


def thaw(draft: Draft) -> None:
    """An epoch: everything may change again, and text of ours is taken out, to be put where it belongs now."""
    draft.frozen = frozenset()
    for span in draft.messages:
        if span.id == "n-head":
            draft.remove(span.id)
        elif span.merged and span.bare is not None:
            tokens = span.tokens - sum(tokens for _, tokens in span.merged)
            draft.put(msgspec.structs.replace(span, item=span.bare, tokens=tokens, merged=(), bare=None))
    draft.rebill()


def tears(draft: Draft, node: Node) -> bool:
    """Whether what is decided first changes what an earlier request must have sent as it came."""
    roles = [draft.counter.facts(item).role for item in draft.prompt.messages]
    answer = max((at for at, role in enumerate(roles) if role == "assistant"), default=0)
    return answer > 0 and (bool(node.sent.tools) or any(index < answer for index in node.made))


def _again(draft: Draft, editor: Editor, span: Span, made: Made, following: str | None) -> None:
    if not made.raws:
        draft.remove(span.id)
        editor.replayed.append(span)
        editor.record_replay(made.step, span, 0, made.because)
        return
    item = span.item if made.raws[0] == span.item.raw else Item.of(made.raws[0])
    bare = Item.of(made.bare) if made.bare else span.item
    put = msgspec.structs.replace(
        span,
        item=item,
        merged=tuple((Bucket(bucket), tokens) for bucket, tokens in made.merged),
        bare=bare if made.merged else None,
        elided=made.elided,
        shortened=made.shortened,
    )
    draft.put(put)
    _insert(draft, made.raws, span, before=following)
    editor.record_replay(made.step, span, draft.cost(put, item), made.because)


def _head(draft: Draft, raws: Sequence[bytes], *, before: str | None) -> None:
    """The operator's text before all messages, where no system message could carry it."""
    for item in map(Item.of, raws):
        draft.insert(Span("n-head", item, Bucket.REMINDER, Tier.L0, Evict.PINNED, 0, "system"), before=before)


def _insert(draft: Draft, raws: Sequence[bytes], beside: Span, *, before: str | None) -> None:
    """Messages behind the first, which the client never saw; all in the round of the one they stand behind."""
    if len(raws) == 1:
        return
    called: dict[str, str] = {}
    for number, item in enumerate(map(Item.of, raws)):
        facts = draft.counter.facts(item)
        called.update(zip(facts.call_ids, facts.call_names, strict=True))
        if number:
            bucket = Bucket.TOOL_RESULTS if facts.role == "tool" else Bucket.HISTORY
            place = (f"r{beside.id[1:]}.{number - 1}", item, bucket, Tier.L3, Evict.RECONSTRUCTIBLE, 0, facts.role)
            span = Span(*place, called.get(facts.call_id, ""), turn=beside.turn, round=beside.round)
            draft.insert(span, before=before)


def _tools_again(draft: Draft, editor: Editor, sent: Sent) -> None:
    for span in draft.tools:
        raw = sent.tools.get(span.item.key)
        if raw == b"":
            draft.remove(span.id)
            editor.record_replay("tools", span, 0, "left out since the epoch began")
        elif raw is not None:
            item = Item.of(raw)
            draft.put(msgspec.structs.replace(span, item=item, shortened=True))
            editor.record_replay("tools", span, draft.cost(span, item), "said shorter since the epoch began")
    if sent.own and not is_taken(draft):
        span = offer(draft)
        editor.record_replay("read-back", span, span.tokens, "offered since the first original was taken out")


def offered_key(draft: Draft) -> bytes:
    """A digest of all tools that the client offers."""
    return sha256(b"".join([item.key for item in draft.prompt.tools])).digest()[:16] if draft.prompt.tools else b""


def noted(draft: Draft, editor: Editor, recorded: Recorded | None, epoch: Epoch, policy: str) -> Node | None:
    """What this request adds to what is recorded; None: nothing, or the same request was recorded before."""
    if recorded is not None and recorded.count == len(draft.prompt.messages) and not recorded.moved:
        return None
    whole = recorded is None or not recorded.count or recorded.moved or epoch is not recorded.epoch
    groups = draft.placed()
    decided = {span: one for one in editor.decisions if one.outcome == "applied" for span in one.spans}
    made: dict[int, Made] = {}
    groups[-1] = _lasting(groups[-1])
    for index, spans in enumerate(groups, FRONT):
        received = draft.prompt.messages[index] if index >= 0 else None
        if not whole and recorded is not None and index < recorded.count:
            continue
        if received is not None and len(spans) == 1 and spans[0].item is received:
            continue
        if received is None and not spans:
            continue
        made[index] = _made(index, received, spans, decided)
    sent = _sent(draft, recorded) if whole else Sent()
    begins = recorded is None or not recorded.count
    if not made and (not whole or (begins and not sent.tools and not sent.own)):
        return None
    earlier = FRONT if whole or recorded is None else recorded.reminded
    reminded = max((at for at, one in made.items() if _reminds(one)), default=earlier)
    since = UNSAID if whole or recorded is None else recorded.count
    return Node(len(draft.prompt.messages), epoch, made, sent, policy, whole, reminded, since=since)


def _lasting(last: Sequence[Span]) -> list[Span]:
    """A repair behind the last message answers calls whose results may still come: it is not remembered."""
    return [span for span in last if span.id[0] != "n" or not span.is_result]


def _made(index: int, received: Item | None, spans: Sequence[Span], decided: dict[str, Decision]) -> Made:
    why = decided.get(f"m{index}" if received else "n-head")
    step, because = (why.step, why.because) if why else ("repair", "a repair stands behind it")
    key = received.key if received else b""
    raws = tuple(span.item.raw for span in spans)
    if not spans or received is None:
        return Made(raws, step, because, key=key)
    span = spans[0]
    bare = span.bare.raw if span.bare is not None and span.bare.raw != received.raw else b""
    merged = tuple((bucket.value, tokens) for bucket, tokens in span.merged)
    return Made(raws, step, because, bare, merged, span.elided, span.shortened, key)


def _reminds(made: Made) -> bool:
    return any(bucket == Bucket.REMINDER.value for bucket, _ in made.merged)


def _sent(draft: Draft, recorded: Recorded | None) -> Sent:
    live = {span.id: span for span in draft.tools}
    tools: dict[bytes, bytes] = {}
    for index, item in enumerate(draft.prompt.tools):
        span = live.get(f"t{index}")
        if span is None:
            tools[item.key] = b""
        elif span.item is not item:
            tools[item.key] = span.item.raw
    own = OWN_TOOL in live or (recorded is not None and recorded.sent.own)
    return Sent(offered_key(draft), tools, own)
