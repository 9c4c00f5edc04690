"""Refs: the names under which a tenant's originals are stored, and read again (DESIGN 7)."""

import re
from hashlib import blake2b

import msgspec

DIGITS = 24
LONGEST_KEY = 64  # bytes, of blake2b
REF = re.compile(rb"tr_[0-9a-f]{%d}(?![0-9a-f])" % DIGITS)


class Refs(msgspec.Struct, frozen=True):
    """Names originals for one tenant: the same text has the same name, and nobody without the key can tell whether
    somebody else stored it. `key` is the tenant's, 1 to 64 bytes. Raises ValueError for others."""

    key: bytes

    def __post_init__(self) -> None:
        if not 1 <= len(self.key) <= LONGEST_KEY:
            raise ValueError(f"the key of a tenant's refs has 1 to {LONGEST_KEY} bytes, not {len(self.key)}")

    def ref_of(self, text: str) -> str:
        return self._named(stored(text))

    def fits(self, ref: str, original: bytes) -> bool:
        """Whether the ref is that of these bytes."""
        return ref == self._named(original)

    def _named(self, original: bytes) -> str:
        return f"tr_{blake2b(original, digest_size=DIGITS // 2, key=self.key).hexdigest()}"


def stored(text: str) -> bytes:
    """The bytes that are stored for a text; lone halves of a character, which JSON can spell, too."""
    return text.encode("utf-8", "surrogatepass")
