"""Usage that an edited stream is asked for although its client did not ask (FACTS 1)."""

from collections.abc import Iterator
from functools import partial

from prometheus_client import Metric
from prometheus_client.registry import Collector

from policies.jsonraw import NotJSON, RawObject
from policies.request import ChatRequest, Prompt
from proxy.metrics import Counts
from proxy.planner import Outcome

FIELD = "stream_options"
NAMES = (b"stream_options", b"include_usage")  # one of which stands in the error of a server that knows no such field


class UsageAsked(Collector):
    """Which upstreams may be asked; one that refused once is not asked again."""

    def __init__(self) -> None:
        self._deaf: set[str] = set()
        self._outcomes = Counts(
            "usage_asked", "Edited streams whose usage the client did not ask for: 'asked', or 'refused'.", ("outcome",)
        )

    def collect(self) -> Iterator[Metric]:
        yield self._outcomes.family()

    def outcome(self, request: ChatRequest, prompt: Prompt, upstream: str) -> Outcome:
        """The request with `prompt` in it. Where nothing was edited, it is the received bytes, and asks nothing."""
        options = None if prompt is request.prompt or upstream in self._deaf else _wanted(request)
        body = request.forward(prompt, {} if options is None else {FIELD: options})
        if options is None or body is request.body:
            return Outcome(body)
        self._outcomes.add("asked")
        return Outcome(body, hides_usage=True, unasked=partial(self._refused, request, prompt, upstream))

    def _refused(self, request: ChatRequest, prompt: Prompt, upstream: str) -> bytes:
        self._deaf.add(upstream)
        self._outcomes.add("refused")
        return request.forward(prompt)


def _wanted(request: ChatRequest) -> bytes | None:
    return asking(request.object.get(FIELD)) if request.stream else None


def is_about_usage(error: bytes) -> bool:
    return any(name in error for name in NAMES)


def asking(options: bytes | None) -> bytes | None:
    """The client's `stream_options` with usage asked for; all its other bytes stay. None where it is asked for already,
    or where what is there is no object, which is the upstream's to refuse."""
    if options in (None, b"null"):
        return b'{"include_usage":true}'
    try:
        given = RawObject.parse(options)
    except NotJSON:
        return None
    return None if given.get("include_usage") == b"true" else given.splice({"include_usage": b"true"})
