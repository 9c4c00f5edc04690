"""Conversations of many results through the core, with their originals."""

import json
import re
from collections.abc import Sequence
from typing import Any

from support.prompts import (
    Message,
    balanced,
    body,
    budget,
    calls,
    counter,
    lines,
    result,
    rows,
    said,
    system,
    tool,
    user,
)
from support.talks import Talk

from policies.plan import Plan
from policies.policy import Policy
from policies.refs import Refs
from policies.request import ChatRequest

REFS = Refs(b"a tenant")
TOOLS = [tool("read_log"), tool("search", "Searches.")]
REF = re.compile(r"tr_[0-9a-f]{24}")


def loop(rounds: int, size: int = 40) -> list[Message]:
    """One turn: results of about 14 tokens times `size`, each its own; every third is JSON."""
    messages = [system("Be brief."), user("Which station lost pressure?")]
    for number in range(rounds):
        text = rows(size) if number % 3 == 2 else lines(size, f"station {number}")
        messages += [calls((f"call_{number}", "read_log")), result(f"call_{number}", text.replace("TCK", f"T{number}"))]
    return messages


def talk(limit: int, policy: Policy | None = None, refs: Refs | None = REFS) -> Talk:
    return Talk(policy or balanced(), counter(), budget(limit), refs=refs)


def sent(request: ChatRequest, made: Plan) -> dict[str, Any]:
    forwarded: dict[str, Any] = json.loads(request.forward(made.prompt))
    return forwarded


def refs_in(request: ChatRequest, made: Plan) -> set[str]:
    return set(REF.findall(json.dumps(sent(request, made)["messages"])))


def ends(messages: Sequence[Message]) -> list[int]:
    """Where the client asks: behind each result, and behind a user message without an answer."""
    following = [*messages[1:], said("")]
    return [at + 1 for at, after in enumerate(following) if after["role"] == "assistant"]


def whole(conversation: Talk, messages: Sequence[Message], **fields: Any) -> list[tuple[ChatRequest, Plan]]:
    """All requests of a conversation."""
    fields = {"tools": TOOLS} | fields
    return [conversation.send(body(list(messages[:end]), **fields)) for end in ends(messages)]


def opening(made: Sequence[tuple[ChatRequest, Plan]]) -> int:
    """The first request that opens an epoch."""
    return next(at for at, (_, one) in enumerate(made) if one.opened)
