from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.errors import Refusal
from proxy.routing import Routes, Upstream, rest_of

A = Upstream.of("http://a.test:1/v1")
B = Upstream.of("http://b.test/v1/")
C = Upstream.of("https://c.test/openai/v1", "key")


def test_a_base_loses_its_last_slash_and_gives_its_host_as_name() -> None:
    assert (B.base, B.name) == ("http://b.test/v1", "b.test")
    assert Upstream("c.test", "https://c.test/openai/v1", "key") == C


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://127.0.0.1:8000/v1", "127.0.0.1:8000"),
        ("http://[::1]:8000/v1", "[::1]:8000"),
        ("https://host_1.ns.svc.cluster.local./v1beta/openai", "host_1.ns.svc.cluster.local."),
        ("https://x.openai.azure.com/openai/deployments/gpt%2d4", "x.openai.azure.com"),
        (" http://LOCALHOST ", "LOCALHOST"),
    ],
)
def test_bases_of_every_common_kind_are_taken(url: str, name: str) -> None:
    assert Upstream.of(url).name == name


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a.test/v1",
        "ftp://a/v1",
        "http://",
        "http:///v1",
        "http://u:p@a/v1",
        "http://a/v1?x=1",
        "http://a/v1#f",
        "http://a b/v1",
        "http://a..b/v1",
        "http://a:port/v1",
        "http://a:/v1",
        "http://sch\u00f6n.test/v1",
        "http://a/v1/a b",
        "http://a/v1\\x",
    ],
)
def test_what_is_no_plain_base_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="give the"):
        Upstream.of(url)


def test_the_first_pattern_that_fits_wins_and_the_default_takes_the_rest() -> None:
    routes = Routes.of(A, {"gpt-4o*": B, "gpt-*": C})
    assert routes.for_model("gpt-4o-mini") is B
    assert routes.for_model("gpt-5") is C
    assert routes.for_model("qwen") is A
    assert routes.for_model("GPT-5") is A
    assert routes.for_path() is A
    assert routes.upstreams == (A, B, C)


def test_a_model_without_an_upstream_is_404() -> None:
    routes = Routes.of(None, {"gpt-*": C, "o*": C})
    assert routes.for_path() is C
    assert routes.upstreams == (C,)
    with pytest.raises(Refusal, match="'qwen'") as refused:
        routes.for_model("qwen")
    assert refused.value.status == 404


def test_without_any_upstream_a_path_is_503() -> None:
    with pytest.raises(Refusal, match="EDGEWISE_UPSTREAM") as refused:
        Routes().for_path()
    assert refused.value.status == 503


@pytest.mark.parametrize(
    ("path", "rest"),
    [
        (b"/v1/models", b"/models"),
        (b"/v1/", b"/"),
        (b"//v1/models", b"/models"),
        (b"/v1//models/", b"//models/"),
        (b"/v1/a.b/..c/c..", b"/a.b/..c/c.."),
        (b"/v1/%41%2f", b"/%41%2f"),
        (b"/chat/completions", b"/chat/completions"),
        (b"/v1", None),
        (b"/v10/x", None),
        (b"/", None),
        (b"", None),
        (b"v1/x", None),
    ],
)
def test_the_rest_of_a_path_keeps_its_bytes(path: bytes, rest: bytes | None) -> None:
    assert rest_of(path) == rest


@given(st.binary(max_size=40))
def test_whatever_is_forwarded_stays_under_the_base(tail: bytes) -> None:
    with suppress(Refusal):
        rest = rest_of(b"/v1/" + tail) or b""
        assert rest == b"/" + tail
        assert not {b"..", b"."} & set(rest.replace(b"%2E", b".").replace(b"%2e", b".").split(b"/"))
        assert not set(rest) & set(b"@\\#\r\n\t \0\x7f")
