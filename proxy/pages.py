"""HTML error pages of gateways in front of a model: wrapped once into OpenAI's error object, their status kept."""

import re
from collections.abc import Sequence

from proxy.errors import JSON, error_body
from proxy.headers import Header, find
from proxy.retry import hold
from proxy.upstream import Put, Reply

MAX_PAGE = 64 * 1024  # bytes that are read for the title
MAX_TITLE = 200  # characters

_TITLE = re.compile(rb"<title[^>]*>\s*(.*?)\s*</title>", re.IGNORECASE | re.DOTALL)
_DESCRIBES_PAGE = frozenset({b"content-type", b"content-length", b"content-encoding", b"etag", b"last-modified"})


class Page:
    """A reply that stands for a page. See `Reply`."""

    def __init__(self, reply: Reply, body: bytes) -> None:
        self.status = reply.status
        kept = [header for header in reply.headers if header[0].lower() not in _DESCRIBES_PAGE]
        self.headers: Sequence[Header] = [*kept, JSON, (b"content-length", str(len(body)).encode())]
        self._body = body

    @property
    def ended(self) -> bool:
        return not self._body

    async def read(self) -> bytes:
        body, self._body = self._body, b""
        return body

    async def pour(self, put: Put) -> None:  # noqa: ARG002 - the protocol's signature; nothing comes here
        return None

    def close(self) -> None:
        return None


def is_page(reply: Reply) -> bool:
    if reply.status < 400:
        return False
    lowered = [(name.lower(), value) for name, value in reply.headers]
    return (find(lowered, b"content-type") or b"").lower().startswith(b"text/html")


async def wrapped(reply: Reply) -> Reply:
    """The reply, or what stands for it where it is a page. Raises BrokenOff."""
    if not is_page(reply):
        return reply
    held = await hold(reply, MAX_PAGE)
    held.close()
    title = _TITLE.search(held.head)
    said = f": {title[1].decode('utf-8', 'replace')[:MAX_TITLE]}" if title else ""
    message = f"the upstream answered {reply.status} with an HTML page{said}"
    return Page(reply, error_body(message, "upstream_error", "upstream_html"))
