"""Figures of prompts and what was billed for them, made without prompts; and a counter that can be followed by hand."""

from typing import Any

import msgspec
from hypothesis import strategies as st
from support.characters import Characters

from policies.counting.estimate import EstimateCounter, Prior
from policies.counting.observed import Observation, Seen

BASE = EstimateCounter(Prior("made", 1.0, 0, 0, 1.0), Characters())
IMAGE: dict[str, Any] = {
    "role": "user",
    "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}],
}
CALLED: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
}
BILLS = st.integers(-10, 2**40)
OBSERVED = st.builds(
    Observation,
    st.builds(Seen, *[st.integers(0, 10**6)] * 8, st.booleans(), st.booleans()),
    BILLS,
    st.integers(0, 10**6),
    BILLS,
)


def seen(text: int = 1_000, **others: int) -> Seen:
    """One message of so many tokens."""
    return msgspec.structs.replace(Seen(1, text, 0, 0, 0, 0, 0, 0, False, False), **others)
