"""FACTS 2: what has to survive on the way to the upstream, over real sockets."""

import gzip
import json
import zlib

import brotli
import pytest
from support.servers import CHAT, post, request, running
from support.upstream import scripted, until
from support.zstandard import compress as zstd_compress

EXACT = (
    b'{ "zz":1e5,"model" : "gpt-4o","messages":[ {"role":"developer","content":null,"big":9007199254740993,'
    b'"deep":{"a":[1e5,-0.0,null]}},{"role":"function","name":"f","content":"\\u00e9\\ud83d\\ude00"},'
    b'{"role":"tool","tool_call_id":"c","name":"n","content":"x"} ] ,"unknown":{"b":1,"a":2},"user":null}'
)


async def test_the_body_arrives_byte_for_byte() -> None:
    async with scripted() as upstream, running(upstream.base) as proxy:
        answer = await proxy.chat(EXACT)
    assert answer.status == 200
    assert answer.body == b'{"ok":true}'
    assert upstream.requests[0].body == EXACT
    assert upstream.requests[0].line == b"POST /v1/chat/completions HTTP/1.1"


async def test_a_body_with_a_lone_surrogate_arrives_byte_for_byte() -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"\\ud800"}]}'
    async with scripted() as upstream, running(upstream.base) as proxy:
        await proxy.chat(body)
    assert upstream.requests[0].body == body


@pytest.mark.parametrize(
    ("coding", "compress"),
    [
        ("gzip", gzip.compress),
        ("x-gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("br", brotli.compress),
        ("zstd", zstd_compress),
        ("GZIP", gzip.compress),
    ],
)
async def test_a_compressed_chat_body_is_decoded_and_leaves_as_plain_bytes(coding: str, compress: object) -> None:
    assert callable(compress)
    async with scripted() as upstream, running(upstream.base) as proxy:
        answer = await proxy.chat(compress(EXACT), ("content-encoding", coding))
    assert answer.status == 200
    assert upstream.requests[0].body == EXACT
    assert upstream.requests[0].header(b"content-encoding") is None
    assert upstream.requests[0].header(b"content-length") == str(len(EXACT)).encode()


async def test_a_compressed_body_elsewhere_stays_compressed() -> None:
    body = gzip.compress(b'{"input":"x"}')
    async with scripted() as upstream, running(upstream.base) as proxy:
        await proxy.ask(post("/v1/embeddings", body, ("content-encoding", "gzip")))
    assert upstream.requests[0].body == body
    assert upstream.requests[0].header(b"content-encoding") == b"gzip"


async def test_the_limit_counts_decoded_bytes() -> None:
    body = gzip.compress(json.dumps({**CHAT, "pad": list(range(40_000))}).encode())
    async with scripted() as upstream, running(upstream.base, max_body_bytes=150_000) as proxy:
        answer = await proxy.chat(body, ("content-encoding", "gzip"))
    assert len(body) < 150_000
    assert (answer.status, answer.error["code"]) == (413, "request_too_large")
    assert upstream.requests == []


async def test_a_decompression_bomb_is_refused_long_before_the_limit() -> None:
    body = gzip.compress(b'{"messages":"' + b" " * 20_000_000 + b'"}')
    async with scripted() as upstream, running(upstream.base) as proxy:
        answer = await proxy.chat(body, ("content-encoding", "gzip"))
    assert answer.status == 413
    assert upstream.requests == []


async def test_an_unknown_coding_is_refused_with_the_ones_that_are_known() -> None:
    async with scripted() as upstream, running(upstream.base) as proxy:
        answer = await proxy.chat(b"xx", ("content-encoding", "lzma"))
    assert answer.status == 415
    assert "br, deflate, gzip, identity, x-gzip, zstd" in answer.error["message"]


async def test_the_default_limit_is_64_mib() -> None:
    async with scripted() as upstream, running(upstream.base) as proxy:
        head = request("POST", "/v1/chat/completions", b"", ("content-length", str(64 * 1024 * 1024 + 1)))
        answer = await proxy.ask(head)
    assert (answer.status, answer.error["type"]) == (413, "invalid_request_error")


async def test_a_chunked_body_over_the_limit_is_refused_while_it_comes() -> None:
    async with scripted() as upstream, running(upstream.base, max_body_bytes=1000) as proxy, proxy.client() as client:
        await client.send(request("POST", "/v1/chat/completions", b"", ("transfer-encoding", "chunked")))
        await client.send(b"3e9\r\n" + b" " * 1001 + b"\r\n")
        answer = await client.answer()
    assert answer.status == 413
    assert upstream.requests == []


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/", "//v1/models", "/v1//models", "/v1/a%20b%2Fc/x;y=1"])
async def test_paths_arrive_without_a_redirect(path: str) -> None:
    async with scripted() as upstream, running(upstream.base) as proxy:
        answer = await proxy.get(path)
    assert answer.status == 200
    assert upstream.requests[0].line == b"GET /v1" + path.replace("//v1", "/v1")[3:].encode() + b" HTTP/1.1"


@pytest.mark.parametrize(
    ("path", "arrives"),
    [
        ("/v1/chat/completions/", b"POST /v1/chat/completions/ HTTP/1.1"),
        ("//v1/chat/completions", b"POST /v1/chat/completions HTTP/1.1"),
        ("/v1//chat/completions", b"POST /v1//chat/completions HTTP/1.1"),
        ("/v1/chat//completions//", b"POST /v1/chat//completions// HTTP/1.1"),
        ("/chat/completions", b"POST /v1/chat/completions HTTP/1.1"),
        ("/v1/chat/completions?a=b", b"POST /v1/chat/completions?a=b HTTP/1.1"),
    ],
)
async def test_every_spelling_of_the_chat_path_is_chat(path: str, arrives: bytes) -> None:
    async with scripted() as upstream, running(upstream.base) as proxy:
        wrong = await proxy.chat(b"{}", path=path)
        right = await proxy.chat(path=path)
    assert (wrong.status, right.status) == (400, 200)
    assert upstream.requests[0].line == arrives


async def test_the_query_string_arrives_byte_for_byte() -> None:
    query = "?b=2&a=%2f%2F&a=1+1&&x=user@host&empty=&c=%C3%A9&t=~'()*"
    async with scripted() as upstream, running(upstream.base) as proxy:
        await proxy.get("/v1/files" + query)
    assert upstream.requests[0].line == f"GET /v1/files{query} HTTP/1.1".encode()


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_other_paths_take_any_method_and_any_body(method: str) -> None:
    body = bytes(range(256))
    async with scripted() as upstream, running(upstream.base) as proxy:
        answer = await proxy.ask(request(method, "/v1/files/x", body, ("content-type", "application/x-thing")))
    assert answer.body == b'{"ok":true}'
    assert upstream.requests[0].line == f"{method} /v1/files/x HTTP/1.1".encode()
    assert upstream.requests[0].body == body
    assert upstream.requests[0].header(b"content-type") == b"application/x-thing"


async def test_a_large_upload_streams_through_with_its_length() -> None:
    body = bytes(range(256)) * 8192
    async with scripted() as upstream, running(upstream.base, max_body_bytes=1000) as proxy:
        answer = await proxy.ask(post("/v1/files", body))
    assert answer.status == 200
    assert upstream.requests[0].body == body
    assert upstream.requests[0].header(b"content-length") == str(len(body)).encode()
    assert upstream.requests[0].header(b"transfer-encoding") is None


async def test_a_chunked_upload_arrives_whole() -> None:
    async with scripted() as upstream, running(upstream.base) as proxy, proxy.client() as client:
        await client.send(request("POST", "/v1/files", b"", ("transfer-encoding", "chunked")))
        await client.send(b"5\r\nhello\r\n")
        await until(lambda: upstream.connections == 1)
        await client.send(b"6\r\n world\r\n0\r\n\r\n")
        answer = await client.answer()
    assert answer.status == 200
    assert upstream.requests[0].body == b"hello world"
    assert upstream.requests[0].header(b"transfer-encoding") == b"chunked"


async def test_expect_100_continue_is_answered_and_not_forwarded() -> None:
    body = json.dumps(CHAT).encode()
    async with scripted() as upstream, running(upstream.base) as proxy, proxy.client() as client:
        head = ("content-length", str(len(body))), ("expect", "100-continue")
        await client.send(request("POST", "/v1/chat/completions", b"", *head))
        assert (await client.head()).status == 100
        await client.send(body)
        answer = await client.answer()
    assert answer.status == 200
    assert upstream.requests[0].header(b"expect") is None


async def test_a_body_that_is_declared_too_large_is_not_invited() -> None:
    async with scripted() as upstream, running(upstream.base, max_body_bytes=10) as proxy, proxy.client() as client:
        head = ("content-length", "11"), ("expect", "100-continue")
        await client.send(request("POST", "/v1/chat/completions", b"", *head))
        answer = await client.answer()
    assert answer.status == 413
    assert answer.header("connection") == "close"


async def test_hop_by_hop_headers_and_those_that_connection_names_stay_here() -> None:
    async with scripted() as upstream, running(upstream.base) as proxy:
        await proxy.chat(
            None,
            ("connection", "keep-alive, X-Only-Here"),
            ("x-only-here", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("trailer", "x-sum"),
            ("proxy-authorization", "Basic eA=="),
            ("proxy-connection", "keep-alive"),
            ("upgrade", "h2c"),
            ("cookie", "session=1"),
            ("edgewise-mode", "observe"),
            ("edgewise-anything", "1"),
        )
    names = [name for name, _ in upstream.requests[0].headers]
    assert names == [b"host", b"content-type", b"accept-encoding", b"content-length"]


async def test_what_speaks_for_the_client_is_forwarded() -> None:
    sent = [
        ("authorization", "Bearer sk-client"),
        ("openai-organization", "org"),
        ("openai-project", "proj"),
        ("openai-beta", "assistants=v2"),
        ("idempotency-key", "i-1"),
        ("x-client-request-id", "c-1"),
        ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ("x-stainless-lang", "python"),
        ("user-agent", "OpenAI/Python 3.57"),
        ("x-utf8", "caf\u00e9"),
    ]
    async with scripted() as upstream, running(upstream.base) as proxy:
        await proxy.chat(None, *sent)
    forwarded = dict(upstream.requests[0].headers)
    for name, value in sent:
        assert forwarded[name.encode()] == value.encode()
    assert forwarded[b"host"] == f"127.0.0.1:{upstream.port}".encode()


async def test_a_repeated_header_arrives_as_often_as_it_was_sent() -> None:
    async with scripted() as upstream, running(upstream.base) as proxy:
        await proxy.get("/v1/models", ("x-tag", "a"), ("x-tag", "b"))
    assert [value for name, value in upstream.requests[0].headers if name == b"x-tag"] == [b"a", b"b"]


async def test_chat_asks_for_plain_bytes_and_other_paths_for_what_the_client_asked() -> None:
    async with scripted() as upstream, running(upstream.base) as proxy:
        await proxy.chat(None, ("accept-encoding", "gzip, br"))
        await proxy.get("/v1/models", ("accept-encoding", "gzip, br"))
    assert [received.header(b"accept-encoding") for received in upstream.requests] == [b"identity", b"gzip, br"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"{", "not valid JSON"),
        (b"", "not valid JSON"),
        (b"[]", "expected an object"),
        (b'{"model":"m"}', "'messages' is missing"),
        (b'{"messages":[],"model":"a","model":"b"}', "'model' stands twice"),
    ],
)
async def test_a_bad_body_is_answered_with_an_error_object(body: bytes, says: str) -> None:
    async with scripted() as upstream, running(upstream.base) as proxy:
        answer = await proxy.chat(body)
    assert answer.status == 400
    assert answer.header("content-type") == "application/json"
    assert answer.error["type"] == "invalid_request_error"
    assert says in answer.error["message"]
    assert upstream.requests == []


SMUGGLED = {
    "both lengths": b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello",
    "an unknown coding": b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "a coding in disguise": b"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a bare line feed": b"x-a: 1\nx-b: 2\r\n\r\n",
    "a space before the colon": b"content-length : 5\r\n\r\nhello",
}


@pytest.mark.parametrize("rest", SMUGGLED.values(), ids=SMUGGLED.keys())
async def test_framing_that_two_parsers_could_read_differently_is_refused(rest: bytes) -> None:
    async with scripted() as upstream, running(upstream.base) as proxy:
        answer = await proxy.ask(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n" + rest)
    assert answer.status == 400
    assert upstream.requests == []


async def test_an_h2c_offer_is_declined_and_the_request_served() -> None:
    offer = ("connection", "Upgrade, HTTP2-Settings"), ("upgrade", "h2c"), ("http2-settings", "AAMAAABkAAQAAP__")
    async with scripted() as upstream, running(upstream.base) as proxy:
        answer = await proxy.chat(None, *offer)
    assert answer.status == 200
    assert upstream.requests[0].header(b"http2-settings") is None
    assert json.loads(upstream.requests[0].body) == CHAT


async def test_requests_that_were_pipelined_are_answered_in_order() -> None:
    async with scripted() as upstream, running(upstream.base) as proxy, proxy.client() as client:
        await client.send(post("/v1/chat/completions", CHAT) + request("GET", "/v1/models", b""))
        answers = [await client.answer(), await client.answer()]
    assert [answer.status for answer in answers] == [200, 200]
    assert [received.line[:4] for received in upstream.requests] == [b"POST", b"GET "]
