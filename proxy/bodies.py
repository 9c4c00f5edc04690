"""Request bodies: read under a limit, and decompressed under two.

Sizes are bytes. The limit counts decoded bytes; a body that grows more than `MAX_RATIO` times is taken for a bomb.
"""

import asyncio
import sys
import zlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import brotli

from proxy.errors import Refusal
from proxy.headers import Header, find

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAX_RATIO = 100  # FACTS 7; honest JSON stays below 30
RATIO_FLOOR = 64 * 1024  # below this a high ratio harms nobody
INLINE = 16 * 1024  # compressed bytes up to which decoding on the event loop is cheaper than a thread
MAX_CODINGS = 2

Receive = Callable[[], Awaitable[Any]]


class ClientGone(Exception):
    """The client closed its connection before its request was whole: nobody is left to answer."""


class TooLarge(Refusal):
    """413 in OpenAI's shape."""

    def __init__(self, limit: int, headers: Sequence[Header] = ()) -> None:
        super().__init__(
            413,
            f"the request body is larger than {limit} bytes; send less, or raise EDGEWISE_MAX_BODY_BYTES",
            code="request_too_large",
            headers=headers,
        )


async def read(receive: Receive, headers: Sequence[Header], limit: int) -> bytes:
    """The whole body, decoded. Raises Refusal (400, 413, 415), ClientGone."""
    check_length(headers, limit)
    body = await _read_all(receive, limit)
    encoding = find(headers, b"content-encoding")
    if not encoding or encoding.strip().lower() == b"identity":
        return body
    if len(body) <= INLINE:
        return decode(body, encoding, limit)
    return await asyncio.to_thread(decode, body, encoding, limit)


def check_length(headers: Sequence[Header], limit: int) -> None:
    """Refuse by the declared length, before 100-continue invites the body. Raises TooLarge."""
    declared = find(headers, b"content-length")
    if declared is not None and int(declared) > limit:
        waits = find(headers, b"expect") is not None  # with no body under way, closing loses no answer
        raise TooLarge(limit, [(b"connection", b"close")] if waits else ())


async def _read_all(receive: Receive, limit: int) -> bytes:
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body", False):
        whole: bytes = message.get("body", b"")
        return _within(whole, limit)
    parts: list[bytes] = []
    size = 0
    while message["type"] == "http.request":
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise TooLarge(limit)
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)
        message = await receive()
    raise ClientGone


def _within(body: bytes, limit: int) -> bytes:
    if len(body) > limit:
        raise TooLarge(limit)
    return body


class Decoder(Protocol):
    """Decode `body` up to `room` bytes and one more. Raises ValueError when it is not what it claims to be."""

    def __call__(self, body: bytes, room: int) -> bytes: ...


def decode(body: bytes, encoding: bytes, limit: int) -> bytes:
    """Undo Content-Encoding, last coding first. Raises Refusal: 400 damaged, 413 too large, 415 unknown coding."""
    codings = [name.strip().lower() for name in encoding.split(b",") if name.strip()]
    if len(codings) > MAX_CODINGS or any(coding not in DECODERS for coding in codings):
        known = ", ".join(sorted(name.decode() for name in DECODERS))
        raise Refusal(415, f"the request body's Content-Encoding is not supported; use one of {known}")
    for coding in reversed(codings):
        room = min(limit, max(MAX_RATIO * len(body), RATIO_FLOOR))
        try:
            body = DECODERS[coding](body, room)
        except (ValueError, EOFError) as error:
            raise Refusal(400, f"the request body is not valid {coding.decode()}: {error}") from None
        if len(body) > room:
            raise TooLarge(limit)
    return body


def _inflate(body: bytes, room: int, wbits: int) -> bytes:
    decoded = bytearray()
    while body and len(decoded) <= room:
        stream = zlib.decompressobj(wbits)
        try:
            decoded += stream.decompress(body, room + 1 - len(decoded))
        except zlib.error as error:
            raise ValueError(error) from None
        if not stream.eof and len(decoded) <= room:
            raise ValueError("it ends too early")
        body = stream.unused_data  # gzip allows members one after another
    return bytes(decoded)


def _gzip(body: bytes, room: int) -> bytes:
    return _inflate(body, room, 31)


def _deflate(body: bytes, room: int) -> bytes:
    # "deflate" is the zlib format; senders that leave its two-byte header out are common (RFC 9110 8.4.1.2)
    is_zlib = len(body) > 1 and body[0] & 0x0F == 8 and (body[0] << 8 | body[1]) % 31 == 0
    return _inflate(body, room, 15 if is_zlib else -15)


def _brotli(body: bytes, room: int) -> bytes:
    stream = brotli.Decompressor()
    decoded = bytearray()
    feed = body
    try:
        while not stream.is_finished() and len(decoded) <= room:
            piece = stream.process(feed, output_buffer_limit=room + 1 - len(decoded))
            decoded += piece
            if not piece and not stream.is_finished() and stream.can_accept_more_data():
                raise ValueError("it ends too early")
            feed = b""
    except brotli.error as error:
        raise ValueError(error) from None
    return bytes(decoded)


def _zstd(body: bytes, room: int) -> bytes:
    decoded = bytearray()
    while body and len(decoded) <= room:
        stream = zstd.ZstdDecompressor()
        try:
            decoded += stream.decompress(body, room + 1 - len(decoded))
        except zstd.ZstdError as error:
            raise ValueError(error) from None
        if not stream.eof and len(decoded) <= room:
            raise ValueError("it ends too early")
        body = stream.unused_data
    return bytes(decoded)


def _identity(body: bytes, room: int) -> bytes:
    return body[: room + 1]


DECODERS: dict[bytes, Decoder] = {
    b"br": _brotli,
    b"deflate": _deflate,
    b"gzip": _gzip,
    b"identity": _identity,
    b"x-gzip": _gzip,
    b"zstd": _zstd,
}
