"""The context API: what a request costs, what would be done with it, and what was done with the last ones.

Every path wants the caller's own credential and shows that caller's requests alone (DESIGN 8).
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, cast

import msgspec
from fastapi import APIRouter, Depends, FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.types import ExceptionHandler

from policies.annotated import NoteReader
from policies.jsonraw import dumps
from policies.plan import Plan
from policies.request import BadRequest, ChatRequest
from proxy import bodies
from proxy.access import Access
from proxy.context_models import Counted, Error, PastRequest, Planned, Requests, ToolsUsed
from proxy.errors import Refusal, error_body, refusal_of
from proxy.history import KEPT, History
from proxy.ledger import LedgerFault
from proxy.objects import count_object, plan_object, record_object
from proxy.observe import facts
from proxy.tooluse import tools_used

PlanIt = Callable[[ChatRequest, int | None, str, str | None], Awaitable[Plan]]
"""A request, the window to plan for in tokens (None: that of its model), the tenant, and the policy that is asked for
(None: that of its route) → its plan; nothing is forwarded. Raises Refusal for a policy that may not be asked for."""

Original = Callable[[str, str], Awaitable[bytes | None]]
"""Tenant and ref → what was taken out, as it is stored; None where nothing is. Raises LedgerFault."""

MOST_LISTED = 100
REF = r"^tr_[0-9a-f]{16,64}$"

_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "A chat completion request, as it would be sent to /v1/chat/completions.",
        "content": {
            "application/json": {
                "schema": {"type": "object", "required": ["messages"], "additionalProperties": True},
                "example": {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]},
            }
        },
    }
}


@dataclass(frozen=True)
class Context:
    """What the API needs of the proxy. `anonymous`: a caller without a credential is one too (on loopback, where local
    models want none); `max_body_bytes` bounds decoded bodies."""

    access: Access
    history: Callable[[], History]
    plan: PlanIt
    count: Callable[[ChatRequest], Awaitable[Plan]]
    original: Original
    anonymous: bool
    max_body_bytes: int

    def tenant(self, request: Request) -> str:
        """Raises Refusal (401)."""
        headers = request.headers.raw
        self.access.check(headers)
        if not self.anonymous and not self.access.credential(headers):
            raise Refusal(401, "/context wants the credential that your requests carry", code="invalid_api_key")
        return self.access.tenant(headers)

    async def chat_request(self, request: Request) -> ChatRequest:
        """Raises Refusal."""
        body = await bodies.read(request.receive, request.headers.raw, self.max_body_bytes)
        try:
            return NoteReader().bare(ChatRequest.parse(body))
        except BadRequest as error:
            raise refusal_of(error) from None


def install(api: FastAPI, context: Context) -> None:
    """Add the paths under /context, and OpenAI's error shape for whatever FastAPI itself refuses."""
    api.include_router(routes(context))
    api.add_exception_handler(RequestValidationError, cast("ExceptionHandler", _invalid))
    api.add_exception_handler(HTTPException, cast("ExceptionHandler", _http))
    api.add_exception_handler(BadRequest, cast("ExceptionHandler", _bad))


def routes(context: Context) -> APIRouter:
    refused: dict[int | str, dict[str, Any]] = {code: {"model": Error} for code in (400, 401)}
    bearer = HTTPBearer(auto_error=False, description="The key that your requests carry.")  # for /docs to ask for
    router = APIRouter(prefix="/context", tags=["context"], responses=refused, dependencies=[Depends(bearer)])

    @router.post("/plan", response_model=Planned, openapi_extra=_BODY)
    async def plan(request: Request, window: Annotated[int | None, Query(gt=0)] = None) -> Response:
        """What would be done with a chat request, span by span, before and after. Nothing is forwarded.

        `window` (tokens) goes before what is known of the model, `Edgewise-Policy` names a policy as it would for the
        request itself. `request` is what would be forwarded; where it cannot fit, `error` is what would be answered.
        """
        tenant, asked = context.tenant(request), request.headers.get("edgewise-policy")
        received = await context.chat_request(request)
        return _json(plan_object(received, await context.plan(received, window, tenant, asked)))

    @router.post("/count", response_model=Counted, openapi_extra=_BODY)
    async def count(request: Request) -> Response:
        """What a chat request costs, by bucket and by span, in tokens of its model."""
        context.tenant(request)
        received = await context.chat_request(request)
        return _json(count_object(await context.count(received)))

    @router.get("/requests", response_model=Requests)
    async def requests(request: Request, limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 20) -> Response:
        """The caller's last requests, the newest first, without their spans."""
        told = [facts(record) for record in context.history().latest(context.tenant(request), limit)]
        return _json(msgspec.json.encode({"requests": told}))

    @router.get("/tools", response_model=ToolsUsed)
    async def tools(request: Request) -> Response:
        """The tools of the caller's last requests, the most expensive first: what each costs, how often it was offered,
        forwarded and called; and names that were called but belong to no tool."""
        records = context.history().latest(context.tenant(request), KEPT)
        return _json(dumps(msgspec.to_builtins(await asyncio.to_thread(tools_used, records))))

    @router.get("/requests/{id}", response_model=PastRequest, responses={404: {"model": Error}})
    async def one(request: Request, id: str) -> Response:
        """One of the caller's last requests by its `Edgewise-Request-Id`: every span before and after, and why."""
        record = context.history().get(context.tenant(request), id)
        if record is None:
            raise Refusal(404, "no such request of this caller is remembered; only the last ones are", code="not_found")
        return _json(record_object(record))

    _results(router, context)
    return router


def _results(router: APIRouter, context: Context) -> None:
    @router.get("/results/{ref}", responses={404: {"model": Error}, 503: {"model": Error}})
    async def result(request: Request, ref: Annotated[str, Path(pattern=REF)]) -> Response:
        """An original that was taken out of a prompt, byte for byte, by the ref that its stub names."""
        try:
            original = await context.original(context.tenant(request), ref)
        except LedgerFault as fault:
            raise Refusal(503, str(fault), code="ledger_unavailable") from None
        if original is None:
            raise Refusal(404, "no original of this caller is stored under that ref", code="not_found")
        return Response(original, media_type="text/plain; charset=utf-8")


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")


async def _invalid(_: Request, error: RequestValidationError) -> Response:
    first = error.errors()[0]
    name = str(first["loc"][-1])
    return Response(
        error_body(f"'{name}': {first['msg']}", "invalid_request_error", param=name), 400, media_type="application/json"
    )


async def _bad(_: Request, error: BadRequest) -> Response:
    return Response(refusal_of(error).body, 400, media_type="application/json")


async def _http(_: Request, error: HTTPException) -> Response:
    body = error_body(f"{error.detail}; the paths of this API are listed under /docs", "invalid_request_error")
    return Response(body, error.status_code, error.headers, media_type="application/json")
