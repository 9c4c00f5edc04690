from proxy.headers import KEPT_FROM_CHAT_UPSTREAM, KEPT_FROM_UPSTREAM, find, to_client, to_upstream


def test_the_first_value_is_found() -> None:
    assert find([(b"a", b"1"), (b"a", b"2")], b"a") == b"1"
    assert find([], b"a") is None


def test_framing_and_hops_stay_and_the_rest_goes_on_in_order() -> None:
    received = [
        (b"host", b"h"),
        (b"b", b"1"),
        (b"content-length", b"3"),
        (b"connection", b"close, X-Gone"),
        (b"x-gone", b"1"),
        (b"a", b"2"),
        (b"edgewise-mode", b"observe"),
        (b"cookie", b"c"),
        (b"b", b"3"),
    ]
    assert to_upstream(received, KEPT_FROM_UPSTREAM) == [(b"b", b"1"), (b"a", b"2"), (b"b", b"3")]


def test_chat_leaves_its_encodings_behind_and_others_do_not() -> None:
    received = [(b"accept-encoding", b"br"), (b"content-encoding", b"gzip"), (b"a", b"1")]
    assert to_upstream(received, KEPT_FROM_CHAT_UPSTREAM) == [(b"a", b"1")]
    assert to_upstream(received, KEPT_FROM_UPSTREAM) == received


def test_responses_lose_hops_cookies_and_a_forged_report() -> None:
    received = [
        (b"Content-Type", b"a"),
        (b"Set-Cookie", b"a"),
        (b"Transfer-Encoding", b"chunked"),
        (b"Connection", b"Foo"),
        (b"FOO", b"1"),
        (b"Edgewise-Request-Id", b"x"),
        (b"Content-Length", b"3"),
    ]
    assert to_client(received, 200) == [(b"content-type", b"a"), (b"content-length", b"3")]
    assert to_client(received, 204) == to_client(received, 304) == [(b"content-type", b"a")]
