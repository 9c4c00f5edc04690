"""Pack a published tiktoken rank file into the form that the wheel carries, or unpack it again.

    python tools/build_ranks.py pack o200k_base.tiktoken proxy/data/o200k_base.xz
    python tools/build_ranks.py unpack o200k_base o200k_base.tiktoken

Source: OpenAI's `<name>.tiktoken`, a line `base64(token) rank` each, or any byte-identical copy (several packages carry
one under the name of tiktoken's cache, the SHA-1 of its URL). Only a file with the published SHA-256 is packed.
Packed: xz (preset 9, extreme) over length byte + token, in order of rank.
"""

import base64
import hashlib
import lzma
import sys
from collections.abc import Sequence
from pathlib import Path

from proxy.ranks import tokens

PUBLISHED = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}


def pack(published: bytes) -> bytes:
    """Raises ValueError when `published` is not one of the files above, to the byte."""
    digest = hashlib.sha256(published).hexdigest()
    if digest not in PUBLISHED.values():
        raise ValueError(f"sha256 {digest} is not that of a published rank file; fetch it again")
    pairs = [line.split() for line in published.splitlines()]
    ranked = {int(rank): base64.b64decode(token) for token, rank in pairs}
    plain = b"".join(bytes([len(ranked[rank])]) + ranked[rank] for rank in range(len(ranked)))
    return lzma.compress(plain, preset=9 | lzma.PRESET_EXTREME)


def unpack(name: str) -> bytes:
    """The published file, rebuilt from the shipped one."""
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens(name)))


def main(arguments: Sequence[str]) -> int:
    match arguments:
        case ["pack", source, target]:
            Path(target).write_bytes(pack(Path(source).read_bytes()))
        case ["unpack", name, target]:
            Path(target).write_bytes(unpack(name))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
