import json
from typing import Any

import pytest
from support.plans import engine

from policies.request import ChatRequest
from policies.spans import Span
from proxy.headers import Header
from proxy.planner import Call
from proxy.routing import Upstream
from proxy.sessions import session_of

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Which station?"}]


def asked(messages: list[dict[str, str]], **fields: Any) -> tuple[ChatRequest, tuple[Span, ...]]:
    request = ChatRequest.parse(json.dumps({"model": "gpt-4o", "messages": messages} | fields).encode())
    return request, tuple(engine().plan_sync(request, 8_000).received)


def called(*headers: Header, tenant: str = "t1") -> Call:
    return Call("ew_1", headers, tenant, Upstream.of("http://a.test/v1"))


def label(messages: list[dict[str, str]], call: Call, **fields: Any) -> str:
    request, spans = asked(messages, **fields)
    return session_of(request, call, spans)


@pytest.mark.parametrize("name", [b"edgewise-session", b"x-session-id", b"x-litellm-session-id"])
def test_a_session_is_what_the_client_calls_it(name: bytes) -> None:
    assert label(MESSAGES, called((name, b"incident 7"))) == "incident 7"


def test_a_cache_key_in_the_body_names_the_session() -> None:
    assert label(MESSAGES, called(), prompt_cache_key="agent-1") == "agent-1"


@pytest.mark.parametrize("value", [7, None, {"a": 1}])
def test_a_cache_key_that_is_no_text_names_nothing(value: object) -> None:
    assert label(MESSAGES, called(), prompt_cache_key=value) == label(MESSAGES, called())


def test_a_conversation_keeps_its_label_as_it_grows() -> None:
    longer = [*MESSAGES, {"role": "assistant", "content": "3"}, {"role": "user", "content": "And then?"}]
    assert label(longer, called()) == label(MESSAGES, called())
    assert label(MESSAGES, called()).startswith("s_")


def test_another_tenant_or_another_beginning_is_another_session() -> None:
    first = label(MESSAGES, called())
    assert label(MESSAGES, called(tenant="t2")) != first
    assert label([MESSAGES[0], {"role": "user", "content": "Which valve?"}], called()) != first


def test_a_name_is_cut_at_128_characters() -> None:
    assert label(MESSAGES, called((b"x-session-id", b"x" * 300))) == "x" * 128
