"""`edgewise serve`: options over settings, an upstream of our own where none is configured, and where to look."""

import argparse
import sys
from contextlib import ExitStack

from policies.request import ChatRequest
from proxy import ranks
from proxy.cli.commands import Fault, policy_of, prompts_of, settings_of, shelf_of
from proxy.cli.embedded import MODEL, Embedded, Tokens
from proxy.engine import Engine
from proxy.loopback import listening, plain
from proxy.observe import log_to
from proxy.server import serve as run
from proxy.settings import Settings

OPTIONS = ("upstream", "host", "port", "window", "policy", "mode")


def serve(options: argparse.Namespace) -> int:
    """Until SIGINT or SIGTERM. Raises Fault."""
    given = {name: getattr(options, name) for name in OPTIONS}
    settings = settings_of(**given)
    shelf_of(settings)  # a policy or a prompt that cannot be read is said before anything starts
    prompts_of(settings)
    log_to(sys.stderr)
    with ExitStack() as stack:
        embedded = not settings.routes.upstreams
        if embedded:
            base = stack.enter_context(listening(plain(Embedded(tokens(settings)))))
            settings = settings_of(**given | {"upstream": f"{base}/v1"})
        try:
            run(settings, started=lambda address: print(_greeting(address, settings, embedded=embedded), flush=True))
        except SystemExit:  # uvicorn has said why in the log
            place = f"{settings.host}:{settings.port}"
            raise Fault(f"{place}: cannot be listened on; choose another --port or --host") from None
    return 0


def tokens(settings: Settings) -> Tokens:
    """Counts for an embedded upstream: what Edgewise itself counts."""
    engine = Engine(settings, policy_of(settings.policy))

    def prompt(request: ChatRequest) -> int:
        return engine.counter(request.model).bill(request.prompt).total

    return Tokens(prompt, lambda text: ranks.load("o200k_base").count(text))


def _greeting(address: str, settings: Settings, *, embedded: bool) -> str:
    where = "an embedded upstream, which is no model" if embedded else _upstreams(settings)
    lines = [
        f"Edgewise listens on {address} and forwards to {where} (policy {settings.policy}, mode {settings.mode}).",
        f"  Clients:  OPENAI_BASE_URL={address}/v1",
        f"  Look at:  {address}/docs   {address}/metrics   {address}/context/requests",
    ]
    if embedded:
        body = f'{{"model": "{MODEL}", "messages": [{{"role": "user", "content": "Hello"}}]}}'
        lines += [
            f"  Try:      curl -i {address}/v1/chat/completions -H 'content-type: application/json' -d '{body}'",
            "  See it work: edgewise demo.   A model behind it: edgewise serve --upstream URL",
        ]
    return "\n".join(lines)


def _upstreams(settings: Settings) -> str:
    return ", ".join(upstream.base for upstream in settings.routes.upstreams)
