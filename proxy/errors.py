"""What a client is told when Edgewise answers instead of an upstream: OpenAI's error object, always.

Protocol-level faults (a malformed request line, headers over the limit) get plain text from `server.Protocol`.
"""

import json
from collections.abc import Sequence

from policies.request import BadRequest

JSON = (b"content-type", b"application/json")

Headers = Sequence[tuple[bytes, bytes]]


class Refusal(Exception):
    """Answered instead of being forwarded. `headers` are added to the response; the message is for the client's eyes
    and must hold neither keys nor prompts."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
        headers: Headers = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers
        self.body = error_body(message, kind, code, param)


def error_body(message: str, kind: str, code: str | None = None, param: str | None = None) -> bytes:
    """`{"error": {"message", "type", "param", "code"}}`, the four members that OpenAI's clients read."""
    return json.dumps({"error": {"message": message, "type": kind, "param": param, "code": code}}).encode()


class UpstreamError(Exception):
    """The upstream's fault or the network's, before any byte of a response. The message names no key and no body.

    UpstreamError
    ├── Unreachable   no connection: refused, unknown host, TLS                    502
    ├── Disconnected  the connection ended before a response                       502
    ├── Malformed     what came back is not HTTP, or breaks the limits             502
    └── TimedOut      no connection, or no first byte, in time                     504

    BrokenOff stands apart: bytes of the response are out already, so it can only be passed on by breaking off too.
    """


class Unreachable(UpstreamError):
    pass


class Disconnected(UpstreamError):
    pass


class Malformed(UpstreamError):
    pass


class TimedOut(UpstreamError):
    pass


class BrokenOff(Exception):
    """The upstream's response ended before it was complete."""


STATUS_OF: dict[type[UpstreamError], tuple[int, str]] = {
    Unreachable: (502, "upstream_unreachable"),
    Disconnected: (502, "upstream_disconnected"),
    Malformed: (502, "upstream_malformed"),
    TimedOut: (504, "upstream_timeout"),
}


def refusal_of(error: BadRequest | UpstreamError) -> Refusal:
    """The one table from faults to what the client sees."""
    if isinstance(error, BadRequest):
        return Refusal(400, str(error), param=error.param)
    status, code = STATUS_OF[type(error)]
    return Refusal(status, str(error), kind="upstream_error", code=code)
