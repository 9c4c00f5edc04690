"""The only hand that changes a draft: guards every edit, measures it, and writes down what became of it."""

from collections.abc import Collection
from typing import Literal, NamedTuple

import msgspec

from policies.draft import Draft, DraftState
from policies.needs import Answer, Reply
from policies.plan import Action, Decision, Drop, Edit, Elide, Inject, Leaf, Pass, Refusal, Rewrite
from policies.request import Item
from policies.spans import Bucket, Evict, Span, Tier
from policies.tools import Tool

Snapshot = tuple[DraftState, list[Decision], list["Entry"]]
FROZEN = "it was sent before, and stands until the next epoch"
WHOLE = "whole rounds, and nothing that is pinned"
Outcome = Literal["applied", "undone", "refused"]


class _Told(NamedTuple):
    """What is written of an edit: the spans it names, their tokens before and after, why, and what was made sure."""

    spans: tuple[str, ...]
    before: int
    after: int
    because: str
    check: str = ""


class Entry(msgspec.Struct, frozen=True):
    """An edit that was applied, with the spans as they were and as they became (None: removed)."""

    at: int  # place of its decision in the log
    before: tuple[Span, ...]
    after: Span | None

    @property
    def capped(self) -> bool:
        """A cap asked for it, which binds however much room there is."""
        return self.before[0].bucket in (Bucket.MEMORY, Bucket.SUMMARY)


class Editor:
    """Applies edits to `draft`. `decisions` is the log, in the order things were tried."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.decisions: list[Decision] = []
        self.leaf = Leaf.NONE  # of the triage tree, to which the edits that come now belong
        self.side_tokens = 0  # what the side model's answers cost so far
        self.firm: frozenset[str] = frozenset()  # spans that were settled
        self._firm_entries = 0
        self._entries: list[Entry] = []
        self.replayed: list[Span] = []  # spans that earlier requests dropped, as they were received
        self.replays = 0  # decisions of earlier requests that stand in the draft
        self._dearer: dict[int, int] = {}  # tokens, by place in the log: see `costs_more`

    def charged(self, answer: Answer) -> Reply | None:
        """The side model's reply, its cost added to the bill."""
        if not isinstance(answer, Reply):
            return None
        self.side_tokens += answer.tokens
        return answer

    def apply(self, step: str, edit: Edit) -> None:
        """Never-worse gate: an edit that saves nothing is undone. Injections are placed by `placing`, not here."""
        if isinstance(edit, Drop):
            self._drop(step, edit)
        elif isinstance(edit, Pass):
            self._pass(step, edit)
        elif not isinstance(edit, Inject):
            self._replace(step, edit)

    def regrow(self, step: str, edit: Rewrite) -> None:
        """Put a longer form in place of a short one; still less than what was received, or it is undone."""
        self._replace(step, edit, grow=True)

    def record(self, step: str, action: Action, spans: tuple[str, ...], tokens: tuple[int, int], because: str) -> None:
        """Write down something that was done without the gate: an injection, a repair. `tokens`: before, after."""
        self.leaf = Leaf.NONE
        self._log(step, action, "applied", _Told(spans, *tokens, because))

    def record_placed(self, step: str, edit: Inject, span: str, before: int) -> None:
        """Write down an injection that now stands in `span`; `before` are tokens of the whole without it."""
        self.leaf = Leaf.TURNS if edit.place == "note" else Leaf.NONE
        told = _Told((span,), before, self.draft.total, edit.because, edit.check)
        self._log(step, Action.INJECT, "applied", told)

    def record_refusal(self, refusal: Refusal, received: int) -> None:
        """Write down that nothing is left but to refuse."""
        self.leaf = Leaf.REFUSE
        fits = all(unit["tokens"] <= refusal.limit for unit in refusal.units)
        check = f"each of {len(refusal.units)} units fits" if refusal.units and fits else ""
        why = refusal.reason or "the prompt cannot fit; it can be split"
        self._log("refuse", Action.REFUSE, "applied", _Told((), received, refusal.floor, why, check))

    def record_replay(self, step: str, span: Span, after: int, because: str) -> None:
        """Write down what an earlier request decided, and this one sends again."""
        self.replays += 1
        self.leaf = Leaf.NONE
        self._log(step, Action.REPLAY, "applied", _Told((span.id,), span.tokens, after, because))

    def refuse(self, step: str, action: Action, because: str) -> None:
        """Write down something that was not done."""
        self._log(step, action, "refused", _Told((), 0, 0, because))

    def settle(self) -> None:
        """What stands now was asked for whatever the pressure: it is not given back, nor said at greater length."""
        self.firm = frozenset(span.id for entry in self._entries for span in entry.before)
        self._firm_entries = len(self._entries)

    @property
    def changed(self) -> bool:
        """Whether an edit of a step stands: repairs and injections are no reason to touch a prompt."""
        return self.replays > 0 or any(self._stands(entry) for entry in self._entries)

    def dropped(self) -> list[Span]:
        """Messages that edits removed and that are still gone, in the order they went."""
        gone = [span for entry in self._entries if entry.after is None for span in entry.before]
        gone = [*self.replayed, *gone]
        return [span for span in gone if span.kind == "message" and self.draft.get(span.id) is None]

    def snapshot(self) -> Snapshot:
        return self.draft.snapshot(), list(self.decisions), list(self._entries)

    def restore(self, state: Snapshot) -> None:
        self.draft.restore(state[0])
        self.decisions, self._entries = list(state[1]), list(state[2])

    def refill(self, ceiling: int, enough: int) -> list[Entry]:
        """Take back edits that were not needed after all, the largest that fits first, while the total stays within
        `ceiling` and until it reaches `enough` (tokens): what was freed too much is given back to the prompt. What
        was taken back."""
        taken: list[Entry] = []
        while self.draft.total < enough:
            room = ceiling - self.draft.total
            loose = self._entries[self._firm_entries :]
            fitting = [one for one in loose if 0 < self._freed(one) <= room and not one.capped and self._stands(one)]
            if not fitting:
                break
            entry = max(fitting, key=self._freed)
            taken.append(entry)
            self._take_back(entry)
        return taken

    def spare_newest(self, steps: Collection[str], ceiling: int) -> None:
        """Take back what these steps did to results of the newest round, while the total stays within `ceiling`."""
        for entry in reversed(self._entries[self._firm_entries :]):
            newest = [span for span in entry.before[:1] if span.tier is Tier.L1 and span.is_result]
            is_meant = newest and self.decisions[entry.at].step in steps and self._stands(entry)
            if is_meant and self._freed(entry) <= ceiling - self.draft.total:
                self._take_back(entry)

    def _take_back(self, entry: Entry) -> None:
        self._entries.remove(entry)
        for span in entry.before:
            self.draft.put(span)
        decision = self.decisions[entry.at]
        because = "not needed: the rest freed enough"
        self.decisions[entry.at] = msgspec.structs.replace(decision, outcome="undone", because=because)

    def costs_more(self, entry: Entry, tokens: int) -> None:
        """To take this edit back costs so much more than its spans say. So would any other tool, where it is one: the
        first brings the frame of all."""
        tools = [one for one in self._entries if one.before and one.before[0].bucket is Bucket.TOOLS]
        alike = tools if entry in tools else [entry]
        for one in alike:
            self._dearer[one.at] = self._dearer.get(one.at, 0) + tokens

    def cost_as_said(self) -> None:
        """What was dearer, because nothing of its kind stood, stands now."""
        self._dearer.clear()

    def _freed(self, entry: Entry) -> int:
        """Tokens that it takes to take the edit back, by what stands there now."""
        live = self.draft.get(entry.before[0].id) if entry.after is not None else None
        freed = sum(span.tokens for span in entry.before) - (live.tokens if live is not None else 0)
        return freed + self._dearer.get(entry.at, 0)

    def _stands(self, entry: Entry) -> bool:
        """Nothing was built on it since: its spans are gone, or carry the bytes that it put there."""
        live = [self.draft.get(span.id) for span in entry.before]
        if entry.after is None:
            return all(span is None for span in live)
        return live[0] is not None and live[0].item is entry.after.item

    def _replace(self, step: str, edit: Rewrite | Elide, *, grow: bool = False) -> None:
        action = Action.REWRITE if isinstance(edit, Rewrite) else Action.ELIDE
        span = self.draft.get(edit.span)
        why = "" if _licensed(span, action, self.leaf) else _forbidden(span, action)
        if edit.span in self.draft.frozen:
            why = FROZEN
        if span is None or why:
            tokens = span.tokens if span else 0
            self._log(step, action, "refused", _Told((edit.span,), tokens, tokens, why))
            return
        item = Item.of(edit.raw)
        if _misshapen(self.draft, span, item):
            why = "it is not the same message or tool, said shorter"
            self._log(step, action, "refused", _Told((span.id,), span.tokens, span.tokens, why))
            return
        base = self.draft.received(span).item if grow else span.item
        before, after = self.draft.cost(span, base), self.draft.cost(span, item)
        if after >= before:
            if action is Action.ELIDE:
                self.draft.settled.add(span.id)
            self._log(step, action, "undone", _Told((span.id,), before, after, "would not save tokens"))
            return
        tokens = max(0, span.tokens - (self.draft.cost(span, span.item) - after))
        elided = action is Action.ELIDE
        changed = msgspec.structs.replace(span, item=item, tokens=tokens, elided=elided, shortened=not elided)
        self._entries.append(Entry(len(self.decisions), (span,), changed))
        self.draft.put(changed)
        self._log(step, action, "applied", _Told((span.id,), before, after, edit.because, edit.check))

    def _pass(self, step: str, edit: Pass) -> None:
        """Written down once, however often the step is asked."""
        if not any(one.step == step and one.spans == (edit.span,) for one in self.decisions):
            span = self.draft.get(edit.span)
            tokens = span.tokens if span else 0
            self._log(step, Action.PASS, "refused", _Told((edit.span,), tokens, tokens, edit.because))

    def _drop(self, step: str, edit: Drop) -> None:
        spans = tuple(span for span in map(self.draft.get, edit.spans) if span is not None)
        cost = sum(span.tokens for span in spans)
        why = _cannot_drop(self.draft, spans) if len(spans) == len(edit.spans) else "already gone"
        if not self.draft.frozen.isdisjoint(edit.spans):
            why = FROZEN
        if why:
            self._log(step, Action.DROP, "refused", _Told(edit.spans, cost, cost, why))
            return
        self._entries.append(Entry(len(self.decisions), spans, None))
        for span in spans:
            self.draft.remove(span.id)
        self._log(step, Action.DROP, "applied", _Told(edit.spans, cost, 0, edit.because, WHOLE))

    def _log(self, step: str, action: Action, outcome: Outcome, told: _Told) -> None:
        self.decisions.append(Decision(step, action, outcome, *told[:4], self.draft.level, self.leaf, told.check))


def _licensed(span: Span | None, action: Action, leaf: Leaf) -> bool:
    """Leaf 4 alone may say system text shorter, leaf 1 alone the newest user message; a policy that lists their steps
    has asked for it."""
    if span is None or action is not Action.REWRITE:
        return False
    if span.bucket is Bucket.SYSTEM:
        return leaf is Leaf.INSTRUCTIONS
    return span.tier is Tier.L1 and span.is_user and leaf is Leaf.CHUNK


def _misshapen(draft: Draft, span: Span, item: Item) -> bool:
    """Whether role, calls, what is answered or the tool's name differ: the grammar would break, an answer be lost."""
    if span.kind == "tool":
        return Tool.of(item.raw).name != Tool.of(span.item.raw).name
    was, now = draft.facts(span), draft.counter.facts(item)
    if (was.role, was.call_id) != (now.role, now.call_id):
        return True
    return (was.call_ids, was.call_names) != (now.call_ids, now.call_names)


def _forbidden(span: Span | None, action: Action) -> str:
    if span is None:
        return "already gone"
    if span.tier is Tier.L0 or span.evict is Evict.PINNED:
        return "pinned: never touched"
    if span.tier is Tier.L1 and action is Action.ELIDE:
        return "a result of the newest round may be folded, not elided"
    return ""


def _cannot_drop(draft: Draft, spans: tuple[Span, ...]) -> str:
    ids = {span.id for span in spans}
    for span in spans:
        if span.tier in (Tier.L0, Tier.L1) or span.evict is Evict.PINNED:
            return "pinned: never dropped"
        if span.round >= 0 and any(part.id not in ids for part in draft.round(span.round)):
            return "a round is dropped whole or not at all"
    return ""
