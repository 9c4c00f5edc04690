from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI, Request, Response
from support.plans import SECRET, engine, hopeless, long, plan, record, small

from policies.plan import Plan
from policies.request import ChatRequest
from proxy.access import Access
from proxy.context_api import Context, install
from proxy.context_models import Counted, PastRequest, Planned, Requests, ToolsUsed
from proxy.errors import Refusal
from proxy.history import History
from proxy.ledger import LedgerFault
from proxy.policyfile import load

REF = "tr_" + "0123456789abcdef"
MINE, THEIRS = {"authorization": "Bearer mine"}, {"authorization": "Bearer theirs"}


async def planned(request: ChatRequest, window: int | None, tenant: str, asked: str | None) -> Plan:
    assert len(tenant) == 32
    return engine().plan_sync(request, window, None if asked is None else load(asked))


async def counted(request: ChatRequest) -> Plan:
    return engine().count(request, None)


STORED = {REF: "one line\nand é".encode()}


async def original(tenant: str, ref: str) -> bytes | None:
    assert len(tenant) == 32
    if ref.endswith("f" * 8):
        raise LedgerFault("gone")
    return STORED.get(ref)


def served(history: History, *, access: Access | None = None, anonymous: bool = False) -> httpx2.AsyncClient:
    api = FastAPI()

    @api.exception_handler(Refusal)
    async def refused(_: Request, refusal: Refusal) -> Response:
        return Response(refusal.body, refusal.status, media_type="application/json")

    install(api, Context(access or Access(), lambda: history, planned, counted, original, anonymous, 1_000_000))
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=api), base_url="http://edgewise", headers=MINE)


@pytest.fixture
def history() -> History:
    history = History()
    tenant = Access().tenant([(b"authorization", b"Bearer mine")])
    history.add(record(plan(long()), "ew_1", tenant=tenant, session="s1"))
    history.add(record(plan(hopeless()), "ew_2", tenant=tenant))
    history.add(record(plan(small()), "ew_3", tenant=Access().tenant([(b"authorization", b"Bearer theirs")])))
    return history


@pytest.fixture
async def client(history: History) -> AsyncIterator[httpx2.AsyncClient]:
    async with served(history) as opened:
        yield opened


def error(response: httpx2.Response, status: int) -> Any:
    assert response.status_code == status
    told = response.json()["error"]
    assert set(told) == {"message", "type", "param", "code"}
    return told


async def test_a_count_has_the_documented_shape(client: httpx2.AsyncClient) -> None:
    told = Counted.model_validate((await client.post("/context/count", content=small().body)).json())
    assert (told.total, told.exact, sum(told.buckets.values())) == (57, True, 57)
    assert [span.name for span in told.spans if span.bucket == "tools"] == ["read_log"]


async def test_a_plan_has_the_documented_shape_and_the_window_that_was_asked(client: httpx2.AsyncClient) -> None:
    response = await client.post("/context/plan?window=4000", content=long().body)
    told = Planned.model_validate(response.json())
    assert told.window == 4_000
    assert told.sent_total <= (told.limit or 0) < told.received_total
    assert told.request is not None
    assert told.error is None


async def test_a_plan_that_cannot_fit_tells_the_error_with_status_200(client: httpx2.AsyncClient) -> None:
    told = Planned.model_validate((await client.post("/context/plan?window=4000", content=hopeless().body)).json())
    assert told.request is None
    assert told.error is not None
    assert told.error["code"] == "context_length_exceeded"


async def test_past_requests_are_listed_and_shown_span_by_span(client: httpx2.AsyncClient) -> None:
    listed = Requests.model_validate((await client.get("/context/requests")).json())
    assert [one.id for one in listed.requests] == ["ew_2", "ew_1"]
    shown = await client.get("/context/requests/ew_1")
    told = PastRequest.model_validate(shown.json())
    assert told.outcome == "edited"
    assert any(span.what for span in told.spans)
    assert SECRET not in shown.text
    refused = PastRequest.model_validate((await client.get("/context/requests/ew_2")).json()).refusal
    assert refused is not None
    assert len(refused.units) > 1


async def test_a_list_may_be_shorter(client: httpx2.AsyncClient) -> None:
    assert len((await client.get("/context/requests?limit=1")).json()["requests"]) == 1


async def test_another_tenants_request_does_not_exist(client: httpx2.AsyncClient) -> None:
    assert error(await client.get("/context/requests/ew_3"), 404)["code"] == "not_found"
    assert (await client.get("/context/requests/ew_3", headers=THEIRS)).status_code == 200


async def test_a_credential_is_wanted(history: History) -> None:
    async with served(history) as client:
        del client.headers["authorization"]
        assert error(await client.get("/context/requests"), 401)["code"] == "invalid_api_key"
    async with served(history, anonymous=True) as client:
        del client.headers["authorization"]
        assert (await client.get("/context/requests")).json() == {"requests": []}


async def test_an_inbound_key_is_checked(history: History) -> None:
    async with served(history, access=Access((b"right",)), anonymous=True) as client:
        assert error(await client.get("/context/requests"), 401)["code"] == "invalid_api_key"
        assert (await client.get("/context/requests", headers={"edgewise-key": "right"})).status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "status", "param"),
    [
        ("/context/plan", b"{", 400, None),
        ("/context/plan", b"{}", 400, "messages"),
        ("/context/plan?window=0", b"{}", 400, "window"),
        ("/context/count", b" " * 1_000_001, 413, None),
    ],
)
async def test_faults_have_openais_shape(
    client: httpx2.AsyncClient, path: str, body: bytes, status: int, param: str | None
) -> None:
    assert error(await client.post(path, content=body), status)["param"] == param


async def test_unknown_paths_and_methods_have_openais_shape(client: httpx2.AsyncClient) -> None:
    assert "/docs" in error(await client.get("/context/nothing"), 404)["message"]
    assert error(await client.get("/context/plan"), 405)["type"] == "invalid_request_error"


async def test_the_documentation_names_every_path_and_its_shape(client: httpx2.AsyncClient) -> None:
    told = (await client.get("/openapi.json")).json()
    assert set(told["paths"]) == {
        "/context/plan",
        "/context/count",
        "/context/requests",
        "/context/tools",
        "/context/requests/{id}",
        "/context/results/{ref}",
    }
    assert told["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
    plan_it = told["paths"]["/context/plan"]["post"]
    assert plan_it["requestBody"]["content"]["application/json"]["example"]["model"] == "gpt-4o"
    assert plan_it["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].endswith("/Planned")


async def test_a_tenant_sees_what_its_own_tools_cost_and_how_often_they_were_called(client: httpx2.AsyncClient) -> None:
    used = ToolsUsed.model_validate((await client.get("/context/tools")).json())
    assert used.requests == 2
    assert [(tool.name, tool.offered, tool.called) for tool in used.tools] == [("read_log", 1, 1)]
    theirs = ToolsUsed.model_validate((await client.get("/context/tools", headers=THEIRS)).json())
    assert [(tool.name, tool.called, tool.never_called) for tool in theirs.tools] == [("read_log", 0, True)]


async def test_a_plan_is_made_by_the_policy_that_is_asked_for(history: History) -> None:
    async with served(history) as client:
        told = await client.post("/context/plan", content=small().body, headers=MINE | {"edgewise-policy": "classic"})
    assert told.json()["policy"] == "classic"


@pytest.mark.parametrize("headers", [{}, {"cookie": "a=b"}, {"openai-organization": "o"}, {"authorization": "Bearer "}])
async def test_what_tells_no_caller_from_another_is_no_credential(history: History, headers: dict[str, str]) -> None:
    async with served(history) as client:
        del client.headers["authorization"]
        assert error(await client.get("/context/requests", headers=headers), 401)["code"] == "invalid_api_key"


async def test_a_message_nested_too_deep_to_be_opened_is_the_callers_fault(client: httpx2.AsyncClient) -> None:
    content = b'{"messages":[{"role":"user","content":' + b"[" * 501 + b"]" * 501 + b"}]}"
    for path in ("/context/count", "/context/plan"):
        assert "nested deeper" in error(await client.post(path, content=content), 400)["message"]


async def test_an_original_is_given_back_byte_for_byte(client: httpx2.AsyncClient) -> None:
    given = await client.get(f"/context/results/{REF}")
    assert (given.status_code, given.content) == (200, STORED[REF])
    assert given.headers["content-type"] == "text/plain; charset=utf-8"
    assert error(await client.get("/context/results/tr_0000000000000000"), 404)["code"] == "not_found"
    assert error(await client.get("/context/results/../state"), 404)["type"] == "invalid_request_error"
    assert "pattern" in error(await client.get("/context/results/mine"), 400)["message"]
    assert error(await client.get("/context/results/tr_ffffffffffffffff"), 503)["code"] == "ledger_unavailable"
