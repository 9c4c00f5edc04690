import gzip
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.zstandard import compress as zstd_compress

from proxy.bodies import INLINE, MAX_RATIO, RATIO_FLOOR, ClientGone, Receive, TooLarge, decode, read
from proxy.errors import Refusal

LIMIT = 1_000_000


def raw_deflate(body: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-15)
    return stream.compress(body) + stream.flush()


COMPRESS: dict[bytes, Callable[[bytes], bytes]] = {
    b"gzip": gzip.compress,
    b"deflate": zlib.compress,
    b"br": brotli.compress,
    b"zstd": zstd_compress,
}


def receiving(*pieces: bytes | None) -> Receive:
    """None stands for a client that leaves."""
    left = list(pieces)

    async def receive() -> dict[str, Any]:
        piece = left.pop(0)
        if piece is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": piece, "more_body": bool(left)}

    return receive


async def test_a_body_in_one_piece_is_that_piece() -> None:
    body = b'{"a":1}' * 1000
    assert await read(receiving(body), [], LIMIT) is body


async def test_pieces_are_joined() -> None:
    assert await read(receiving(b"a", b"", b"bc"), [(b"content-encoding", b"identity")], LIMIT) == b"abc"


async def test_a_client_that_leaves_inside_its_body_is_told_apart() -> None:
    with pytest.raises(ClientGone):
        await read(receiving(b"a", None), [], LIMIT)
    with pytest.raises(ClientGone):
        await read(receiving(None), [], LIMIT)


@pytest.mark.parametrize("pieces", [(b"x" * 11,), (b"x" * 6, b"x" * 5)])
async def test_a_body_over_the_limit_is_refused(pieces: tuple[bytes, ...]) -> None:
    with pytest.raises(TooLarge, match="larger than 10 bytes") as refused:
        await read(receiving(*pieces), [], 10)
    assert refused.value.status == 413
    assert await read(receiving(*pieces), [], 11) == b"x" * 11


async def test_a_declared_length_is_refused_before_anything_is_read() -> None:
    with pytest.raises(TooLarge):
        await read(receiving(), [(b"content-length", b"11")], 10)


@pytest.mark.parametrize("coding", COMPRESS)
async def test_a_long_compressed_body_is_decoded_off_the_event_loop(coding: bytes) -> None:
    body = b"".join(b"%d," % (number * 7919 % 100_003) for number in range(100_000))
    compressed = COMPRESS[coding](body)
    assert len(compressed) > INLINE
    assert await read(receiving(compressed), [(b"content-encoding", coding)], LIMIT) == body


@given(st.binary(max_size=3000), st.sampled_from(sorted(COMPRESS)))
def test_decoding_gives_back_what_was_compressed(body: bytes, coding: bytes) -> None:
    assert decode(COMPRESS[coding](body), coding, LIMIT) == body


@given(st.binary(min_size=1, max_size=300), st.sampled_from(sorted(COMPRESS)), st.integers(1, 300))
def test_a_cut_or_damaged_body_is_refused_and_nothing_else_is_raised(body: bytes, coding: bytes, cut: int) -> None:
    compressed = COMPRESS[coding](body)
    with pytest.raises(Refusal) as refused:
        decode(compressed[: max(1, len(compressed) - cut)], coding, LIMIT)
    assert refused.value.status == 400


@given(st.binary(max_size=300), st.sampled_from(sorted(COMPRESS)))
def test_noise_is_refused_or_decoded_and_nothing_else_is_raised(noise: bytes, coding: bytes) -> None:
    with suppress(Refusal):
        decode(noise, coding, LIMIT)


def test_deflate_without_its_header_is_understood() -> None:
    assert decode(raw_deflate(b"hello" * 100), b"deflate", LIMIT) == b"hello" * 100


def test_members_one_after_another_are_joined() -> None:
    assert decode(gzip.compress(b"a") + gzip.compress(b"b"), b"gzip", LIMIT) == b"ab"
    assert decode(zstd_compress(b"a") + zstd_compress(b"b"), b"zstd", LIMIT) == b"ab"


def test_two_codings_are_undone_in_reverse_order_and_a_third_refused() -> None:
    twice = brotli.compress(gzip.compress(b"hello"))
    assert decode(twice, b"gzip, br", LIMIT) == b"hello"
    assert decode(twice, b" GZIP ,BR, ", LIMIT) == b"hello"
    with pytest.raises(Refusal) as refused:
        decode(brotli.compress(twice), b"gzip, br, br", LIMIT)
    assert refused.value.status == 415


@pytest.mark.parametrize("coding", COMPRESS)
def test_a_bomb_is_refused_by_ratio_and_a_small_body_by_the_limit_alone(coding: bytes) -> None:
    bomb = COMPRESS[coding](b"\0" * 30_000_000)
    assert len(bomb) * MAX_RATIO < 30_000_000
    with pytest.raises(TooLarge):
        decode(bomb, coding, 10**9)
    small = COMPRESS[coding](b"\0" * RATIO_FLOOR)
    assert decode(small, coding, LIMIT) == b"\0" * RATIO_FLOOR
    with pytest.raises(TooLarge):
        decode(small, coding, RATIO_FLOOR - 1)


def test_identity_beside_another_coding_changes_nothing() -> None:
    assert decode(gzip.compress(b"hello"), b"gzip, identity", LIMIT) == b"hello"


def test_a_body_of_exactly_the_limit_passes() -> None:
    for coding, compress in COMPRESS.items():
        assert decode(compress(b"x" * 5000), coding, 5000) == b"x" * 5000
