"""Which conversation a request belongs to: a label for people and reports, never part of an identity that counts."""

import hashlib
from collections.abc import Sequence

from policies.jsonraw import NotJSON, loads, whole
from policies.request import ChatRequest
from policies.spans import Span
from proxy.planner import Call

NAMED_BY = (b"edgewise-session", b"x-session-id", b"x-session-affinity", b"x-litellm-session-id", b"session-id")
LONGEST = 128  # characters of a label that is kept
MARK = "s_"  # before the digest that stands for a conversation nobody named


def session_of(request: ChatRequest, call: Call, spans: Sequence[Span]) -> str:
    """The name that the client gave (a header, or `prompt_cache_key`), else a digest of how the conversation began:
    tenant, upstream, model, system text and first user message."""
    given = {name: value for name, value in reversed(call.headers) if name in NAMED_BY and value}
    if given:
        return next(given[name] for name in NAMED_BY if name in given).decode("latin-1")[:LONGEST]
    return _named_in_body(request) or _digest(request, call, spans)


def _named_in_body(request: ChatRequest) -> str:
    raw = request.object.get("prompt_cache_key")
    try:
        value = loads(raw) if raw is not None and len(raw) <= LONGEST * 4 else None
    except NotJSON:
        return ""
    return whole(value[:LONGEST]) if isinstance(value, str) else ""


def _digest(request: ChatRequest, call: Call, spans: Sequence[Span]) -> str:
    digest = hashlib.blake2b(f"{call.tenant}|{call.upstream.base}|{request.model}".encode(), digest_size=8)
    for span in spans:
        digest.update(span.item.key)
        if span.is_user:
            break
    return MARK + digest.hexdigest()
