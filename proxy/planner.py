"""The seam between carrying a request and shaping it."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from policies.request import ChatRequest
from proxy.access import Access
from proxy.headers import Header, find
from proxy.readback.loop import Readback
from proxy.refusals import Answer
from proxy.routing import Upstream

CLIENT_LEFT = 499  # nginx's number
BROKE_OFF = 599  # a status was sent, but not all that belongs to it


class Call(msgspec.Struct, frozen=True):
    """What is known of a chat request beside its body."""

    id: str  # as in Edgewise-Request-Id
    headers: Sequence[Header]  # received; names in lower case
    tenant: str  # hash of the caller's credential, or of the configured header
    upstream: Upstream

    def header(self, name: bytes) -> str | None:
        value = find(self.headers, name)
        return None if value is None else value.decode("latin-1")


class Outcome(msgspec.Struct, frozen=True):
    """What planning came to. `body` is the received bytes object itself when nothing was edited; `headers` are added to
    the response; a `refusal` is answered instead of forwarding. With `readback` the upstream was offered the proxy's
    own tool; with `hides_usage` the client did not ask for the usage chunk that its stream will have, and `unasked`,
    which is called when the upstream refused that, makes the body that does not ask for it."""

    body: bytes
    headers: Sequence[Header] = ()
    refusal: Answer | None = None
    note: object = None  # the planner's own, handed back in `finished`
    readback: Readback | None = None
    hides_usage: bool = False
    unasked: Callable[[], bytes] | None = None


class Planner(Protocol):
    """Shapes requests. What it raises once it is open is counted, and the request goes on, as received if need be."""

    def install(self, api: FastAPI, access: Access, registry: CollectorRegistry) -> None:
        """Called once, before `open`: add paths of its own to the API, and its metrics to those that are shown."""
        ...

    async def open(self) -> None:
        """Called once before the first request, on the event loop."""
        ...

    async def close(self) -> None: ...

    def ready(self) -> bool:
        """The tokenizer is loaded."""
        ...

    async def plan(self, request: ChatRequest, call: Call) -> Outcome: ...

    def answered(self, outcome: Outcome, status: int) -> None:
        """The upstream's own status, before the client has any of it: with a 2xx it took the prompt, whatever becomes
        of the rest. Not called where it gave none."""
        ...

    def learn(self, outcome: Outcome, error: bytes) -> None:
        """The upstream refused the request; `error` is the body, which may tell its window."""
        ...

    def finished(self, outcome: Outcome, status: int, usage: dict[str, Any] | None) -> None:
        """The request is over; called once for each that was planned, also when planning broke. `status` is what the
        client saw, 499 when it left before the end, and 599 when the upstream broke off inside its response."""
        ...


class Untouched:
    """Forwards every request as it came."""

    def install(self, api: FastAPI, access: Access, registry: CollectorRegistry) -> None:  # noqa: ARG002 - the protocol's
        return None

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        return None

    def ready(self) -> bool:
        return True

    async def plan(self, request: ChatRequest, call: Call) -> Outcome:  # noqa: ARG002 - the protocol's signature
        return Outcome(request.body)

    def answered(self, outcome: Outcome, status: int) -> None:  # noqa: ARG002 - the protocol's signature
        return None

    def finished(self, outcome: Outcome, status: int, usage: dict[str, Any] | None) -> None:  # noqa: ARG002 - likewise
        return None

    def learn(self, outcome: Outcome, error: bytes) -> None:  # noqa: ARG002 - the protocol's signature
        return None
