"""One step is asked for its edits, and cannot do harm by it."""

from collections.abc import Generator, Iterator

from policies.draft import Draft
from policies.editor import Editor
from policies.needs import Ask, Asking, Reply
from policies.plan import Edit
from policies.policy import Policy
from policies.step import Step, acts_always

MOST_PROPOSALS, PROPOSALS_A_SPAN = 1_000, 20  # of a step at a level: ours make a tenth of these


def run_always(draft: Draft, editor: Editor, policy: Policy) -> Asking[list[str]]:
    """The steps that do not wait for pressure. The names of broken ones."""
    failed: list[str] = []
    for step in policy.steps:
        if acts_always(step):
            failed += yield from run_step(draft, editor, step)
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
