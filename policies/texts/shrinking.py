"""A tool result said in about so many tokens, whatever it is: JSON stays JSON, text stays text."""

from policies.jsonraw import dumps, loads
from policies.texts.clipping import clip
from policies.texts.digest import Measure
from policies.texts.folding import fold_json
from policies.texts.stubs import Naming, stub

DIGEST_TOKENS = 120
STUB_TOKENS = 60  # about what a stub costs beside its digest
EXCERPT_SHARE = 0.8  # of the room: JSON inside a JSON string needs escapes


def shrink(text: str, name: str, keep_tokens: int, measure: Measure, back: str = "") -> str:
    """`text` in at most about `keep_tokens`; `text` itself when it is no longer than that.

    JSON that cannot be folded so far becomes a stub with an excerpt, which is JSON too: half an object would be none.
    `back` is the way back to the whole, in words.
    """
    tokens = measure(text)
    if tokens <= keep_tokens:
        return text
    if text.lstrip()[:1] not in ("{", "["):
        return clip(text, keep_tokens=keep_tokens, measure=measure, back=back)
    folded = fold_json(text, keep_tokens=keep_tokens, measure=measure, back=back)
    if folded is not None and measure(folded.text) <= keep_tokens:
        return folded.text
    digest_tokens = max(0, min(DIGEST_TOKENS, keep_tokens - STUB_TOKENS - measure(back)))
    said = stub(name, text, tokens, naming=Naming(digest_tokens), measure=measure, back=back)
    if not said.startswith("{"):  # it only looked like JSON
        return clip(text, keep_tokens=keep_tokens, measure=measure, back=back)
    return _with_excerpt(said, text, keep_tokens, measure)


def _with_excerpt(said: str, text: str, keep_tokens: int, measure: Measure) -> str:
    room = int((keep_tokens - measure(said)) * EXCERPT_SHARE)
    if room < STUB_TOKENS:
        return said
    excerpt = clip(text, keep_tokens=room, measure=measure)
    longer = dumps({**loads(said.encode()), "excerpt": excerpt}).decode()
    return longer if measure(longer) <= keep_tokens else said
