import pytest

from proxy.access import Access
from proxy.errors import Refusal
from proxy.routing import Upstream

OPEN = Access()
LOCKED = Access((b"k1", b"k2"))
INJECTING = Upstream.of("http://a/v1", "upstream-key")
PASSING = Upstream.of("http://a/v1")


def bearer(key: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"authorization", b"Bearer " + key)]


def test_without_inbound_keys_everyone_may_call() -> None:
    OPEN.check([])
    OPEN.check(bearer(b"anything"))


@pytest.mark.parametrize("key", [b"k1", b"k2"])
def test_each_inbound_key_opens(key: bytes) -> None:
    LOCKED.check(bearer(key))
    LOCKED.check([(b"edgewise-key", key), (b"authorization", b"Bearer other")])


@pytest.mark.parametrize("headers", [[], bearer(b""), bearer(b"k"), bearer(b"k1 k2"), [(b"edgewise-key", b"K1")]])
def test_no_other_key_opens(headers: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(Refusal) as refused:
        LOCKED.check(headers)
    assert refused.value.status == 401


def test_a_tenant_is_a_hash_of_the_credential() -> None:
    assert OPEN.tenant(bearer(b"a")) == OPEN.tenant([(b"authorization", b"bearer a"), (b"x", b"y")])
    assert OPEN.tenant(bearer(b"a")) != OPEN.tenant(bearer(b"b"))
    assert OPEN.tenant(bearer(b"a")) == OPEN.tenant([(b"api-key", b"a")])
    assert len(OPEN.tenant([])) == 32
    assert "a" * 3 not in OPEN.tenant(bearer(b"aaa"))


def test_a_tenant_can_be_named_by_a_header_where_keys_rotate() -> None:
    access = Access(tenant_header=b"x-team")
    one, two = [*bearer(b"a"), (b"x-team", b"t")], [*bearer(b"b"), (b"x-team", b"t")]
    assert access.tenant(one) == access.tenant(two)
    assert access.tenant(one) != access.tenant([(b"x-team", b"u")])


def test_a_passed_key_stays_an_inbound_key_goes_and_an_injected_one_replaces_all() -> None:
    headers = [*bearer(b"k1"), (b"openai-project", b"p"), (b"a", b"1")]
    assert OPEN.credentials(headers, headers, PASSING) == headers
    assert LOCKED.credentials(headers, headers, PASSING) == [(b"a", b"1")]
    assert LOCKED.credentials(headers, [*headers, (b"edgewise-key", b"k1")], PASSING) == headers
    injected = [(b"a", b"1"), (b"authorization", b"Bearer upstream-key")]
    assert LOCKED.credentials(headers, headers, INJECTING) == OPEN.credentials(headers, headers, INJECTING) == injected


def test_every_header_that_carries_a_key_tells_callers_apart() -> None:
    tenants = {
        OPEN.tenant([(name, key)]) for name in (b"authorization", b"api-key", b"x-api-key") for key in (b"a", b"b")
    }
    assert tenants == {OPEN.tenant(bearer(b"a")), OPEN.tenant(bearer(b"b"))}
    assert OPEN.credential([(b"cookie", b"a=b"), (b"openai-organization", b"o")]) == b""
