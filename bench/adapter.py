"""The one place where the fit bench meets the product."""

from support.judge import Outcome

from proxy.ranks import load


def edgewise(body: bytes, window: int) -> Outcome:
    """What the product makes of a request body at a window of so many tokens, with the default policy, in mode
    enforce, on refusal a 400. No network, no store.

    `Outcome.sent` is `body` itself when nothing was edited; `edited`, `edited_tools` and `injected` are taken from the
    applied decisions, never from a comparison of bytes.
    """
    from support.adapter import run  # noqa: PLC0415  (until the product has its entry point, the tests' own is used)

    outcome: Outcome = run(body, window)
    return outcome


def count(body: bytes) -> int:
    """Prompt tokens of a whole request, counted anew from its bytes: no memo, no sum kept by the pipeline."""
    from support.adapter import recount  # noqa: PLC0415  (the same)

    tokens: int = recount(body)
    return tokens


def text_tokens(text: str) -> int:
    """Tokens of a bare text in o200k_base, for the lower bound that no count may miss."""
    return load("o200k_base").count(text)
