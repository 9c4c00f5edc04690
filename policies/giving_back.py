"""What was freed without need is given back, until the prompt holds enough (issue 2, bar 2)."""

from collections.abc import Sequence

from policies.checks import checked
from policies.draft import Draft
from policies.editor import Editor, Entry
from policies.messages import with_text
from policies.plan import Leaf, Rewrite
from policies.spans import Bucket, Span, Tier
from policies.texts.shrinking import shrink

ENOUGH = 0.63  # of the limit: a prompt that had to be cut is not cut further than this where its spans allow it
NEAR, WIDER = 0.95, 1.25  # of what is enough: as good as that, and what is asked for instead
LEAST_REGROWTH = 32  # tokens
TO_A_LENGTH = ("fold-json", "clip", "elide", "fit")  # steps whose result could have had another length
SHORTER = ("fold-json", "clip")  # steps that shorten what is large before older results go
TRIES = 12  # rounds of taking edits back, at most


def give_back(draft: Draft, editor: Editor, *, newest: int | None = None) -> None:
    """Takes edits back, and says what is still short at greater length. With a `newest` the newest round stays as it
    came where it fits so, else as much of it as brings the prompt to so many tokens, whatever its target.

    Folds come in steps: where the last one left too little, the next is asked for with more room than is needed.
    """
    editor.leaf = Leaf.RESULTS
    if newest is not None:
        _spare_newest(draft, editor)
    enough = int(ENOUGH * draft.limit)
    _give_back(draft, editor, min(enough, draft.target) + draft.reserved)  # a policy may ask for less
    if newest is not None:
        _give_back(draft, editor, min(enough, newest), newest=True)


def _give_back(draft: Draft, editor: Editor, enough: int, *, newest: bool = False) -> None:
    """Until the prompt holds enough; of the `newest` round alone only the length is given back."""
    _give_back_until(draft, editor, enough, newest=newest)
    if draft.total < NEAR * enough:
        _give_back_until(draft, editor, min(draft.limit, int(WIDER * enough)), newest=newest)


def _spare_newest(draft: Draft, editor: Editor) -> None:
    before = editor.snapshot()
    editor.spare_newest(SHORTER, draft.limit)
    draft.rebill()
    if draft.total > draft.limit:
        editor.restore(before)


def _give_back_until(draft: Draft, editor: Editor, enough: int, *, newest: bool) -> None:
    """Each round is counted again: together the edits may cost more, or less, than each was said to (a parallel round
    is one list, the first tool brings the frame of all). A round that did not fit is undone, and the edit of it that
    was furthest off is taken to cost as much more as was missed, so that the next round tries another.
    """
    for _ in range(TRIES if draft.total <= draft.limit else 0):
        before, total = editor.snapshot(), draft.total
        taken = [] if newest else editor.refill(draft.limit, enough)
        _regrow(draft, editor, min(draft.limit, enough), newest=newest)
        expected = draft.total
        draft.rebill()
        if draft.total <= draft.limit:
            if draft.total == total and not taken:
                return
            if any(entry.before[0].bucket is Bucket.TOOLS for entry in taken):
                editor.cost_as_said()
            continue
        missed, cost = draft.total - min(expected, draft.limit), draft.total - total
        culprit = _furthest_off(draft, taken)
        editor.restore(before)
        if culprit is not None:
            editor.costs_more(culprit, missed)
        else:  # what was said at greater length cost more than that: so much less is asked for
            enough = total + int(NEAR * (enough - total) * (draft.limit - total) / cost)


def _furthest_off(draft: Draft, taken: Sequence[Entry]) -> Entry | None:
    """Of the edits taken back, that whose spans cost most beyond what was thought; a tool where none of them does."""

    def beyond(entry: Entry) -> tuple[int, bool]:
        live = [draft.get(span.id) for span in entry.before]
        now = sum(span.tokens for span in live if span is not None)
        return now - sum(span.tokens for span in entry.before), entry.before[0].bucket is Bucket.TOOLS

    return max(taken, key=beyond, default=None)


def _regrow(draft: Draft, editor: Editor, enough: int, *, newest: bool) -> None:
    """Say the newest shortened results at greater length, where whole ones would be too much; with `newest` those of
    the newest round alone."""
    shortened_by = {span: one.step for one in editor.decisions if one.outcome == "applied" for span in one.spans}
    for span in reversed([one for one in draft.messages if one.is_result and (one.tier is Tier.L1 or not newest)]):
        room = enough - draft.total
        if room <= LEAST_REGROWTH:
            return
        loose = span.id not in editor.firm and shortened_by.get(span.id) in TO_A_LENGTH
        if loose and (span.shortened or span.elided) and not draft.facts(draft.received(span)).media:
            keep = draft.facts(span).tokens + int(room * _alone(draft, draft.received(span)))
            longer = shrink(draft.original(span), span.name, keep, draft.measure, draft.back(span))
            why = "said at the length there is room for"
            raw, check = with_text(span.item.raw, longer), checked(draft.original(span), longer)
            editor.regrow("fit", Rewrite(span.id, raw, why, check))


def _alone(draft: Draft, span: Span) -> float:
    """What a result costs by itself, as a share of what it costs where it stands: in a parallel round's list its text
    may be escaped, and cost a multiple."""
    return min(1.0, draft.facts(span).tokens / max(1, span.tokens))
