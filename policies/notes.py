"""The one note that stands where older rounds and messages were (DESIGN 8)."""

from collections import Counter as Tally

from policies.draft import Draft
from policies.editor import Editor
from policies.plan import Inject
from policies.spans import Bucket, Span
from policies.stubs import window_note

NOTE_TOKENS = 240  # kept free for it
DIGEST_TOKENS = 120


def note(draft: Draft, editor: Editor) -> Inject | None:
    """What left the conversation: how much, which tools were called, which identifiers were seen. None: nothing did."""
    dropped = editor.dropped()
    if not dropped:
        return None
    rounds = {span.round for span in dropped if span.round >= 0}
    tokens = sum(span.tokens for span in dropped)
    calls = Tally(name for span in dropped for name in draft.facts(span).call_names)
    text = "\n".join(_said(draft, span) for span in dropped)
    said = window_note(len(rounds), tokens, dict(calls), text=text, cap=DIGEST_TOKENS, measure=draft.measure)
    return Inject(said, "note", Bucket.SUMMARY, f"{len(dropped)} older messages were dropped")


def _said(draft: Draft, span: Span) -> str:
    message = draft.message(span)
    return message.text + "".join(call.arguments for call in message.calls)
