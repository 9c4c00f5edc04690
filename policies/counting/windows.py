"""How many tokens a model's window holds: the shipped table under the operator's overrides.

`tools/build_windows.py` makes the table; the shell reads it and hands it in. A window that is not known is never
guessed (DESIGN 1.1): names are matched whole, after what only says where or when a model is served is taken off.

**What the figure means.** Where prompt and answer share one window (the usual case), `tokens` is that window and the
answer's reserve comes out of it. Some vendors bound the two apart: GPT-5 takes 272,000 in and 128,000 out of a window
of 400,000, Gemini 1,048,576 in and 65,536 out. There `tokens` bounds the prompt alone and `beside` says how much of the
answer does not come out of it: limit = tokens − max(0, reserve − beside) − margin.
"""

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

import msgspec

Table = Mapping[str, tuple[int, int]]  # normalised name → most tokens in, most tokens out (0: not published)

SPLIT_WINDOWS = frozenset({400_000, 1_050_000})  # OpenAI's published totals of an input and an output limit
LONGEST_NAME = 256  # characters: no model's name is longer, and a client chooses what is sent here
SPLIT_NAME = re.compile(r"(?:^|[/.])(?:gpt-|gemini-)")

_VENDOR = re.compile(r"[^/]*/|[a-z-]+\.(?=[a-z])")  # `openai/gpt-4o`, `us.anthropic.claude-…`
_SERVED = re.compile(
    r"""(?: [-@]\d{4}-?\d{2}-?\d{2}   # dated: gpt-4o-2024-11-20, claude-haiku-4-5@20251001
          | -\d{4}                    # dated short: gpt-4-0613, mistral-large-2411
          | -00\d                     # numbered: gemini-2.0-flash-001
          | [-@](?:latest|default)
          | -v\d:\d(?::\d+k)?         # a cloud's own revision: …-v1:0
          | :[a-z][a-z-]*             # a router's variant: …:free
        )$""",
    re.VERBOSE,
)
_DOT = re.compile(r"(?<=\d)\.(?=\d)")  # claude-sonnet-4.5 and claude-sonnet-4-5 are one model


class Window(msgspec.Struct, frozen=True):
    """A model's window in tokens. `source` says who told: "override", "table", "server", "error", ..."""

    tokens: int
    source: str
    beside: int = 0


def table_of(text: bytes) -> Table:
    """The table from its JSON. Raises msgspec.ValidationError, msgspec.DecodeError."""
    return msgspec.json.decode(text, type=dict[str, tuple[int, int]])


def window_of(model: str, overrides: Mapping[str, int], table: Table) -> Window | None:
    """The window of `model`; None when nobody knows. `overrides` maps a name or glob to tokens; the longest that
    matches wins."""
    if (tokens := overridden(model, overrides)) is not None:
        return Window(tokens, "override")
    for name in names(model):
        if name in table:
            most_in, most_out = table[name]
            return Window(most_in, "table", _beside(name, most_in, most_out))
    return None


def overridden(model: str, overrides: Mapping[str, int]) -> int | None:
    """The tokens of the longest override that matches `model`, case aside."""
    matching = [glob for glob in overrides if fnmatchcase(model.lower(), glob.lower())]
    return overrides[max(matching, key=len)] if matching else None


def normal(model: str) -> str:
    """The spelling under which the table knows a name."""
    name = model.strip().lower()
    if name.startswith("ft:"):  # a fine-tuned model has its base model's window: ft:gpt-4o-mini:org:name:id
        name = name.split(":")[1]
    return _DOT.sub("-", name)


def names(model: str) -> Iterator[str]:
    """Names to look for, longest first: with and without vendor, each with and without its suffixes."""
    place: str | None = normal(model) if len(model) <= LONGEST_NAME else None
    while place:
        shorter = place
        yield shorter
        while (cut := _SERVED.sub("", shorter)) != shorter:
            yield (shorter := cut)
        vendor = _VENDOR.match(place)
        place = place[vendor.end() :] if vendor else None


def _beside(name: str, most_in: int, most_out: int) -> int:
    if not SPLIT_NAME.search(name) or most_out >= most_in:
        return 0
    apart = most_in + most_out in SPLIT_WINDOWS or "gemini-" in name
    return most_out if apart else 0
