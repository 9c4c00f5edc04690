"""The one note that stands where older rounds and messages were (DESIGN 8).

With a ref, the messages that left since the last epoch are stored as they were received, one a line. The note names the
refs of those that left before, too; the first line that is stored says how to read the next older ones.
"""

import re
from collections import Counter as Tally
from collections.abc import Iterator, Sequence

from policies.conclusions import conclusions
from policies.draft import Draft
from policies.editor import Editor
from policies.jsonraw import dumps
from policies.naming import Seen
from policies.needs import Asking
from policies.placing import OVERHEAD
from policies.plan import Inject, Level
from policies.recorded import Recorded
from policies.spans import Bucket, Span
from policies.spilling import is_offered
from policies.summaries import said, summary
from policies.texts.digest import digest
from policies.texts.stubs import GONE, Left, by_ref, window_note

MOST_TOKENS, LEAST_TOKENS = 240, 80  # kept free for it: a sixteenth of the limit between these bounds
FRAME_TOKENS = 120  # the note without its digest
MOST_DIGEST, SPENT = 320, 4  # tokens of its digest at most; of what an epoch left free it may take a fourth
MOST_CONCLUDED = 480  # tokens of what turns came to; as much of what is free again
BARE_TOKENS = 40  # its first sentence alone, and what it costs to merge it

MOST_EARLIER = 8  # refs of what left at earlier epochs that the note names

_BEFORE = ", and what left before that: "
_SOME = "shows those that left first"
_OURS = re.compile(
    rb' tokens\) (?:is|are) %b(?:, read_tool_result\(ref=\\"(?P<ref>tr_[0-9a-f]+)\\"\) '
    rb"(?:%b|shows them(?P<all>)(?:%b(?P<more>(?:[ ,]*tr_[0-9a-f]+)+))?))?"
    % (GONE.encode(), _SOME.encode(), _BEFORE.encode())
)  # a note stands before the text it was merged into: the first match is ours, whatever the client's text says


def note_tokens(limit: int) -> int:
    """Room for the note under a limit, without the way back."""
    return max(LEAST_TOKENS, min(MOST_TOKENS, limit // 16))


def spared(draft: Draft, level: Level) -> int:
    """Tokens of the room for the note that are given up before a level: where the prompt then fits, one sentence of
    what left rather than an emergency."""
    if level is not Level.EMERGENCY:
        return 0
    spare = note_tokens(draft.limit) + draft.back_tokens - BARE_TOKENS
    return spare if draft.limit < draft.total <= draft.limit + spare else 0


def note(
    draft: Draft, editor: Editor, reserved: int = 0, recorded: Recorded | None = None
) -> Asking[tuple[Inject, ...]]:
    """What left the conversation, the better note first: with a side model's summary, if there is one that passes its
    checks; else how much, which tools were called, which identifiers were seen, what turns came to; else less of it.
    Empty: nothing left.

    `reserved` are tokens to keep free for what is placed after it.
    """
    dropped = editor.dropped()
    if not dropped:
        return ()
    why = f"{len(dropped)} older messages were dropped"
    ways = _ways(draft, editor, recorded)
    free = draft.limit - draft.total - reserved
    told = conclusions(draft, dropped, min(MOST_CONCLUDED, free // SPENT))
    names = _names(draft, dropped, free)
    texts = dict.fromkeys(form for backs in (ways, ("",)) for form in _forms(draft, dropped, backs, names, told))
    plain = tuple(Inject(text, "note", Bucket.SUMMARY, why) for text in texts)
    frame = _frame(draft, dropped, ways[0] if ways else "").removesuffix("]")
    made = yield from summary(draft, editor, frame, draft.limit - draft.total - reserved - OVERHEAD)
    if made is None:
        return plain
    text = f"{frame}\n{made.text}]"
    return (Inject(text, "note", Bucket.SUMMARY, f"{why}, and a side model summed them up", made.check), *plain)


def _ways(draft: Draft, editor: Editor, recorded: Recorded | None) -> tuple[str, ...]:
    """The way back to what left, the longer one first, which spares a model the steps from one transcript to the next.
    Where none may be promised, that to what left before."""
    known, earlier = _earlier(recorded)
    before = {span.id for span in editor.replayed} if earlier else frozenset()
    gone = draft.in_order([span for span in editor.dropped() if span.id not in before])
    left = [draft.received(span).item.raw for span in gone]
    if not left:
        return _with_earlier(by_ref(earlier[0]), earlier[1:]) if earlier else ()
    lines = [raw.replace(b"\n", b" ").replace(b"\r", b" ") for raw in left]  # between its tokens: strings have none
    first = [dumps({"earlier": by_ref(earlier[0])})] if earlier else []
    way = draft.by_ref(b"\n".join([*first, *lines]).decode("utf-8", "surrogatepass"))
    if way:
        return _with_earlier(way, earlier)
    return (f'read_tool_result(ref="{known}") {_SOME}',) if known and is_offered(draft) else ()


def _with_earlier(newest: str, earlier: Sequence[str]) -> tuple[str, ...]:
    return (newest + _BEFORE + ", ".join(earlier[:MOST_EARLIER]), newest) if earlier else (newest,)


def _earlier(recorded: Recorded | None) -> tuple[str, list[str]]:
    """The ref in the note that stood in the last request, and all that it named, newest first, where these show
    whatever had left by then."""
    made = recorded.made.values() if recorded is not None else ()
    noted = [one.raws[0] for one in made if any(bucket == Bucket.SUMMARY.value for bucket, _ in one.merged)]
    found = next((match for match in map(_OURS.search, noted) if match), None)
    if found is None or found["ref"] is None:
        return "", []
    known = found["ref"].decode()
    more = (found["more"] or b"").decode().replace(",", " ").split()
    return known, [known, *more] if found["all"] is not None else []


def _forms(draft: Draft, dropped: Sequence[Span], backs: Sequence[str], names: str | None, told: str) -> Iterator[str]:
    """The better ones first: a longer way back counts for more than what was `told` of turns."""
    for back in backs:
        plain = _frame(draft, dropped, back, calls=names is not None, names=names or "")
        if told:
            yield f"{plain.removesuffix(']')}\n{told}]"
        yield plain
    for back in backs:
        yield _frame(draft, dropped, back, calls=False)


def _names(draft: Draft, dropped: Sequence[Span], free: int) -> str | None:
    """What all that went named and nothing that stays says, None where there is no room for it."""
    cap = note_tokens(draft.limit) - FRAME_TOKENS
    if cap <= 0:
        return None
    text = "\n".join(said(draft, draft.received(span)) for span in dropped)
    cap = max(cap, min(MOST_DIGEST, free // SPENT))
    return digest(text, cap, measure=draft.measure, seen=Seen(draft).anywhere)


def _frame(draft: Draft, dropped: Sequence[Span], back: str, *, calls: bool = True, names: str = "") -> str:
    rounds = {span.round for span in dropped if span.round >= 0}
    tokens = sum(draft.received(span).tokens for span in dropped)
    called = Tally(name for span in dropped for name in draft.facts(span).call_names)
    told = dict(called.most_common(6)) if calls else {}
    return window_note(Left(len(rounds), tokens, told), names=names, back=back)
