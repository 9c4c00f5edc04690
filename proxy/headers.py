"""Which headers cross the proxy. Names are lower case bytes, as ASGI has them; values keep their bytes.

Source: RFC 9110 7.6.1 (hop-by-hop fields and those that Connection names), FACTS 2 and 7.
"""

from collections.abc import Iterable, Sequence

Header = tuple[bytes, bytes]

HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"http2-settings",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
# Framing is written anew for the bytes that leave; Expect was answered here; a cookie belongs to this origin.
KEPT_FROM_UPSTREAM = HOP_BY_HOP | {b"host", b"content-length", b"expect", b"cookie"}
# The body leaves decoded, and its answer has to be readable by the tap.
KEPT_FROM_CHAT_UPSTREAM = KEPT_FROM_UPSTREAM | {b"accept-encoding", b"content-encoding"}
# An injected key replaces all that could speak for the client at the upstream.
CREDENTIALS = frozenset(
    {b"authorization", b"api-key", b"x-api-key", b"cookie", b"openai-organization", b"openai-project"}
)
KEPT_FROM_CLIENT = HOP_BY_HOP | {b"set-cookie"}
OWN_PREFIX = b"edgewise-"
BODILESS = frozenset({204, 304})


def find(headers: Iterable[Header], name: bytes) -> bytes | None:
    """The first value of `name`, or None."""
    for key, value in headers:
        if key == name:
            return value
    return None


def to_upstream(headers: Sequence[Header], kept: frozenset[bytes]) -> list[Header]:
    """Request headers that go on: all but `kept`, those that Connection names, and Edgewise's own."""
    return _without(headers, kept)


def to_client(headers: Sequence[Header], status: int) -> list[Header]:
    """Response headers that go on, names in lower case. 204 and 304 carry no body, hence no length."""
    lowered = [(name.lower(), value) for name, value in headers]
    kept = KEPT_FROM_CLIENT | {b"content-length"} if status in BODILESS else KEPT_FROM_CLIENT
    return _without(lowered, kept)


def _without(headers: Sequence[Header], kept: frozenset[bytes]) -> list[Header]:
    if named := _named_by_connection(headers):
        kept |= named
    return [header for header in headers if header[0] not in kept and not header[0].startswith(OWN_PREFIX)]


def _named_by_connection(headers: Sequence[Header]) -> set[bytes]:
    named: set[bytes] = set()
    for name, value in headers:
        if name == b"connection":
            named.update(token.strip().lower() for token in value.split(b","))
    return named
