"""The one note that stands where older rounds and messages were (DESIGN 8)."""

from collections import Counter as Tally
from collections.abc import Sequence

from policies.draft import Draft
from policies.editor import Editor
from policies.needs import Asking
from policies.placing import OVERHEAD
from policies.plan import Inject, Level
from policies.spans import Bucket, Span
from policies.stubs import window_note
from policies.summaries import said, summary

MOST_TOKENS, LEAST_TOKENS = 240, 80  # kept free for it: a sixteenth of the limit between these bounds
FRAME_TOKENS = 120  # the note without its digest
BARE_TOKENS = 40  # its first sentence alone, and what it costs to merge it


def note_tokens(limit: int) -> int:
    """Room for the note under a limit."""
    return max(LEAST_TOKENS, min(MOST_TOKENS, limit // 16))


def spared(draft: Draft, level: Level) -> int:
    """Tokens of the room for the note that are given up before a level: where the prompt then fits, one sentence of
    what left rather than an emergency."""
    if level is not Level.EMERGENCY:
        return 0
    spare = note_tokens(draft.limit) - BARE_TOKENS
    return spare if draft.limit < draft.total <= draft.limit + spare else 0


def note(draft: Draft, editor: Editor, reserved: int = 0) -> Asking[tuple[Inject, ...]]:
    """What left the conversation, the better note first: with a side model's summary, if there is one that passes its
    checks; else how much, which tools were called, which identifiers were seen; else how much alone. Empty: nothing
    left.

    `reserved` are tokens to keep free for what is placed after it.
    """
    dropped = editor.dropped()
    if not dropped:
        return ()
    why = f"{len(dropped)} older messages were dropped"
    texts = dict.fromkeys([_plain(draft, dropped), _frame(draft, dropped, calls=False)])
    plain = tuple(Inject(text, "note", Bucket.SUMMARY, why) for text in texts)
    frame = _frame(draft, dropped).removesuffix("]")
    made = yield from summary(draft, editor, frame, draft.limit - draft.total - reserved - OVERHEAD)
    if made is None:
        return plain
    text = f"{frame}\n{made.text}]"
    return (Inject(text, "note", Bucket.SUMMARY, f"{why}, and a side model summed them up", made.check), *plain)


def _plain(draft: Draft, dropped: Sequence[Span]) -> str:
    cap = note_tokens(draft.limit) - FRAME_TOKENS
    text = "\n".join(said(draft, draft.received(span)) for span in dropped)
    return _frame(draft, dropped, calls=cap > 0, text=text, cap=max(0, cap))


def _frame(draft: Draft, dropped: Sequence[Span], *, calls: bool = True, text: str = "", cap: int = 0) -> str:
    rounds = {span.round for span in dropped if span.round >= 0}
    tokens = sum(draft.received(span).tokens for span in dropped)
    called = Tally(name for span in dropped for name in draft.facts(span).call_names)
    told = dict(called.most_common(6)) if calls else {}
    return window_note(len(rounds), tokens, told, text=text, cap=cap, measure=draft.measure)
