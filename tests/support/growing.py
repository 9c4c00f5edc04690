"""Conversations that grow, branch and come again, in every shape that a client may send."""

import json
from typing import Any

from hypothesis import strategies as st

from policies.opener import SHORT

FILLER = {"role": "system", "content": "x" * SHORT}  # a body that is opened again is longer than this
IDS = st.sampled_from(["c1", "c2", "c3"])
TEXT = st.sampled_from(["", "look", '{"rows": [1, 2]}', "the valve is open and the pump is not", "é" * 20])


def _call(call_id: str, name: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}


CALLS = st.lists(st.builds(_call, IDS, st.sampled_from(["find", "read"])), max_size=2)
MESSAGE = st.one_of(
    st.builds(lambda text: {"role": "user", "content": text}, TEXT),
    st.builds(lambda text: {"role": "developer", "content": text}, TEXT),
    st.builds(lambda text, calls: {"role": "assistant", "content": text, "tool_calls": calls}, TEXT, CALLS),
    st.builds(
        lambda text, calls: {"role": "function", "name": "find", "content": text, "tool_calls": calls}, TEXT, CALLS
    ),
    st.builds(lambda text, call_id: {"role": "tool", "tool_call_id": call_id, "content": text}, TEXT, IDS),
)
STEPS = st.lists(st.tuples(st.integers(0, 3), st.lists(MESSAGE, max_size=4)), min_size=1, max_size=6)
"""How many of the last messages are taken back, and what is put behind the rest, request by request."""


def bodies(steps: list[tuple[int, list[dict[str, Any]]]], **fields: Any) -> list[bytes]:
    """The body of each request."""
    messages, found = [FILLER], []
    for back, new in steps:
        messages = [*messages[: max(1, len(messages) - back)], *new]
        found.append(json.dumps({"model": "gpt-4o", "messages": messages, **fields}).encode())
    return found
