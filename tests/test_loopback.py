import urllib.request
from typing import Any

import pytest
import uvicorn

from proxy.exchange import Scope, Send
from proxy.loopback import listening, plain


async def hello(scope: Scope, receive: Any, send: Send) -> None:  # noqa: ARG001 - the shape of an ASGI app
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"hi"})


def test_it_answers_until_the_block_ends() -> None:
    with listening(plain(hello)) as address, urllib.request.urlopen(address) as response:
        assert response.read() == b"hi"
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(address)


async def broken(scope: Scope, receive: Any, send: Send) -> None:  # noqa: ARG001 - the same
    await send({"type": "lifespan.startup.failed", "message": "no"})


def test_an_app_that_does_not_start_is_told() -> None:
    config = uvicorn.Config(broken, log_config=None, log_level="critical", lifespan="on")
    with pytest.raises(RuntimeError, match="did not start"), listening(config):
        pass
