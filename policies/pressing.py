"""Level by level until enough was freed; what was freed without need is given back."""

from dataclasses import dataclass
from typing import NamedTuple

from policies.asking import run_always, run_step
from policies.budget import Pressure, fixed_tokens
from policies.draft import Draft
from policies.editor import Editor, Snapshot
from policies.giving_back import give_back
from policies.grammar import mend
from policies.needs import Asking
from policies.notes import note_tokens, spared
from policies.placing import reserve
from policies.plan import ORDER, Inject, Level
from policies.policy import LevelRule, Policy
from policies.policy_rules import LARGE_ROOM
from policies.recorded import Epoch, Recorded
from policies.refs import Refs
from policies.replay import freeze_sent, offered_key, thaw
from policies.spans import Span
from policies.spilling import is_offered, originals, own_tokens
from policies.step import acts_always, introduce, looks_at_first_sight
from policies.triage import in_turn

LEAST_FREED = 0.15  # of the room: an epoch that frees less goes on to `history`, or is not opened where it need not be
WEAK = 0.05  # of the room: two epochs in a row that free less than this bring the next level with them
PRESSED = ("forced", "pressure")  # why an epoch was opened that was to free something
HIGH_FLOOR = 0.8  # of the limit: where no step may take as much, an epoch could free next to nothing


class _State(NamedTuple):
    """A request on its way, to go back to."""

    snapshot: Snapshot
    level: Level
    target: int
    reserved: int
    refs: Refs | None
    tool: int
    epoch: Epoch | None
    settled: frozenset[str]


@dataclass
class Pressing:
    """One request on its way to its limit. `epoch` is what it opens, None where earlier decisions stand."""

    draft: Draft
    editor: Editor
    policy: Policy
    recorded: Recorded | None  # None: nobody remembers what is decided
    injections: list[Inject]
    refs: Refs | None = None  # None: no new refs
    epoch: Epoch | None = None
    tool: int = 0  # tokens, kept free for our own tool, which is to be offered if refs stand in the end
    high_floor: bool = False  # what no step may take leaves little to free

    @property
    def again(self) -> bool:
        """The same request was sent before: it is sent as it was."""
        return self.recorded is not None and self.recorded.count == len(self.draft.prompt.messages) > 0

    @property
    def due(self) -> list[Inject]:
        """What is to be put in now: all of it where nothing stands yet, else a reminder that fell too far behind."""
        if self.recorded is None or not self.recorded.count or self.epoch is not None:
            return self.injections
        if self.again:
            return []
        behind = sum(span.tokens for span in self.draft.messages if _after(span, self.recorded.reminded))
        return [one for one in self.injections if one.place == "tail" and behind > one.every]

    def run(self) -> Asking[list[str]]:
        """Edits the draft until it is under its limit, or every licensed step was asked. The names of broken steps."""
        draft, policy = self.draft, self.policy
        introduce(policy.steps, draft)
        draft.reserved = reserve(draft, self.due)
        failed = list[str]()
        if self.again:
            self.mend()  # what answers its last calls for now is not remembered
        if not self.again or draft.total > draft.limit:
            failed = yield from self._spilling()
        if draft.level is Level.NONE and self.recorded is not None:
            draft.level = self.recorded.epoch.level
        return failed

    def begin(self, refs: Refs | None) -> None:
        """A client that changed its own prefix, or its tools, which stand in front of it, opens an epoch itself. What
        nobody will remember gets no ref: the tool that reads it could not be offered again."""
        recorded, draft = self.recorded, self.draft
        if recorded is not None and not self.again:
            self.refs = refs
        if recorded is None or not recorded.count:
            return
        if recorded.moved:
            self.epoch = recorded.epoch
        elif recorded.sent.offered != offered_key(draft):
            number, count = recorded.epoch.number + 1, len(draft.prompt.messages)
            self.epoch = Epoch(number, recorded.epoch.level, "client", count)
        if self.epoch is not None:
            thaw(draft)

    def mend(self) -> bool:
        """Repairs what is going to be edited; whether it is."""
        edited = self.editor.changed or bool(self.due)
        if edited:
            mend(self.draft, self.editor)
        return edited

    def _spilling(self) -> Asking[list[str]]:
        """With a way back to all that goes; without, where the prompt would not fit because of it, or only in an
        emergency that is none without."""
        draft, before = self.draft, self._state()
        failed = yield from self._pressed()
        fits, gentle = draft.total <= draft.limit, draft.level is not Level.EMERGENCY
        if self.refs is None or (fits and gentle):
            return failed
        made = self._state()
        self._restore(before)
        self.refs = None
        plain = yield from self._pressed()
        if not fits or draft.level is not Level.EMERGENCY:
            return plain
        self._restore(made)
        return failed

    def _pressed(self) -> Asking[list[str]]:
        failed = yield from self._always()
        mended = self.mend()
        self.editor.settle()
        failed += yield from self._at_first_sight()
        if not mended:
            self.mend()
        if self._entered(ORDER[0]) and not self._is_stopped():
            failed += yield from self._open()
        return failed

    def _is_stopped(self) -> bool:
        """What no step may take fills so much that an epoch would only lead to the next: none is opened while the
        prompt fits as it is, and the operator is told."""
        draft = self.draft
        floor = fixed_tokens(draft.spans, draft.overhead, draft.tools_cap) + draft.reserved
        self.high_floor = floor > HIGH_FLOOR * draft.limit
        return self.high_floor and self.recorded is not None and draft.total <= draft.limit

    def _always(self) -> Asking[list[str]]:
        """The steps that do not wait for pressure. What they do stays, whatever is given back later. The first refs
        that they leave open an epoch: the tool that reads them stands in front of all messages."""
        draft, editor, recorded = self.draft, self.editor, self.recorded
        if self.refs is not None:
            self._promise()
        gone = len(editor.dropped())
        failed = yield from run_always(draft, editor, self.policy)
        if self._tool_needed(gone) and recorded is not None and self.epoch is None:
            self.epoch = Epoch(recorded.epoch.number + 1, recorded.epoch.level, "refs", len(draft.prompt.messages))
            thaw(draft)
            draft.reserved = reserve(draft, self.injections) + self.tool
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
        freeze_sent(draft, begun=self.recorded.count > 0)
        draft.at_first_sight = True
        for step in self.policy.steps:
            if looks_at_first_sight(step, self.recorded.epoch.number):
                failed += yield from run_step(draft, self.editor, step)
        draft.at_first_sight = False
        draft.frozen = frozen
        return failed

    def _open(self) -> Asking[list[str]]:
        """An epoch: everything may change. It is given up where it frees too little and the prompt fits as it was."""
        draft, before, total = self.draft, self._state(), self.draft.total
        if draft.frozen:
            thaw(draft)
            draft.reserved = reserve(draft, self.injections)
        if self.refs is not None:
            self._promise()
        failed = yield from self._levels()
        self._tool_needed()
        room, freed = max(1, _pressure(draft, self.policy).room), total - draft.total
        forced = total > draft.limit
        if self.recorded is not None and not forced and freed < LEAST_FREED * room:
            self._restore(before)
            return failed
        earlier = self.recorded.epoch if self.recorded is not None else None
        number = earlier.number + 1 if earlier else 1
        why = PRESSED[0] if forced else PRESSED[1]
        self.epoch = Epoch(number, draft.level, why, len(draft.prompt.messages), freed)
        return failed

    def _promise(self) -> None:
        """From here on a way back may stand for what goes; there is room for the tool that belongs to it."""
        draft = self.draft
        draft.refs = self.refs
        if not self.tool and not is_offered(draft):
            self.tool = own_tokens(draft)
            draft.reserved += self.tool

    def _tool_needed(self, gone: int = 0) -> bool:
        """Whether our tool is to be offered now, since originals were taken out, or more messages dropped than were
        `gone`; where nothing needs it, its room is given back."""
        if self.tool and len(self.editor.dropped()) <= gone and not originals(self.draft, self.recorded):
            self.draft.refs = None
            self.draft.reserved -= self.tool
            self.tool = 0
        return self.tool > 0

    def _state(self) -> "_State":
        draft = self.draft
        level, settled = (draft.level, draft.target, draft.reserved), frozenset(draft.settled)
        return _State(self.editor.snapshot(), *level, draft.refs, self.tool, self.epoch, settled)

    def _restore(self, state: "_State") -> None:
        draft = self.draft
        self.editor.restore(state.snapshot)
        draft.level, draft.target, draft.reserved = state.level, state.target, state.reserved
        draft.refs, self.tool, self.epoch = state.refs, state.tool, state.epoch
        draft.settled = set(state.settled)

    def _levels(self) -> Asking[list[str]]:
        """Level by level until enough was freed."""
        draft, editor, failed, total = self.draft, self.editor, list[str](), self.draft.total
        for level in ORDER:
            draft.reserved -= spared(draft, level)
            is_first = level is ORDER[0]  # what led to the epoch may be text of ours, which is to be put in again
            if not (is_first or self._entered(level) or self._escalates(level, total - draft.total)):
                break
            if level is ORDER[0]:
                mend(draft, editor)
            if level is Level.HISTORY:
                draft.reserved += note_tokens(draft.limit) + draft.back_tokens
            pressure = _pressure(draft, self.policy)
            draft.level = level
            draft.target = min(draft.limit, pressure.target(self._rule(level, pressure).free_to))
            for step in in_turn(self.policy.steps, draft, self.policy.shares):
                if step.level in ORDER[: ORDER.index(level) + 1] and not acts_always(step):
                    failed += yield from run_step(draft, editor, step)
        if editor.changed and draft.level is not Level.NONE:
            alone_to = self.policy.levels[draft.level].alone.free_to
            gentle = min(draft.limit, _pressure(draft, self.policy).target(alone_to))
            is_spared = self.recorded is None or draft.limit < LARGE_ROOM
            give_back(draft, editor, newest=gentle if is_spared else None)
        return failed

    def _entered(self, level: Level) -> bool:
        draft = self.draft
        if level is Level.EMERGENCY and self.policy.against == "room":
            return draft.total > draft.limit
        pressure = _pressure(draft, self.policy)
        return draft.total > draft.limit or pressure.value >= self._rule(level, pressure).enter

    def _escalates(self, level: Level, freed: int) -> bool:
        """The epoch frees too little so far, which would only lead to the next: `history` comes at once, and a level
        more than the last time where that freed next to nothing, too."""
        if self.recorded is None or level is Level.EMERGENCY:
            return False
        earlier, room = self.recorded.epoch, _pressure(self.draft, self.policy).room
        if level is Level.HISTORY and freed < LEAST_FREED * room:
            return True
        is_next = earlier.because in PRESSED and ORDER[ORDER.index(level) - 1] is earlier.level
        return is_next and max(freed, earlier.freed) < WEAK * room

    def _rule(self, level: Level, pressure: Pressure) -> LevelRule:
        rule = self.policy.levels[level]
        if self.recorded is None:
            return rule.alone
        usual = rule.at(pressure.room)
        if self.refs is not None or self.draft.limit >= LARGE_ROOM:
            return usual
        return LevelRule(usual.enter, max(usual.free_to, min(usual.enter, rule.alone.free_to)))  # no way back


def _after(span: Span, index: int) -> bool:
    return span.id[0] == "m" and int(span.id[1:]) > index


def _pressure(draft: Draft, policy: Policy) -> Pressure:
    if policy.against == "window" and draft.window is not None:
        return Pressure(draft.total, 0, draft.window)
    fixed = fixed_tokens(draft.spans, draft.overhead, draft.tools_cap)
    return Pressure(draft.total, fixed + draft.reserved, draft.limit)
