"""Which conversation a request continues: a chain of hashes over its messages (DESIGN 6).

c_0 is the root, c_i = H(c_{i-1} ‖ h_i), and h_i the hash of message i in canonical form. The canonical form leaves out
what clients change of a message that they send again; it exists to be hashed, and is never forwarded. All hashes are 16
bytes of BLAKE2b.
"""

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from policies.annotations import KEY as ANNOTATION
from policies.counting.families import plain
from policies.counting.memo import Memo
from policies.request import Item

SIZE = 16  # bytes of a hash
REMEMBERED = 65_536  # canonical hashes, in each of two generations
FIRST_PROBE = 8  # keys: a conversation that went on is found among its longest prefixes
PROBE_GROWTH = 8

VOID_ALIKE = frozenset(
    {
        "annotations",
        "audio",
        "content",
        "function_call",
        "name",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
        "refusal",
        "tool_call_id",
        "tool_calls",
    }
)  # members of a message that say the same when they are null as when they are absent
EMPTY_ALIKE = frozenset({"annotations", "tool_calls"})  # and these when they are an empty array

# Raw keeps the spelling of a float, so that `1e5` and `100000.0` stay two things.
_DECODER = msgspec.json.Decoder(float_hook=msgspec.Raw)
_ENCODER = msgspec.json.Encoder(order="deterministic")

_VARIANT = re.compile(
    r"(?<=.)(?:"
    r"[-@](?:20\d\d-\d\d-\d\d|20\d{6}|\d\d-\d\d|\d\d-20\d\d"  # 2024-08-06, 20241022, 05-06, 09-2025
    r"|(?:0[1-9]|1[0-2])[0-3]\d|2\d(?:0[1-9]|1[0-2]))"  # month and day, or year and month: 0613, 2411
    r"(?:-v\d+(?::\d+)?)?"  # some hosts number their copy of a dated model
    r"|-latest|:latest)$"
)


def canonical(raw: bytes) -> bytes:
    """The message in the form that is hashed: JSON without spaces, members sorted, escapes resolved.

    Left out: `cache_control` of the message, its parts and its calls; an annotation of ours; the `index` of a call;
    null members of VOID_ALIKE; empty content of an assistant that calls tools. Content of one text part is written as a
    string. Everything else counts, unknown members and the spelling of floats too. Bytes that a strict parser refuses
    come back as they are: what cannot be read safely is only ever equal to itself.
    """
    try:
        message = _DECODER.decode(raw)
        return _ENCODER.encode(_stable(message) if isinstance(message, dict) else message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return raw


def hashed(raw: bytes) -> bytes:
    """The 16-byte hash of the message's canonical form."""
    return blake2b(canonical(raw), digest_size=SIZE).digest()


class CanonicalHashes:
    """Canonical hashes, remembered by the digest of the bytes that came: reading a long conversation again at every
    turn would cost more than all else (FACTS 3). Bounded in entries; threads may share one."""

    def __init__(self, limit: int = REMEMBERED) -> None:
        self._known: Memo[bytes, bytes] = Memo(limit)

    def of(self, items: Sequence[Item]) -> list[bytes]:
        """The hash of each message."""
        known = self._known.all([item.key for item in items])
        return [
            found if found is not None else self._known.set(item.key, hashed(item.raw))
            for item, found in zip(items, known, strict=True)
        ]


def root(tenant: str, upstream: str, family: str) -> bytes:
    """c_0 of every conversation of a tenant with a family of models at an upstream. Tools are no part of it."""
    names = [name.encode("utf-8", "surrogatepass") for name in (tenant, upstream, family)]
    told = b"".join(len(name).to_bytes(8, "big") + name for name in names)  # lengths: no name can reach into the next
    return blake2b(told, digest_size=SIZE, person=b"edgewise root 1").digest()


def chain(start: bytes, hashes: Sequence[bytes]) -> list[bytes]:
    """c_1 to c_n: entry i identifies the prefix of i + 1 messages. `start` is the root, or any c_k to go on from."""
    link, links = start, []
    for one in hashes:
        link = blake2b(link + one, digest_size=SIZE).digest()
        links.append(link)
    return links


def longest_first(links: Sequence[bytes]) -> Iterator[list[str]]:
    """Keys of the ledger in hex, the longest prefix first, a few at a time and then more.

    Ask for one list after the other and stop at the first key that is known: a conversation that only went on is found
    in the first list, however long it is.
    """
    end, size = len(links), FIRST_PROBE
    while end > 0:
        start = max(0, end - size)
        yield [link.hex() for link in reversed(links[start:end])]
        end, size = start, size * PROBE_GROWTH


def model_family(model: str) -> str:
    """The model's name without the provider's prefix and the date or `latest` at its end: gpt-4o of
    openai/gpt-4o-2024-08-06."""
    return _VARIANT.sub("", plain(model))


def _stable(message: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in _bare(message).items() if not _void(name, value)}
    if isinstance(kept.get("content"), list):
        kept["content"] = _content(kept["content"])
    if isinstance(kept.get("tool_calls"), list):
        kept["tool_calls"] = [_call(call) for call in kept["tool_calls"]]
    calls = "tool_calls" in kept or "function_call" in kept
    if calls and kept.get("role") == "assistant" and kept.get("content") in ("", []):
        del kept["content"]
    return kept


def _void(name: str, value: object) -> bool:
    return (value is None and name in VOID_ALIKE) or (value == [] and name in EMPTY_ALIKE)


def _bare(holder: dict[str, Any]) -> dict[str, Any]:
    holder.pop("cache_control", None)
    if isinstance(holder.get(ANNOTATION), dict):  # whatever else is called so is the client's own
        del holder[ANNOTATION]
    return holder


def _content(parts: list[Any]) -> Any:
    parts = [_bare(part) if isinstance(part, dict) else part for part in parts]
    if len(parts) == 1 and isinstance(parts[0], dict) and parts[0].keys() == {"type", "text"}:
        only = parts[0]
        if only["type"] == "text" and isinstance(only["text"], str):
            return only["text"]
    return parts


def _call(call: Any) -> Any:
    if not isinstance(call, dict):
        return call
    call = {name: value for name, value in _bare(call).items() if name != "index"}
    if isinstance(call.get("function"), dict):
        _bare(call["function"])
    return call
