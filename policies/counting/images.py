"""What an image costs: its size, read from the header in its data URL, put through the model's formula.

Formulas: OpenAI's guide to images and vision (tiles of 512, patches of 32), constants of FACTS 1. Base64 is never text.
"""

import base64
import binascii
import math
import struct
from typing import Protocol

import msgspec

UNKNOWN = (1024, 1024)  # pixels assumed of an image that cannot be seen from here
_HEADER = 400_000  # characters of base64 that are decoded to find the size; a JPEG's may stand behind its metadata
_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


class Images(Protocol):
    """A formula: tokens of an image of so many pixels; `low` is the resolution hint."""

    def tokens(self, width: int, height: int, *, low: bool) -> int:
        """Tokens of one image."""
        ...


class Tiles(msgspec.Struct, frozen=True):
    """`base` and `each` per tile of 512 pixels, after fitting into 2048² and the short side to 768."""

    base: int
    each: int

    def tokens(self, width: int, height: int, *, low: bool) -> int:
        """Tokens of one image."""
        if low:
            return self.base
        scale = min(1.0, 2048 / max(width, height))
        scale = min(scale, 768 / (min(width, height)))
        return self.base + self.each * math.ceil(width * scale / 512) * math.ceil(height * scale / 512)


class Patches(msgspec.Struct, frozen=True):
    """Patches of 32 pixels, at most 1536 of them (the image is shrunk to fit), times `factor`."""

    factor: float

    def tokens(self, width: int, height: int, *, low: bool) -> int:  # noqa: ARG002  # patches know no low detail
        """Tokens of one image; the product is rounded up as floating point has it, which is what was billed."""
        patches = math.ceil(width / 32) * math.ceil(height / 32)
        return math.ceil(min(patches, 1536) * self.factor) + 1


class Area(msgspec.Struct, frozen=True):
    """One token for so many pixels, and never more than `most`: larger images are shrunk to fit."""

    pixels: int
    most: int

    def tokens(self, width: int, height: int, *, low: bool) -> int:  # noqa: ARG002  # detail is no matter here
        """Tokens of one image."""
        return min(self.most, math.ceil(width * height / self.pixels))


class Flat(msgspec.Struct, frozen=True):
    """The same for every image."""

    each: int

    def tokens(self, width: int, height: int, *, low: bool) -> int:  # noqa: ARG002  # neither size nor detail matters
        """Tokens of one image."""
        return self.each


def size(source: str) -> tuple[int, int] | None:
    """Width and height in pixels of a data URL's PNG, JPEG, GIF or WebP; None for a remote or unreadable image."""
    head, comma, body = source[:200].partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    start = len(head) + 1
    body = source[start : start + _HEADER]
    try:
        found = _size(base64.b64decode(body[: len(body) // 4 * 4]))
    except (binascii.Error, ValueError, struct.error, IndexError):
        return None
    return found if found and min(found) > 0 else None


def _size(image: bytes) -> tuple[int, int] | None:
    if image.startswith(b"\x89PNG"):
        width, height = struct.unpack(">II", image[16:24])
        return width, height
    if image.startswith(b"GIF8"):
        width, height = struct.unpack("<HH", image[6:10])
        return width, height
    if image.startswith(b"\xff\xd8"):
        return _jpeg(image)
    return _webp(image) if image[:4] == b"RIFF" and image[8:12] == b"WEBP" else None


def _jpeg(image: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(image):
        if image[at] != 0xFF:
            at += 1
        elif image[at + 1] in _JPEG_SIZES:
            height, width = struct.unpack(">HH", image[at + 5 : at + 9])
            return width, height
        elif image[at + 1] in (0xFF, 0x01) or 0xD0 <= image[at + 1] <= 0xD9:
            at += 1 if image[at + 1] == 0xFF else 2
        else:
            at += 2 + int.from_bytes(image[at + 2 : at + 4], "big")
    return None


def _webp(image: bytes) -> tuple[int, int] | None:
    kind = image[12:16]
    if kind == b"VP8 ":
        width, height = struct.unpack("<HH", image[26:30])
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L":
        bits = int.from_bytes(image[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X":
        return int.from_bytes(image[24:27], "little") + 1, int.from_bytes(image[27:30], "little") + 1
    return None
