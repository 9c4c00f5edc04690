"""A tool result said in about so many tokens, whatever it is: JSON stays JSON, text stays text."""

from policies.clipping import clip
from policies.digest import Measure
from policies.folding import fold_json
from policies.stubs import stub


def shrink(text: str, name: str, keep_tokens: int, measure: Measure) -> str:
    """`text` in at most about `keep_tokens`; `text` itself when it is no longer than that.

    JSON that cannot be folded so far becomes a stub, which is JSON too: half an object would be none.
    """
    tokens = measure(text)
    if tokens <= keep_tokens:
        return text
    if text.lstrip()[:1] not in ("{", "["):
        return clip(text, keep_tokens=keep_tokens, measure=measure)
    folded = fold_json(text, keep_tokens=keep_tokens, measure=measure)
    if folded is not None and measure(folded.text) <= keep_tokens:
        return folded.text
    digest_tokens = max(0, min(200, keep_tokens - 60))
    return stub(name, text, tokens, cap=digest_tokens, measure=measure)
