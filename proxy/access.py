"""Who may call, whose request it is, and what speaks for it at the upstream."""

import hashlib
import hmac
from collections.abc import Sequence

import msgspec

from proxy.errors import Refusal
from proxy.headers import CREDENTIALS, Header, find
from proxy.routing import Upstream

KEY_HEADER = b"edgewise-key"  # lets Authorization stay the client's own key for the upstream

_TENANT = hashlib.blake2b(digest_size=16, person=b"edgewise-tenant")


class Access(msgspec.Struct, frozen=True):
    """`inbound_keys` empty: everyone who reaches the port may call. `tenant_header` None: Authorization tells whose a
    request is."""

    inbound_keys: tuple[bytes, ...] = ()
    tenant_header: bytes | None = None

    def check(self, headers: Sequence[Header]) -> None:
        """Raises Refusal (401). Every key is compared, each in constant time."""
        if not self.inbound_keys:
            return
        presented = find(headers, KEY_HEADER) or _bearer(headers)
        if not self._known(presented):
            raise Refusal(
                401,
                "the key is missing or not one of Edgewise's inbound keys; send it as 'Authorization: Bearer KEY' "
                "or 'Edgewise-Key: KEY'",
                code="invalid_api_key",
            )

    def _known(self, presented: bytes) -> bool:
        return sum(hmac.compare_digest(presented, key) for key in self.inbound_keys) > 0

    def tenant(self, headers: Sequence[Header]) -> str:
        """32 hex digits that stand for the caller; the credential itself is kept nowhere."""
        credential = self.credential(headers)
        digest = _TENANT.copy()
        digest.update(credential)
        return digest.hexdigest()

    def credential(self, headers: Sequence[Header]) -> bytes:
        """What tells whose a request is; empty for a caller that nothing tells from others."""
        if self.tenant_header is not None:
            return find(headers, self.tenant_header) or b""
        return find(headers, KEY_HEADER) or _bearer(headers)

    def credentials(self, headers: list[Header], received: Sequence[Header], upstream: Upstream) -> list[Header]:
        """The outgoing headers with the key that speaks for the request at `upstream`."""
        if upstream.api_key is not None:
            kept = [header for header in headers if header[0] not in CREDENTIALS]
            return [*kept, (b"authorization", b"Bearer " + upstream.api_key.encode())]
        if self.inbound_keys and find(received, KEY_HEADER) is None:
            return [header for header in headers if header[0] not in CREDENTIALS]  # it was our key, not the upstream's
        return headers


def _bearer(headers: Sequence[Header]) -> bytes:
    authorization = find(headers, b"authorization")
    if authorization is not None:
        scheme, _, key = authorization.partition(b" ")
        return key.strip() if scheme.lower() == b"bearer" else authorization
    return find(headers, b"api-key") or find(headers, b"x-api-key") or b""
