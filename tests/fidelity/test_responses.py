"""FACTS 2: what has to survive on the way to the client, over real sockets."""

import gzip
import json

import pytest
from support.servers import post, running
from support.upstream import LAST_CHUNK, STREAM_HEAD, Close, Reset, Script, Wait, chunk, response, scripted, stream

STREAMED = {**{"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}, "stream": True}
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'

STREAMS = {
    "plain": [EVENT, b"data: [DONE]\n\n"],
    "no done": [EVENT],
    "comments": [b": OPENROUTER PROCESSING\n\n", EVENT, b":\n\n"],
    "CRLF": [EVENT.replace(b"\n", b"\r\n")],
    "CR": [EVENT.replace(b"\n", b"\r")],
    "event and id lines": [b"event: delta\nid: 7\nretry: 10\n" + EVENT],
    "no space": [b'data:{"a":1}\n\n'],
    "cut inside a character": [b'data: {"c":"\xe2', b"\x82", b'\xac"}\n\n'],
    "a line of 300 kB": [b'data: {"c":"' + b"x" * 300_000 + b'"}\n\n'],
    "usage and extras": [
        b'data: {"choices":[{"index":1,"logprobs":{"content":[]},"delta":{"reasoning":"hm"}}],"usage":null}\n\n',
        b'data: {"choices":[],"usage":{"prompt_tokens":1e1,"extra":{"a":null}}}\n\n',
    ],
    "an error inside": [EVENT, b'data: {"error":{"message":"overloaded","code":null}}\n\n'],
    "no last newline": [b'data: {"a":1}'],
    "single bytes": [bytes([byte]) for byte in EVENT],
}


@pytest.mark.parametrize("events", STREAMS.values(), ids=STREAMS.keys())
async def test_a_stream_arrives_byte_for_byte(events: list[bytes]) -> None:
    async with scripted([stream(*events)]) as upstream, running(upstream.base) as proxy:
        answer = await proxy.chat(STREAMED)
    assert answer.complete
    assert answer.body == b"".join(events)
    assert answer.header("content-type") == "text/event-stream"
    assert answer.header("x-accel-buffering") == "no"
    assert (answer.header("edgewise-request-id") or "").startswith("ew_")


async def test_each_upstream_read_is_forwarded_at_once() -> None:
    first, second = Wait(), Wait()
    script: Script = [STREAM_HEAD, first, chunk(b"data: he"), second, chunk(b"llo\n\n"), LAST_CHUNK]
    async with scripted(script) as upstream, running(upstream.base) as proxy, proxy.client() as client:
        await client.send(post("/v1/chat/completions", STREAMED))
        assert (await client.head()).status == 200
        first.go()
        assert await client.chunk() == b"data: he"
        second.go()
        assert await client.chunk() == b"llo\n\n"
        assert await client.chunk() == b""


async def test_a_body_without_length_ends_with_its_connection() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"
    async with scripted([head, b'{"a":', b"1}", Close()]) as upstream, running(upstream.base) as proxy:
        answer = await proxy.chat()
    assert answer.complete
    assert answer.body == b'{"a":1}'


@pytest.mark.parametrize(
    "head",
    [
        STREAM_HEAD + chunk(EVENT),
        b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n" + EVENT,
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + EVENT,
    ],
    ids=["chunked", "length", "until the end"],
)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
async def test_a_reset_upstream_breaks_the_connection_of_the_client(head: bytes, path: str) -> None:
    sent = Wait()
    async with scripted([head, sent, Reset()]) as upstream, running(upstream.base) as proxy, proxy.client() as client:
        await client.send(post(path, STREAMED))
        answer = await client.head()
        sent.go()
        rest = await client.reader.read()
    assert answer.status == 200
    assert not rest.endswith(LAST_CHUNK)
    assert len(rest) < 500


async def test_a_stream_that_ends_without_its_last_chunk_is_cut_too() -> None:
    async with scripted([STREAM_HEAD + chunk(EVENT), Close()]) as upstream, running(upstream.base) as proxy:
        answer = await proxy.chat(STREAMED)
    assert (answer.status, answer.complete, answer.body) == (200, False, EVENT)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 500, 503, 529])
async def test_an_error_keeps_its_status_and_body_even_when_a_stream_was_asked_for(status: int) -> None:
    body = b'{"error": {"message": "no",  "code":null, "n":1e5}}'
    async with scripted([response(status, body)]) as upstream, running(upstream.base) as proxy:
        answer = await proxy.chat(STREAMED)
    assert (answer.status, answer.body) == (status, body)


async def test_a_context_length_error_is_verbatim() -> None:
    body = (
        b'{"error":{"message":"maximum context length","type":"invalid_request_error","param":"messages",'
        b'"code":"context_length_exceeded"}}'
    )
    async with scripted([response(400, body)]) as upstream, running(upstream.base) as proxy:
        answer = await proxy.chat()
    assert (answer.status, answer.body) == (400, body)


LIMITS = [
    ("retry-after", "1000"),
    ("retry-after-ms", "1000000"),
    ("x-ratelimit-limit-requests", "60"),
    ("x-ratelimit-remaining-tokens", "0"),
    ("x-ratelimit-reset-tokens", "6m0s"),
    ("x-should-retry", "false"),
]


async def test_a_429_is_verbatim_with_its_headers() -> None:
    body = b'{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}'
    async with scripted([response(429, body, *LIMITS)]) as upstream, running(upstream.base) as proxy:
        answer = await proxy.chat()
    assert (answer.status, answer.body) == (429, body)
    for name, value in LIMITS:
        assert answer.header(name) == value
    assert len(upstream.requests) == 1


async def test_an_html_page_is_wrapped_once_and_its_status_kept() -> None:
    page = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
    script = [response(502, page, ("retry-after", "7"), kind="text/html; charset=utf-8")]
    async with scripted(script) as upstream, running(upstream.base) as proxy:
        answer = await proxy.chat(STREAMED)
    assert answer.status == 502
    assert answer.header("content-type") == "application/json"
    assert answer.header("retry-after") == "7"
    assert answer.error["message"] == "the upstream answered 502 with an HTML page: 502 Bad Gateway"


async def test_an_html_page_elsewhere_is_untouched() -> None:
    page = response(404, b"<html></html>", kind="text/html")
    async with scripted([page]) as upstream, running(upstream.base) as proxy:
        answer = await proxy.get("/v1/files/x")
    assert answer.body == b"<html></html>"


async def test_headers_of_the_response_cross_except_for_hops_and_cookies() -> None:
    script = [
        response(
            200,
            b"{}",
            ("X-Request-ID", "req_1"),
            ("openai-processing-ms", "12"),
            ("Set-Cookie", "__cf_bm=1"),
            ("Keep-Alive", "timeout=5"),
            ("Connection", "keep-alive, x-hop"),
            ("X-Hop", "1"),
            ("Date", "Mon, 30 Nov 2026 00:00:00 GMT"),
            ("Server", "cloudflare"),
            ("Vary", "a"),
            ("Vary", "b"),
        )
    ]
    async with scripted(script) as upstream, running(upstream.base) as proxy:
        answer = await proxy.chat()
    kept = [(name, value) for name, value in answer.headers if name != "edgewise-request-id"]
    assert kept == [
        ("content-type", "application/json"),
        ("content-length", "2"),
        ("x-request-id", "req_1"),
        ("openai-processing-ms", "12"),
        ("date", "Mon, 30 Nov 2026 00:00:00 GMT"),
        ("server", "cloudflare"),
        ("vary", "a"),
        ("vary", "b"),
    ]
    assert answer.header("edgewise-request-id") is not None


async def test_a_response_that_comes_compressed_all_the_same_crosses_untouched() -> None:
    body = gzip.compress(b'{"usage":{"prompt_tokens":1}}')
    async with (
        scripted([response(200, body, ("content-encoding", "gzip"))]) as upstream,
        running(upstream.base) as proxy,
    ):
        answer = await proxy.chat()
    assert (answer.body, answer.header("content-encoding")) == (body, "gzip")


@pytest.mark.parametrize("size", [8_000, 20_000, 60_000])
async def test_long_response_headers_cross(size: int) -> None:
    async with scripted([response(200, b"{}", ("x-long", "v" * size))]) as upstream, running(upstream.base) as proxy:
        answer = await proxy.chat()
    assert answer.header("x-long") == "v" * size


async def test_three_hundred_response_headers_cross() -> None:
    many = [(f"x-{number}", "v") for number in range(300)]
    async with scripted([response(200, b"{}", *many)]) as upstream, running(upstream.base) as proxy:
        answer = await proxy.chat()
    assert answer.header("x-299") == "v"


@pytest.mark.parametrize("status", [301, 302, 307])
async def test_redirects_are_handed_on_not_followed(status: int) -> None:
    async with scripted([response(status, b"", ("location", "http://127.0.0.1:9/x"))]) as upstream:
        async with running(upstream.base) as proxy:
            answer = await proxy.get("/v1/models")
        assert (answer.status, answer.header("location")) == (status, "http://127.0.0.1:9/x")
        assert len(upstream.requests) == 1


async def test_responses_without_a_body_end_at_their_headers() -> None:
    script = b"HTTP/1.1 204 No Content\r\n\r\n"
    not_modified = b"HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\netag: x\r\n\r\n"
    async with scripted([script], [not_modified]) as upstream, running(upstream.base) as proxy:
        answers = [await proxy.get("/v1/files/x"), await proxy.get("/v1/files/x")]
    assert [answer.status for answer in answers] == [204, 304]
    assert answers[1].header("etag") == "x"


async def test_head_keeps_the_length_and_sends_no_body() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 1234\r\n\r\n"
    async with scripted([head]) as upstream, running(upstream.base) as proxy, proxy.client() as client:
        await client.send(b"HEAD /v1/files/x HTTP/1.1\r\nhost: x\r\n\r\nGET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n")
        first = await client.answer(method="HEAD")
        second = await client.head()
    assert (first.status, first.header("content-length")) == (200, "1234")
    assert second.status == 200


async def test_informational_responses_of_the_upstream_stay_there() -> None:
    script = [b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" + response(200, b"{}")]
    async with scripted(script) as upstream, running(upstream.base) as proxy:
        answer = await proxy.chat()
    assert (answer.status, answer.body) == (200, b"{}")


@pytest.mark.parametrize(
    "raw",
    [b"SSH-2.0-OpenSSH_9\r\n\r\n", b"HTTP/1.1 200 OK\r\nx-long: " + b"v" * 70_000 + b"\r\n\r\n"],
    ids=["not HTTP", "headers over the limit"],
)
async def test_a_response_that_cannot_be_read_is_a_502(raw: bytes) -> None:
    async with scripted([raw, Close()]) as upstream, running(upstream.base) as proxy:
        answer = await proxy.chat()
    assert answer.status == 502
    assert answer.error["type"] == "upstream_error"


async def test_two_hundred_events_with_usage_cross_whatever_their_cuts() -> None:
    payload = [json.dumps({"choices": [{"delta": {"content": "é" * n}}], "usage": None}) for n in range(200)]
    whole = b"".join(b"data: " + event.encode() + b"\r\n\r\n" for event in payload)
    pieces = [whole[start : start + 7] for start in range(0, len(whole), 7)]
    async with scripted([STREAM_HEAD, *map(chunk, pieces), LAST_CHUNK]) as upstream, running(upstream.base) as proxy:
        answer = await proxy.chat(STREAMED)
    assert answer.body == whole
