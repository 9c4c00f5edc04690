"""Bar 3 of issue 3, first half: what the lossless steps save of the JSON tool results of the recorded conversations.

    python bench/lossless.py

Method: every tool result of the recorded conversations that is a JSON object or array is sent once through the two
steps, `minify-json` and `tabulate`, with `when = "always"`, in a request of its own: a call and its result. Tokens
are those of the results' texts, o200k_base. Afterwards every value is compared with the source at its path, in its
spelling, by `tests/support/folding_check.py`, and nothing may be named as gone. Ends with 1 below the bar.
"""

import json
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "tests")]

from support.folding_check import check, scalars  # noqa: E402  (found by the path set above)
from support.prompts import calls, chat, counter, result, user  # noqa: E402  (the same)
from support.sessions import recorded_results  # noqa: E402  (the same)

from policies.budget import Budget  # noqa: E402  (the same)
from policies.messages import Message  # noqa: E402  (the same)
from policies.needs import solve  # noqa: E402  (the same)
from policies.pipeline import plan_once  # noqa: E402  (the same)
from policies.policy import Policy  # noqa: E402  (the same)
from policies.steps.minify_json import MinifyJson  # noqa: E402  (the same)
from policies.steps.tabulate import Tabulate  # noqa: E402  (the same)
from proxy.policyfile import load  # noqa: E402  (the same)

BAR = 0.20
WINDOW = 1_000_000  # tokens: nothing has to go
STEPS = (MinifyJson(when="always"), Tabulate(when="always"))


def sent(text: str, policy: Policy) -> str:
    """The result's text as it leaves."""
    request = chat([user("go on"), calls(("c1", "get")), result("c1", text)])
    made = solve(plan_once(request, policy, counter(), Budget(WINDOW)))
    return Message.of(made.prompt.messages[2].raw).text


def main() -> int:
    """Run, print, and return the exit code."""
    levels = load("balanced").levels
    ways = {"minify-json": STEPS[:1], "minify-json, tabulate": STEPS}
    texts = [text for text in recorded_results() if _is_json(text)]
    before = sum(map(counter().text, texts))
    print(f"{len(texts)} JSON results, {before:,} tokens")
    saved = 0.0
    for name, steps in ways.items():
        policy = Policy("lossless", steps, levels)
        after = [sent(text, policy) for text in texts]
        for text, left in zip(texts, after, strict=True):
            assert check(text, left) == scalars(text), "a value is gone"
        tokens = sum(map(counter().text, after))
        saved = 1 - tokens / before
        print(f"{name:<24}{tokens:>8,} tokens left, {saved:.1%} saved")
    print(f"bar: at least {BAR:.0%} saved")
    return 0 if saved >= BAR else 1


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except ValueError:
        return False


if __name__ == "__main__":
    sys.exit(main())
