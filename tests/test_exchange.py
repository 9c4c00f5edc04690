from typing import Any

from support.memory import Response, scope_of

from proxy.errors import Refusal
from proxy.exchange import Exchange


def exchange(path: str, response: Response, query: bytes = b"") -> Exchange:
    async def receive() -> dict[str, Any]:
        return {}

    async def send(message: dict[str, Any]) -> None:
        response.messages.append(message)

    return Exchange(scope_of("GET", path, query=query), receive, send)


def test_the_target_is_the_rest_with_the_query_byte_for_byte() -> None:
    assert exchange("/v1/x", Response(), b"a=%2F&&").target(b"/x") == b"/x?a=%2F&&"
    assert exchange("/v1/x", Response()).target(b"/x") == b"/x"


def test_leading_slashes_count_as_one() -> None:
    assert exchange("///v1//x", Response()).raw_path == b"/v1//x"
    assert exchange("/v1//x", Response()).raw_path == b"/v1//x"


async def test_an_answer_carries_its_length_and_the_id_of_the_request() -> None:
    response = Response()
    asked = exchange("/", response)
    assert not asked.started
    await asked.answer(202, [(b"a", b"b")], b"hello")
    assert asked.started
    assert response.status == 202
    assert response.headers == [(b"a", b"b"), (b"content-length", b"5"), (b"edgewise-request-id", asked.id.encode())]
    assert (response.body, response.complete) == (b"hello", True)


async def test_a_refusal_is_json_with_its_own_headers() -> None:
    response = Response()
    await exchange("/", response).refuse(Refusal(413, "no", headers=[(b"connection", b"close")]))
    assert response.headers[:2] == [(b"content-type", b"application/json"), (b"connection", b"close")]


def test_ids_differ() -> None:
    assert len({exchange("/", Response()).id for _ in range(1000)}) == 1000
