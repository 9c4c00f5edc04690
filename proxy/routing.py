"""Which upstream a request belongs to, and the target that it has there.

The base URL comes from configuration alone; a request can choose a model, never a host (FACTS 7).
"""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import msgspec

from proxy.errors import Refusal

PATHS = 256  # that are remembered; a client may send any

_LABEL = r"[A-Za-z0-9_-]{1,63}"
_PLACE = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*\.?|\[[0-9A-Fa-f:.]+\])(?::\d{{1,5}})?")
_PATH = re.compile(r"[!$-;=A-Z_a-z~]*")  # printable ASCII but for what a URL has to escape

_REFUSED = re.compile(rb"[\x00-\x20\x7f@\\#]")


class Upstream(msgspec.Struct, frozen=True):
    """`base` is an absolute URL with no trailing slash; `api_key`, when set, replaces the client's credentials."""

    name: str  # host and port: what a metric label may show
    base: str
    api_key: str | None = None

    @classmethod
    def of(cls, url: str, api_key: str | None = None) -> "Upstream":
        """Raises ValueError when `url` is no plain http or https base."""
        parts = urlsplit(url.strip())
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("the URL carries a user, a query or a fragment; give the bare base, and keys by setting")
        if (
            parts.scheme not in ("http", "https")
            or not _PLACE.fullmatch(parts.netloc)
            or not _PATH.fullmatch(parts.path)
        ):
            raise ValueError(f"'{url}' is no plain http:// or https:// URL; give the base a client would be given")
        return cls(parts.netloc, f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}", api_key)


class Routes(msgspec.Struct, frozen=True):
    """Patterns in the order of the configuration, the first that matches wins; then the default."""

    patterns: tuple[tuple[str, Upstream], ...] = ()
    default: Upstream | None = None
    upstreams: tuple[Upstream, ...] = ()  # each once, the default first

    @classmethod
    def of(cls, default: Upstream | None, by_model: Mapping[str, Upstream]) -> "Routes":
        listed = [default] if default else []
        listed += by_model.values()
        return cls(tuple(by_model.items()), default, tuple(dict.fromkeys(listed)))

    def for_model(self, model: str) -> Upstream:
        """Raises Refusal (404) when no pattern fits and there is no default."""
        for pattern, upstream in self.patterns:
            if fnmatchcase(model, pattern):
                return upstream
        if self.default is not None:
            return self.default
        raise Refusal(404, f"no upstream is configured for the model '{model}'", code="model_not_found", param="model")

    def for_path(self) -> Upstream:
        """Where a request goes that names no model. Raises Refusal (503) when nothing is configured."""
        if self.upstreams:
            return self.upstreams[0]
        raise Refusal(503, "no upstream is configured; set EDGEWISE_UPSTREAM", kind="server_error", code="no_upstream")


def upstream_of(place: str, value: Any, key: str | None) -> Upstream:
    """As a setting says it: a URL, or an object with `url` and `api_key`; `key` where it names none. Raises ValueError
    with one line that begins with `place`."""
    if isinstance(value, dict):
        unknown = set(value) - {"url", "api_key"}
        if unknown or not isinstance(value.get("url"), str):
            raise ValueError(f"{place}: takes 'url' and 'api_key'; got {', '.join(map(repr, value)) or 'nothing'}")
        value, key = value["url"], value.get("api_key", key)
    if not isinstance(value, str):
        raise ValueError(f'{place}: is neither a URL nor an object; write "https://HOST/v1"')
    try:
        return Upstream.of(value, key)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


@lru_cache(PATHS)
def rest_of(raw_path: bytes) -> bytes | None:
    """`/REST` of `/v1/REST`, byte for byte; None for a path that is none of the upstream's.

    Raises Refusal (400) for targets that could leave the base: dot segments, `@`, a backslash, a fragment.
    """
    slashes = len(raw_path) - len(raw_path.lstrip(b"/"))
    path = raw_path[slashes - 1 :] if slashes else raw_path
    if not path.startswith((b"/v1/", b"/chat/completions")):
        return None
    rest = path[3:] if path.startswith(b"/v1/") else path
    if _REFUSED.search(rest) or _climbs(rest):
        raise Refusal(400, "the request path holds '..', '@', '\\', '#' or a control byte, which are not forwarded")
    return rest


def _climbs(path: bytes) -> bool:
    if b"." not in path and b"%" not in path:
        return False
    plain = path.lower().replace(b"%2e", b".").replace(b"%2f", b"/").replace(b"%5c", b"/")
    return any(segment in (b".", b"..") for segment in plain.split(b"/"))
