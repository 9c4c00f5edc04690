"""The API that people read: health, metrics, and what is mounted beside them."""

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from proxy.errors import Refusal
from proxy.state import State


def build_api(state: State) -> FastAPI:
    api = FastAPI(title="Edgewise", docs_url="/docs", openapi_url="/openapi.json", redoc_url=None)

    @api.exception_handler(Refusal)
    async def refused(_: Request, refusal: Refusal) -> Response:
        return Response(refusal.body, refusal.status, media_type="application/json")

    @api.get("/healthz", tags=["health"])
    async def healthz() -> dict[str, str]:
        """The process is alive."""
        return {"status": "ok"}

    @api.get("/readyz", tags=["health"])
    async def readyz() -> JSONResponse:
        """200 when the tokenizer is loaded and an upstream is configured, else 503; the body tells which is missing."""
        checks = {"tokenizer": state.planner.ready(), "upstream": bool(state.routes.upstreams)}
        return JSONResponse(checks, 200 if all(checks.values()) else 503)

    @api.get("/metrics", tags=["health"])
    async def metrics(request: Request) -> Response:
        """Prometheus text. Beyond loopback it wants an inbound key."""
        if not state.settings.is_loopback:
            state.access.check(request.headers.raw)
        return Response(generate_latest(state.registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return api
