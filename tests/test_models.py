import json

from support.memory import Canned, Memory, Response, call, scope_of

from proxy.app import create_app
from proxy.errors import BrokenOff, Unreachable, UpstreamError
from proxy.settings import Settings

SEVERAL = Settings.load(
    upstream="http://a.test/v1", upstreams={"b*": {"url": "http://b.test/v1", "api_key": "kb"}}, allow_open=True
)


def listing(*ids: str) -> Canned:
    return Canned(200, [], json.dumps({"object": "list", "data": [{"id": name, "n": 1} for name in ids]}).encode())


async def ask(*replies: Canned | UpstreamError, settings: Settings = SEVERAL) -> tuple[Response, Memory]:
    transport = Memory(list(replies))
    app = create_app(settings, transport=transport)
    response = await call(app, scope_of("GET", "/v1/models", (b"authorization", b"Bearer c"), query=b"limit=5"))
    return response, transport


async def test_the_lists_of_several_upstreams_are_one() -> None:
    response, transport = await ask(listing("x", "y"), listing("y", "z"))
    assert response.status == 200
    assert [model["id"] for model in json.loads(response.body)["data"]] == ["x", "y", "z"]
    assert [outgoing.base for outgoing in transport.sent] == ["http://a.test/v1", "http://b.test/v1"]
    assert {outgoing.target for outgoing in transport.sent} == {b"/models?limit=5"}


async def test_each_upstream_is_asked_with_the_credential_that_it_gets_anyway() -> None:
    _, transport = await ask(listing(), listing())
    spoken = [dict(outgoing.headers)[b"authorization"] for outgoing in transport.sent]
    assert spoken == [b"Bearer c", b"Bearer kb"]


async def test_an_upstream_that_fails_is_left_out() -> None:
    for failing in (
        Unreachable("x"),
        Canned(500, [], b"{}"),
        Canned(200, [], b"<html>"),
        Canned(200, [], b'{"data":[{"name":"x"}]}'),
        Canned(200, [], b'{"data":7}'),
        Canned(200, [], b"{", BrokenOff("x")),
    ):
        response, _ = await ask(failing, listing("z"))
        assert [model["id"] for model in json.loads(response.body)["data"]] == ["z"]


async def test_when_all_fail_the_first_failure_is_told() -> None:
    response, _ = await ask(Unreachable("nobody home"), Canned(401, [], b"{}"))
    assert (response.status, json.loads(response.body)["error"]["message"]) == (502, "nobody home")


async def test_a_fault_of_ours_is_not_taken_for_one_of_theirs() -> None:
    response, _ = await ask(Canned(200, [], ZeroDivisionError("x")), listing("z"))
    assert response.status == 500


async def test_the_list_of_a_single_upstream_is_untouched() -> None:
    body = b'{"data": [ ],"object":"list"}'
    response, _ = await ask(Canned(200, [], body), settings=Settings.load(upstream="http://a.test/v1"))
    assert response.body == body
