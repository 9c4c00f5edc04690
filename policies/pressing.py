"""Level by level until enough was freed; what was freed without need is given back."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass

from policies.budget import Pressure, fixed_tokens
from policies.draft import Draft
from policies.editor import Editor
from policies.giving_back import give_back
from policies.grammar import mend
from policies.needs import Ask, Asking, Reply
from policies.notes import note_tokens, spared
from policies.placing import reserve
from policies.plan import ORDER, Edit, Inject, Leaf, Level
from policies.policy import LevelRule, Policy
from policies.recorded import Epoch, Recorded
from policies.replay import freeze_sent, thaw
from policies.spans import Span
from policies.step import Step, acts_always

MOST_PROPOSALS, PROPOSALS_A_SPAN = 1_000, 20  # of a step at a level: ours make a tenth of these


LEAST_FREED = 0.15  # of the room: an epoch that frees less is not opened unless the prompt does not fit without
WEAK = 0.05  # of the room: what two epochs in a row must free more than


@dataclass
class Pressing:
    """One request on its way to its limit. `epoch` is what it opens, None where earlier decisions stand."""

    draft: Draft
    editor: Editor
    policy: Policy
    recorded: Recorded | None  # None: nobody remembers what is decided
    injections: list[Inject]
    epoch: Epoch | None = None

    @property
    def due(self) -> list[Inject]:
        """What is to be put in now: all of it where nothing stands yet, else a reminder that fell too far behind."""
        if self.recorded is None or not self.recorded.count or self.epoch is not None:
            return self.injections
        behind = sum(span.tokens for span in self.draft.messages if _after(span, self.recorded.reminded))
        return [one for one in self.injections if one.place == "tail" and behind > one.every]

    def run(self) -> Asking[list[str]]:
        """Edits the draft until it is under its limit, or every licensed step was asked. The names of broken steps."""
        self.draft.steps = frozenset(step.name for step in self.policy.steps)
        self.draft.reserved = reserve(self.draft, self.due)
        failed = yield from _always(self.draft, self.editor, self.policy)
        failed += yield from self._at_first_sight()
        if self._entered(ORDER[0]):
            failed += yield from self._open()
        if self.epoch is None and self.recorded is not None and self.recorded.count:
            self.draft.level = self.recorded.epoch.level
        return failed

    def _at_first_sight(self) -> Asking[list[str]]:
        """Large results are said shorter once, before they were ever sent: that breaks no cached prefix (DESIGN 5)."""
        draft, failed = self.draft, list[str]()
        begins = self.policy.first_sight
        if self.recorded is None or begins is None:
            return failed
        if not self.recorded.count and _pressure(draft, self.policy).value < begins:
            return failed
        frozen = draft.frozen
        freeze_sent(draft)
        draft.at_first_sight = True
        for step in self.policy.steps:
            lasting = getattr(step, "reversible", False) or self.recorded.epoch.number > 0
            if step.leaf is Leaf.RESULTS and hasattr(step, "when") and lasting and not acts_always(step):
                failed += yield from run_step(draft, self.editor, step)
        draft.at_first_sight = False
        draft.frozen = frozen
        return failed

    def _open(self) -> Asking[list[str]]:
        """An epoch: everything may change. It is given up where it frees too little and the prompt fits as it was."""
        draft, editor = self.draft, self.editor
        before, total, level = editor.snapshot(), draft.total, draft.level
        if draft.frozen:
            thaw(draft)
            draft.reserved = reserve(draft, self.injections)
        failed = yield from self._levels()
        room, freed = max(1, _pressure(draft, self.policy).room), total - draft.total
        forced = total > draft.limit
        if self.recorded is not None and not forced and freed < LEAST_FREED * room:
            editor.restore(before)
            draft.level = level
            return failed
        earlier = self.recorded.epoch if self.recorded is not None else None
        weak = (earlier.weak if earlier else 0) + 1 if freed < WEAK * room else 0
        number = earlier.number + 1 if earlier else 1
        why = "forced" if forced else "pressure"
        self.epoch = Epoch(number, draft.level, why, len(draft.prompt.messages), freed, weak)
        return failed

    def _levels(self) -> Asking[list[str]]:
        """Level by level until enough was freed."""
        draft, editor, failed = self.draft, self.editor, list[str]()
        for level in ORDER:
            draft.reserved -= spared(draft, level)
            if not self._entered(level):
                break
            if level is ORDER[0]:
                mend(draft, editor)
            if level is Level.HISTORY:
                draft.reserved += note_tokens(draft.limit)
            pressure = _pressure(draft, self.policy)
            draft.level = level
            draft.target = min(draft.limit, pressure.target(self._rule(level, pressure).free_to))
            for step in self.policy.steps:
                if step.level in ORDER[: ORDER.index(level) + 1] and not acts_always(step):
                    failed += yield from run_step(draft, editor, step)
        if editor.changed and draft.level is not Level.NONE:
            give_back(draft, editor)
        return failed

    def _entered(self, level: Level) -> bool:
        draft = self.draft
        if level is Level.EMERGENCY and self.policy.against == "room":
            return draft.total > draft.limit
        pressure = _pressure(draft, self.policy)
        return draft.total > draft.limit or pressure.value >= self._rule(level, pressure).enter

    def _rule(self, level: Level, pressure: Pressure) -> LevelRule:
        rule = self.policy.levels[level]
        return rule.alone if self.recorded is None else rule.at(pressure.room)


def _after(span: Span, index: int) -> bool:
    return span.id[0] == "m" and int(span.id[1:]) > index


def _always(draft: Draft, editor: Editor, policy: Policy) -> Asking[list[str]]:
    """The steps that do not wait for pressure. What they do stays, whatever is given back later."""
    failed: list[str] = []
    for step in policy.steps:
        if acts_always(step):
            failed += yield from run_step(draft, editor, step)
    if editor.changed:
        mend(draft, editor)
        editor.settle()
    return failed


def run_step(draft: Draft, editor: Editor, step: Step) -> Asking[list[str]]:
    """Ask one step for its edits and apply them; pass its questions on. A broken step is skipped: the draft stays as it
    was before."""
    before = editor.snapshot()
    editor.leaf = step.leaf
    reply: Reply | None = None
    left = MOST_PROPOSALS + PROPOSALS_A_SPAN * len(draft.spans)
    try:
        proposals = step.edits(draft)
        while (proposal := _next(proposals, reply)) is not None:
            if (left := left - 1) < 0:
                raise RuntimeError("it proposes without end")
            if isinstance(proposal, Ask):
                reply = editor.charged((yield proposal))
            else:
                reply = None
                editor.apply(step.name, proposal)
    except Exception:  # whatever a step, third-party ones too, may raise: it is skipped and counted (DESIGN 1.7)
        editor.restore(before)
        return [step.name]
    draft.rebill()
    return []


def _next(proposals: Iterator[Edit | Ask], reply: Reply | None) -> Edit | Ask | None:
    try:
        return proposals.send(reply) if isinstance(proposals, Generator) else next(proposals)
    except StopIteration:
        return None


def _pressure(draft: Draft, policy: Policy) -> Pressure:
    if policy.against == "window" and draft.window is not None:
        return Pressure(draft.total, 0, draft.window)
    fixed = fixed_tokens(draft.spans, draft.overhead, draft.tools_cap)
    return Pressure(draft.total, fixed + draft.reserved, draft.limit)
