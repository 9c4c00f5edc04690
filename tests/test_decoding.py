import gzip
import json
import random
import zlib
from collections.abc import Callable

import brotli
import pytest
from support.memory import Canned
from support.reading import BODY, EVENTS, JSON, Reads, answer, ask, document, documents, own, sse, streamed
from support.rounds import TOOL, read
from support.servers import running
from support.upstream import LAST_CHUNK, Act, Close, chunk, response, scripted
from support.zstandard import compress as zstd_compress

from proxy.decoding import decoded
from proxy.errors import BrokenOff, Malformed
from proxy.sse import MAX_BUFFER
from proxy.upstream import Reply

TEXT = "价格 42, and so on. ".encode() * 40 + random.Random(0).randbytes(600)


def raw_deflate(body: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-15)
    return stream.compress(body) + stream.flush()


COMPRESS: list[tuple[bytes, Callable[[bytes], bytes]]] = [
    (b"gzip", gzip.compress),
    (b"X-GZIP", gzip.compress),
    (b"deflate", zlib.compress),
    (b"deflate", raw_deflate),
    (b"br", brotli.compress),
    (b"zstd", zstd_compress),
    (b"gzip, identity , br", lambda body: brotli.compress(gzip.compress(body))),
]
EACH = pytest.mark.parametrize(("coding", "compress"), COMPRESS)


def coded(coding: bytes, *pieces: bytes) -> Reply:
    return decoded(Canned(200, [(b"Content-Encoding", coding), (b"Content-Length", b"9"), (b"x", b"y")], *pieces))


async def pieces_of(reply: Reply) -> list[bytes]:
    pieces = []
    while piece := await reply.read():
        pieces.append(piece)
    return pieces


def cut(body: bytes, size: int) -> list[bytes]:
    return [body[at : at + size] for at in range(0, len(body), size)]


@EACH
@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_an_answer_comes_out_as_it_was_wherever_it_was_cut(
    coding: bytes, compress: Callable[[bytes], bytes], size: int
) -> None:
    reply = coded(coding, *cut(compress(TEXT), size))
    assert (reply.status, reply.headers, reply.ended) == (200, [(b"x", b"y")], False)
    assert b"".join(await pieces_of(reply)) == TEXT
    assert await reply.read() == b""


async def test_what_was_flushed_is_out_at_once() -> None:
    stream = zlib.compressobj(wbits=31)
    first = stream.compress(b"data: a\n\n") + stream.flush(zlib.Z_SYNC_FLUSH)
    reply = coded(b"gzip", first, stream.flush())
    assert await reply.read() == b"data: a\n\n"
    assert await reply.read() == b""


@EACH
async def test_one_read_gives_a_bounded_piece_of_a_long_answer(
    coding: bytes, compress: Callable[[bytes], bytes]
) -> None:
    body = b"x" * (3 * MAX_BUFFER + 5)
    reply = coded(coding, compress(body))
    pieces = await pieces_of(reply)
    assert b"".join(pieces) == body
    assert max(map(len, pieces)) <= 2 * MAX_BUFFER
    assert len(pieces) > 1


@EACH
async def test_an_answer_that_ends_inside_is_broken_off(coding: bytes, compress: Callable[[bytes], bytes]) -> None:
    body = compress(TEXT)
    for end in [*range(1, 40), *range(40, len(body), 97), len(body) - 1]:
        with pytest.raises(BrokenOff):
            await pieces_of(coded(coding, body[:end]))


@EACH
async def test_nothing_at_all_is_a_whole_answer(coding: bytes, compress: Callable[[bytes], bytes]) -> None:
    assert compress(b"")
    assert await coded(coding).read() == b""


@EACH
async def test_an_answer_that_is_damaged_is_broken_off(coding: bytes, compress: Callable[[bytes], bytes]) -> None:
    body = compress(TEXT)
    with pytest.raises(BrokenOff):
        await pieces_of(coded(coding, b"\xff\xff" * 8 + body))


@pytest.mark.parametrize(("coding", "compress"), [COMPRESS[0], COMPRESS[2], COMPRESS[5]])
@pytest.mark.parametrize("size", [1, 10_000])
async def test_whole_streams_one_after_another_are_one_answer(
    coding: bytes, compress: Callable[[bytes], bytes], size: int
) -> None:
    reply = coded(coding, *cut(compress(b"one ") + compress(b"two"), size))
    assert b"".join(await pieces_of(reply)) == b"one two"


async def test_what_follows_a_whole_brotli_stream_is_none_of_it() -> None:
    assert await pieces_of(coded(b"br", brotli.compress(b"one"), b"more")) == [b"one"]


@pytest.mark.parametrize("coding", [b"snappy", b"gzip, br, gzip", b"gzip, aes128gcm"])
def test_a_coding_that_nobody_knows_is_no_answer(coding: bytes) -> None:
    reply = Canned(200, [(b"content-encoding", coding)])
    with pytest.raises(Malformed):
        decoded(reply)
    assert reply.closed


async def test_an_answer_that_is_not_compressed_is_itself() -> None:
    for headers in ([], [(b"content-encoding", b"identity")]):
        reply = Canned(200, headers)
        assert decoded(reply) is reply


async def test_it_knows_its_end_where_the_reply_does_and_closes_with_it() -> None:
    inner = Canned(200, [(b"content-encoding", b"gzip")], gzip.compress(b"one"))
    inner.knows_its_end = True
    reply = decoded(inner)
    await reply.pour(lambda _: True)
    assert (await reply.read(), reply.ended) == (b"one", True)
    reply.close()
    assert inner.closed


def events(coding: bytes, body: bytes) -> bytes:
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: %b\r\ntransfer-encoding: chunked\r\n"
    )
    return head % coding + b"\r\n" + b"".join(map(chunk, cut(body, 50)))


@EACH
async def test_over_sockets_compressed_rounds_are_read_and_reach_the_client_as_one_plain_stream(
    coding: bytes, compress: Callable[[bytes], bytes]
) -> None:
    rounds = [events(coding, compress(raw)) + LAST_CHUNK for raw in streamed(answer("so", own()), answer("7"))]
    async with scripted(*[[one] for one in rounds]) as upstream, running(upstream.base, planner=Reads()) as proxy:
        got = await proxy.chat(BODY)
    assert (got.complete, got.header("content-encoding"), TOOL.encode() in got.body) == (True, None, False)
    assert (read(got.body).text, read(got.body).finishes, read(got.body).done) == ("so7", ["stop"], 1)


@EACH
async def test_over_sockets_compressed_documents_are_read_and_told_plain(
    coding: bytes, compress: Callable[[bytes], bytes]
) -> None:
    name = ("content-encoding", coding.decode())
    rounds = [response(200, compress(raw), name) for raw in documents(answer("so", own()), answer("7"))]
    async with scripted(*[[one] for one in rounds]) as upstream, running(upstream.base, planner=Reads()) as proxy:
        got = await proxy.chat(BODY)
    assert (got.header("content-encoding"), got.header("content-length")) == (None, str(len(got.body)))
    assert got.json["choices"][0]["message"]["content"] == "so7"


async def test_over_sockets_a_compressed_stream_that_is_cut_cuts_the_client() -> None:
    raw = gzip.compress(streamed(answer("so much text that is sent"))[0])
    acts: list[Act] = [events(b"gzip", raw[:-9]), Close()]
    whole: list[Act] = [events(b"gzip", raw[:-9]) + LAST_CHUNK]
    for script in (acts, whole):
        async with scripted(script) as upstream, running(upstream.base, planner=Reads()) as proxy:
            got = await proxy.chat(BODY)
        assert (got.complete, got.status) == (False, 200)


async def test_a_later_round_in_a_coding_that_nobody_knows_is_an_error_event() -> None:
    strange = Canned(200, [*EVENTS, (b"content-encoding", b"snappy")], b"x")
    got, _ = await ask(Reads(), sse(streamed(answer("so", own()))[0]), strange)
    assert (read(got.body).text, read(got.body).done, strange.closed) == ("so", 0, True)
    assert "compressed" in read(got.body).errors[0]["message"]


async def test_a_later_error_stays_as_compressed_as_it_came() -> None:
    error = gzip.compress(b'{"error": {"message": "full"}}')
    refusal = Canned(400, [*JSON, (b"content-encoding", b"gzip")], error)
    got, _ = await ask(Reads(), Canned(200, JSON, document(answer("", own()))), refusal)
    assert (got.status, got.body, dict(got.headers)[b"content-encoding"]) == (400, error, b"gzip")
    assert json.loads(gzip.decompress(got.body))["error"]["message"] == "full"
