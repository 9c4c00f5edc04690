"""Which conversation a request belongs to: a label for people and reports, never part of an identity that counts."""

import hashlib
from collections.abc import Sequence

from policies.jsonraw import NotJSON, loads, whole
from policies.request import ChatRequest
from policies.spans import Span
from proxy.planner import Call

NAMED_BY = (b"edgewise-session", b"x-session-id", b"x-session-affinity", b"x-litellm-session-id", b"session-id")
LONGEST = 128  # characters of a label that is kept
NAMES = frozenset(NAMED_BY)
MARK = "s_"  # before the digest that stands for a conversation nobody named


def session_of(request: ChatRequest, call: Call, spans: Sequence[Span]) -> str:
    """The name that the client gave (a header, or `prompt_cache_key`), else a digest of how the conversation began:
    tenant, upstream, model, system text and first user message."""
    return named(request, call) or _digest(request, call, spans)


def named(request: ChatRequest, call: Call) -> str:
    """The name that the client gave, "" where it gave none."""
    for name, _ in call.headers:
        if name in NAMES and (given := _named_in_headers(call)):
            return given
    return _named_in_body(request)


def _named_in_headers(call: Call) -> str:
    given = {name: value for name, value in reversed(call.headers) if name in NAMES and value}
    return next((given[name].decode("latin-1")[:LONGEST] for name in NAMED_BY if name in given), "")


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
