import json

import pytest
from support.memory import Canned

from proxy.pages import is_page, wrapped

PAGE = [(b"Content-Type", b"text/html"), (b"Content-Length", b"9"), (b"Retry-After", b"3"), (b"ETag", b"x")]


@pytest.mark.parametrize(
    ("status", "kind", "expected"),
    [
        (502, b"text/html", True),
        (400, b"Text/HTML; charset=utf-8", True),
        (200, b"text/html", False),
        (302, b"text/html", False),
        (502, b"application/json", False),
        (502, b"", False),
    ],
)
def test_only_an_error_in_html_is_a_page(status: int, kind: bytes, expected: bool) -> None:
    assert is_page(Canned(status, [(b"Content-Type", kind)])) is expected


async def test_the_title_is_kept_and_what_described_the_page_is_not() -> None:
    page = Canned(503, PAGE, b"<HTML><Title lang=en>\n 503 Service ", b"Unavailable </title>")
    reply = await wrapped(page)
    body = await reply.read()
    assert reply.status == 503
    assert json.loads(body)["error"] == {
        "message": "the upstream answered 503 with an HTML page: 503 Service Unavailable",
        "type": "upstream_error",
        "param": None,
        "code": "upstream_html",
    }
    assert reply.headers == [
        (b"Retry-After", b"3"),
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    assert page.closed
    assert await reply.read() == b""
    reply.close()


async def test_a_page_without_a_title_is_still_an_error_object() -> None:
    reply = await wrapped(Canned(502, PAGE, b"\xff\xfe"))
    assert json.loads(await reply.read())["error"]["message"] == "the upstream answered 502 with an HTML page"


async def test_a_long_title_is_cut() -> None:
    reply = await wrapped(Canned(502, PAGE, b"<title>" + b"x" * 5000 + b"</title>"))
    assert len(await reply.read()) < 400
