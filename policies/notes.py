"""The one note that stands where older rounds and messages were (DESIGN 8)."""

from collections import Counter as Tally

from policies.draft import Draft
from policies.editor import Editor
from policies.plan import Inject
from policies.spans import Bucket, Span
from policies.stubs import window_note

MOST_TOKENS, LEAST_TOKENS = 240, 80  # kept free for it: a sixteenth of the limit between these bounds
FRAME_TOKENS = 120  # the note without its digest


def note_tokens(limit: int) -> int:
    """Room for the note under a limit."""
    return max(LEAST_TOKENS, min(MOST_TOKENS, limit // 16))


def note(draft: Draft, editor: Editor) -> Inject | None:
    """What left the conversation: how much, which tools were called, which identifiers were seen. None: nothing did."""
    dropped = editor.dropped()
    if not dropped:
        return None
    rounds = {span.round for span in dropped if span.round >= 0}
    tokens = sum(draft.received(span).tokens for span in dropped)
    calls = Tally(name for span in dropped for name in draft.facts(span).call_names)
    text = "\n".join(_said(draft, span) for span in dropped)
    cap = note_tokens(draft.limit) - FRAME_TOKENS
    told = dict(calls.most_common(6)) if cap > 0 else {}
    said = window_note(len(rounds), tokens, told, text=text, cap=max(0, cap), measure=draft.measure)
    return Inject(said, "note", Bucket.SUMMARY, f"{len(dropped)} older messages were dropped")


def _said(draft: Draft, span: Span) -> str:
    message = draft.message(draft.received(span))
    return message.text + "".join(call.arguments for call in message.calls)
