"""Values sealed at rest: AES-256-GCM, each bound to its tenant, kind and key: none can stand in another's place.

Who can read the store sees keys (digests), sizes and times. Entries that were sealed with another key, or not at all,
are not seen, and expire: a key is changed by setting another one.
"""

import hashlib
import logging
import os
from collections.abc import Sequence

import msgspec

from proxy.extras import extra
from proxy.ledger import Entry, Figures, Held, Kind, Listed, Store

NONCE = 12  # bytes; NIST SP 800-38D, 8.2.2: random ones are safe for 2^32 values under one key

log = logging.getLogger("edgewise")


class SealedLedger:
    """A store that gets to see no value. A value that the key does not open was damaged or tampered with: it counts as
    unknown, and is replaced by the next that is added in its place."""

    def __init__(self, store: Store, secret: bytes) -> None:
        """Raises MissingExtra."""
        aead = extra("cryptography.hazmat.primitives.ciphers.aead", "sealed", "a ledger with a key")
        self._invalid = extra("cryptography.exceptions", "sealed", "a ledger with a key").InvalidTag
        self._store = store
        self._cipher = aead.AESGCM(hashlib.blake2b(secret, digest_size=32, person=b"edgewise-seal").digest())
        self._mark = "." + hashlib.blake2b(secret, digest_size=4, person=b"edgewise-mark").hexdigest()
        self._unreadable = 0

    async def open(self) -> None:
        await self._store.open()

    async def close(self) -> None:
        await self._store.close()

    async def get(self, tenant: str, kind: Kind, keys: Sequence[str]) -> dict[str, bytes]:
        found = await self._store.get(tenant, kind, self._marked(keys))
        opened = {key: self._opened(tenant, kind, key, found.get(key + self._mark)) for key in keys}
        return {key: value for key, value in opened.items() if value is not None}

    async def add(self, tenant: str, entries: Sequence[Entry]) -> dict[str, bytes]:
        stand = await self._store.add(tenant, [self._sealed(tenant, entry) for entry in entries])
        others: dict[str, bytes] = {}
        for entry in entries:  # no two sealed values are alike, so all that stood there before are in `stand`
            stands = self._opened(tenant, entry.kind, entry.key, stand.get(entry.key + self._mark))
            if stands is not None and stands != entry.value:
                others[entry.key] = stands
            elif stands is None and entry.key + self._mark in stand:
                await self.put(tenant, entry)
        return others

    async def put(self, tenant: str, entry: Entry) -> None:
        await self._store.put(tenant, self._sealed(tenant, entry))

    async def confirm(self, tenant: str, kind: Kind, keys: Sequence[str]) -> None:
        await self._store.confirm(tenant, kind, self._marked(keys))

    async def withdraw(self, tenant: str, kind: Kind, keys: Sequence[str]) -> None:
        await self._store.withdraw(tenant, kind, self._marked(keys))

    async def conversations(self, tenant: str | None) -> list[Listed]:
        return await self._store.conversations(tenant)

    async def held(self, tenant: str, conversation: str) -> list[Held]:
        held = await self._store.held(tenant, conversation)
        return [msgspec.structs.replace(one, key=one.key.removesuffix(self._mark)) for one in held]

    async def purge(self, *, tenant: str | None = None, older_than: float = 0.0) -> int:
        return await self._store.purge(tenant=tenant, older_than=older_than)

    async def size(self) -> int:
        return await self._store.size()

    def figures(self) -> Figures:
        return msgspec.structs.replace(self._store.figures(), unreadable=self._unreadable)

    def _marked(self, keys: Sequence[str]) -> list[str]:
        return [key + self._mark for key in keys]

    def _sealed(self, tenant: str, entry: Entry) -> Entry:
        nonce = os.urandom(NONCE)
        text = self._cipher.encrypt(nonce, entry.value, _bound(tenant, entry.kind, entry.key))
        return Entry(entry.kind, entry.key + self._mark, nonce + text, entry.conversation)

    def _opened(self, tenant: str, kind: Kind, key: str, value: bytes | None) -> bytes | None:
        """None: there is none, or it cannot be read."""
        if value is None:
            return None
        try:
            return bytes(self._cipher.decrypt(value[:NONCE], value[NONCE:], _bound(tenant, kind, key)))
        except (self._invalid, ValueError):  # ValueError: shorter than a nonce
            self._unreadable += 1
            if self._unreadable == 1:
                log.error("ledger: a sealed value was damaged or tampered with; such values count as unknown")
            return None


def _bound(tenant: str, kind: Kind, key: str) -> bytes:
    return "\0".join((tenant, kind, key)).encode()
