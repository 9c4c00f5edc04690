"""What a client gets whose prompt cannot fit: an error it knows, or a polite answer, both in OpenAI's shapes."""

from collections.abc import Iterator
from typing import Any

import msgspec

from policies.jsonraw import NotJSON, dumps, loads
from policies.plan import Plan, Refusal
from policies.report import Report
from policies.request import ChatRequest
from proxy.errors import JSON, Headers

EVENTS = (b"content-type", b"text/event-stream; charset=utf-8")
MOST_CHOICES = 128  # OpenAI's own limit of `n`
CODE = "context_length_exceeded"


class Answer(msgspec.Struct, frozen=True):
    """A response of our own. `headers` name its content type."""

    status: int
    headers: Headers
    body: bytes


def answer(request: ChatRequest, plan: Plan, on_refuse: str, request_id: str, created: int) -> Answer:
    """What a refused request is answered: `on_refuse` "error" or "message"; `created` in seconds of the epoch.

    Raises ValueError when the plan is no refusal.
    """
    if plan.refusal is None:
        raise ValueError("the plan fits: there is nothing to refuse")
    if on_refuse == "error":
        return Answer(400, [JSON], dumps({"error": error_object(plan, request_id)}))
    polite = _Polite(request, plan.refusal, request_id, created)
    if request.stream:
        return Answer(200, [EVENTS, (b"cache-control", b"no-cache")], b"".join(polite.events()))
    return Answer(200, [JSON], dumps(polite.completion()))


def error_object(plan: Plan, request_id: str | None = None) -> dict[str, Any]:
    """The value of `error`; `edgewise` in it is the bill, and a way to split the job (DESIGN 1.1).

    `buckets` and `heaviest` are of the smallest form that the policy allows: `buckets` add up to its tokens.
    """
    refusal, report = plan.refusal, Report.of(plan)
    if refusal is None:
        raise ValueError("the plan fits: there is nothing to refuse")
    return {
        "message": message(refusal, report),
        "type": "invalid_request_error",
        "param": "messages",
        "code": CODE,
        "edgewise": {
            "request_id": request_id,
            "received": report.received_total,
            "floor": refusal.floor,
            "limit": refusal.limit,
            "window": report.window,
            "exact": report.exact,
            "buckets": report.sent,
            "heaviest": report.heaviest(),
            "reason": refusal.reason,
            "units": list(refusal.units),
            "aggregate": refusal.aggregate,
        },
    }


def message(refusal: Refusal, report: Report) -> str:
    """Opens with the words that agents' own compaction looks for."""
    about = "" if report.exact else "about "
    said = (
        f"This model's maximum context length is {report.window} tokens. However, your messages resulted in "
        f"{about}{report.received_total} tokens, of which at least {refusal.floor} cannot be left out, and "
        f"{refusal.limit} are free for the prompt. "
    )
    if refusal.units:
        return f"{said}Please reduce the length of the messages, or send the {len(refusal.units)} parts in 'edgewise'."
    return f"{said}Please reduce the length of the messages: {refusal.reason}."


class _Polite:
    """The same as an assistant's answer that stopped for length. Nothing was billed, so its usage is zero."""

    def __init__(self, request: ChatRequest, refusal: Refusal, request_id: str, created: int) -> None:
        self.head = {"id": f"chatcmpl-{request_id}", "created": created, "model": request.model}
        self.choices = min(request.number("n") or 1, MOST_CHOICES)
        self.wants_usage = wants_usage(request)
        split = f" It could be worked on in {len(refusal.units)} parts." if refusal.units else ""
        self.text = (
            f"This request is too long for me to answer: it needs at least {refusal.floor} tokens, and {refusal.limit} "
            f"fit.{split} Please shorten it or start a new conversation. (Details under request {request_id}.)"
        )

    def completion(self) -> dict[str, Any]:
        message = {"role": "assistant", "content": self.text, "refusal": None}
        choices = [
            {"index": index, "message": message, "logprobs": None, "finish_reason": "length"}
            for index in range(self.choices)
        ]
        return {**self.head, "object": "chat.completion", "choices": choices, "usage": _NOTHING}

    def events(self) -> Iterator[bytes]:
        for index in range(self.choices):
            yield self._chunk([_delta(index, {"role": "assistant", "content": ""})])
            yield self._chunk([_delta(index, {"content": self.text})])
            yield self._chunk([_delta(index, {}, "length")])
        if self.wants_usage:
            yield self._chunk([], _NOTHING)
        yield b"data: [DONE]\n\n"

    def _chunk(self, choices: list[dict[str, Any]], usage: dict[str, int] | None = None) -> bytes:
        chunk = {**self.head, "object": "chat.completion.chunk", "choices": choices}
        if self.wants_usage:
            chunk["usage"] = usage
        return b"data: " + dumps(chunk) + b"\n\n"


_NOTHING = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def _delta(index: int, delta: dict[str, str], finish: str | None = None) -> dict[str, Any]:
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}


def wants_usage(request: ChatRequest) -> bool:
    """Whether a stream is to end with a chunk that tells the usage."""
    raw = request.object.get("stream_options")
    try:
        options = loads(raw) if raw else None
    except NotJSON:
        return False
    return isinstance(options, dict) and options.get("include_usage") is True
