"""Level by level until enough was freed; what was freed without need is given back."""

from policies.budget import Pressure, fixed_tokens
from policies.draft import Draft
from policies.editor import Editor
from policies.grammar import mend
from policies.notes import note_tokens
from policies.plan import ORDER, Level
from policies.policy import Policy
from policies.step import Step

ENOUGH = 0.63  # of the limit: a prompt that had to be cut is not cut further than this where its spans allow it
CEILINGS = (0.99, 0.9)  # of the limit: how far edits that were not needed may be taken back; the second if it misses


def press(draft: Draft, editor: Editor, policy: Policy) -> list[str]:
    """Edits the draft until it is under its limit, or every licensed step was asked. The names of broken steps."""
    failed: list[str] = []
    for level in ORDER:
        if not _entered(draft, policy, level):
            break
        if level is ORDER[0]:
            mend(draft, editor)
        if level is Level.HISTORY:
            draft.reserved += note_tokens(draft.limit)
        draft.level, draft.target = level, _pressure(draft).target(policy.levels[level].free_to)
        for step in policy.steps:
            if step.level is not Level.NONE and ORDER.index(step.level) <= ORDER.index(level):
                failed += run_step(draft, editor, step)
    if editor.changed:
        _give_back(draft, editor)
    return failed


def run_step(draft: Draft, editor: Editor, step: Step) -> list[str]:
    """Ask one step for its edits and apply them. A broken step is skipped: the draft stays as it was before."""
    before = editor.snapshot()
    try:
        for edit in step.edits(draft):
            editor.apply(step.name, edit)
    except Exception:  # whatever a step, third-party ones too, may raise: it is skipped and counted (DESIGN 1.7)
        editor.restore(before)
        return [step.name]
    draft.rebill()
    return []


def _entered(draft: Draft, policy: Policy, level: Level) -> bool:
    if level is Level.EMERGENCY:
        return draft.total > draft.limit
    return draft.total > draft.limit or _pressure(draft).value >= policy.levels[level].enter


def _pressure(draft: Draft) -> Pressure:
    return Pressure(draft.total, fixed_tokens(draft.spans, draft.overhead, draft.limit) + draft.reserved, draft.limit)


def _give_back(draft: Draft, editor: Editor) -> None:
    before = editor.snapshot()
    for ceiling in CEILINGS:
        editor.refill(int(ceiling * draft.limit), int(ENOUGH * draft.limit))
        draft.rebill()
        if draft.total <= draft.limit:
            return
        editor.restore(before)  # spans cost more together than the sum of their estimates
