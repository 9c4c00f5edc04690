"""How many of the values that later calls pass does a digest keep?

    python bench/digest.py [sessions.jsonl]

Of the recorded conversations, every argument of a call that so far stood only in tool results (not in the system,
user or assistant text, earlier calls or tool definitions) is looked for in the digest of each result that holds it.
Tokens are o200k's. Printed: all of them; with results under 500 tokens left whole; and with the newest five rounds
left whole too, as `balanced` does.
"""

import json
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from policies.texts.digest import digest
from proxy.ranks import load

ROOT = Path(__file__).resolve().parents[1]
CAPS = (0, 60, 120, 200)


class Use(NamedTuple):
    """A value passed by message `at`, and the results before it that hold the value: index and text."""

    value: str
    at: int
    results: tuple[tuple[int, str], ...]


def text_of(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def scalars(value: object) -> Iterator[str]:
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from scalars(one)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def passed(message: dict[str, Any]) -> list[str]:
    values: list[str] = []
    for call in message.get("tool_calls") or []:
        try:
            values.extend(scalars(json.loads(call["function"]["arguments"])))
        except ValueError:
            values.append(call["function"]["arguments"])
    return values


def uses(session: dict[str, Any]) -> Iterator[Use]:
    visible = json.dumps(session["tools"], ensure_ascii=False)
    results: list[tuple[int, str]] = []
    for index, message in enumerate(session["messages"]):
        if message["role"] == "tool":
            results.append((index, text_of(message)))
            continue
        for value in passed(message):
            holders = tuple(one for one in results if value in one[1])
            if 2 <= len(value) <= 200 and value not in visible and holders:
                yield Use(value, index, holders)
        visible += "\n".join(["", text_of(message), *passed(message)])


def main() -> None:
    shared = Path(os.environ.get("EDGEWISE_SHARED", ROOT.parent / "shared"))
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else shared / "data" / "sessions.jsonl"
    found = [use for line in path.open(encoding="utf-8") for use in uses(json.loads(line))]
    measure = load("o200k_base").count
    tokens = cache(measure)
    print(f"{len(found)} values passed by later calls that stood only in tool results; share still visible:")
    print("digest of   all results   results >= 500 tokens   the same, newest five rounds whole")
    for cap in CAPS:
        kept = cache(lambda text, cap=cap: digest(text, cap, measure=measure))
        shares = [
            sum(
                any(whole(use.at - index, text) or use.value in kept(text) for index, text in use.results)
                for use in found
            )
            for whole in (
                lambda _age, _text: False,
                lambda _age, text: tokens(text) < 500,
                lambda age, text: tokens(text) < 500 or age <= 10,
            )
        ]
        print(f"{cap:6} tokens" + "".join(f"{share / len(found):14.1%}" for share in shares))


if __name__ == "__main__":
    main()
