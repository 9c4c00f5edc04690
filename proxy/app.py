"""The ASGI application: routes on the path, and answers what the handlers raise."""

import asyncio
import logging
import traceback
from functools import lru_cache

from policies.request import BadRequest
from proxy.api import build_api
from proxy.bodies import ClientGone, Receive
from proxy.chat import chat
from proxy.errors import Refusal, UpstreamError, refusal_of
from proxy.exchange import ASGIApp, Exchange, Scope, Send
from proxy.headers import find
from proxy.models import models
from proxy.passthrough import passthrough
from proxy.planner import Planner, Untouched
from proxy.pool import AiohttpTransport
from proxy.routing import PATHS, rest_of
from proxy.settings import Settings
from proxy.state import State
from proxy.upstream import Transport

OWN_PATHS = frozenset({"context", "ui", "healthz", "readyz", "metrics", "docs", "openapi.json"})
CHAT = (["v1", "chat", "completions"], ["chat", "completions"])

log = logging.getLogger("edgewise")


def create_app(
    settings: Settings, *, transport: Transport | None = None, planner: Planner | None = None
) -> "Application":
    """The whole proxy as one ASGI callable. `transport` and `planner` are the edges a test replaces."""
    if transport is None:
        transport = AiohttpTransport(settings.timeouts, settings.max_connections)
    return Application(State.of(settings, transport, planner or Untouched()))


class Application:
    """Pure ASGI on the way to the upstream; Edgewise's own paths go to FastAPI."""

    def __init__(self, state: State) -> None:
        self.state = state
        api = build_api(state)
        state.planner.install(api, state.access, state.registry)
        self._api: ASGIApp = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._answer(Exchange(scope, receive, send))
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008, "reason": "WebSockets are not proxied"})

    async def _answer(self, exchange: Exchange) -> None:
        try:
            await self._route(exchange)
        except ClientGone:
            return
        except asyncio.CancelledError:  # only the server cancels a request: at shutdown, when its patience is over
            if not exchange.started:
                await exchange.refuse(_SHUTTING_DOWN)
        except Refusal as refusal:
            await exchange.refuse(refusal)
        except (BadRequest, UpstreamError) as error:
            await exchange.refuse(refusal_of(error))
        except Exception as error:
            # frames without the message, which may quote a prompt
            frames = "".join(traceback.format_tb(error.__traceback__))
            log.error("%s: %s in\n%s", exchange.id, type(error).__name__, frames)
            if not exchange.started:
                await exchange.refuse(_internal(exchange.id))

    async def _route(self, exchange: Exchange) -> None:
        if exchange.path.split("/", 2)[1] in OWN_PATHS:
            await self._own(exchange)
            return
        if (find(exchange.headers, b"upgrade") or b"").lower() == b"websocket":
            raise Refusal(501, "WebSockets are not proxied; use HTTP streaming", code="not_implemented")
        rest = rest_of(exchange.raw_path)
        if rest is None:
            raise Refusal(404, f"there is no '{exchange.path}' here; the API's paths begin with /v1/", code="not_found")
        state = self.state
        state.access.check(exchange.headers)
        if exchange.method == "POST" and _is_chat(exchange.path):
            await chat(state, exchange, rest)
        elif exchange.method == "GET" and rest == b"/models" and len(state.routes.upstreams) > 1:
            await models(state, exchange)
        else:
            await passthrough(state, exchange, rest)

    async def _own(self, exchange: Exchange) -> None:
        async def send(message: Scope) -> None:
            if message["type"] == "http.response.start":
                await exchange.start(message["status"], message.get("headers", ()))
            else:
                await exchange.send(message)

        await self._api(exchange.scope, exchange.receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        await self.state.transport.open()
        await self.state.planner.open()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.state.planner.close()
        await self.state.transport.close()
        await send({"type": "lifespan.shutdown.complete"})


@lru_cache(PATHS)
def _is_chat(path: str) -> bool:
    """Slashes that are doubled, by a base URL that ends in one, count once: many upstreams read them so, and a chat
    request must not pass unplanned."""
    return "completions" in path and [part for part in path.split("/") if part] in CHAT


_SHUTTING_DOWN = Refusal(
    503,
    "Edgewise is shutting down; send the request again",
    kind="server_error",
    code="shutting_down",
    headers=[(b"retry-after", b"1"), (b"connection", b"close")],
)


def _internal(request_id: str) -> Refusal:
    return Refusal(500, f"Edgewise failed inside; its log names request {request_id}", kind="server_error")
