"""The real proxy in front of a ledger that may fail, and what it then sent, counted and kept."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from support.lasting import WINDOW, body, originals, refs_in
from support.prompts import Message
from support.servers import Answer, Proxy, running
from support.upstream import Upstream

from proxy.access import Access
from proxy.planning import Planning, planner_of
from proxy.settings import Settings

ANONYMOUS = Access().tenant([])


class Reached(Protocol):
    """A proxy, in this process or in one of its own."""

    async def get(self, path: str, *headers: tuple[str, str]) -> Answer: ...


@asynccontextmanager
async def proxied(upstream: Upstream, ledger: Path | str, **more: Any) -> AsyncIterator[Proxy]:
    given: dict[str, Any] = {"upstream": upstream.base, "port": 0, "window": WINDOW, "ledger": str(ledger)} | more
    settings = Settings(**given)
    async with running(upstream.base, planner=planner_of(settings), window=WINDOW) as proxy:
        yield proxy


async def sent(proxy: Proxy, upstream: Upstream, messages: Sequence[Message], **more: Any) -> list[Message]:
    """The messages that arrive upstream; the answer is there."""
    answer = await proxy.chat(body(messages, **more))
    assert answer.status == 200
    return messages_of(upstream)


def messages_of(upstream: Upstream) -> list[Message]:
    found: list[Message] = json.loads(upstream.requests[-1].body)["messages"]
    return found


def sent_for(upstream: Upstream, text: str) -> list[Message]:
    """The last messages that arrived with this text in them, if any did."""
    found = (one.body for one in reversed(upstream.requests) if text.encode() in one.body)
    messages: list[Message] = json.loads(next(found, b'{"messages": []}'))["messages"]
    return messages


def refs_of(upstream: Upstream, text: str) -> set[str]:
    """All that ever arrived beside this text."""
    return {ref for one in upstream.requests if text.encode() in one.body for ref in refs_in(one.body)}


async def faults(proxy: Reached) -> dict[str, float]:
    """By reason."""
    lines = (await proxy.get("/metrics")).body.decode().splitlines()
    found = [line for line in lines if line.startswith("edgewise_ledger_faults_total{")]
    return {line.split('"')[1]: float(line.rpartition(" ")[2]) for line in found}


async def unreadable(proxy: Reached, refs: set[str], messages: Sequence[Message]) -> dict[str, int]:
    """Those of the refs that do not read back as what the client sent, and with what status."""
    expected = originals(ANONYMOUS, messages)
    answers = {ref: await proxy.get(f"/context/results/{ref}") for ref in refs}
    return {ref: one.status for ref, one in answers.items() if (one.status, one.body) != (200, expected.get(ref))}


async def last(proxy: Proxy) -> dict[str, Any]:
    found: dict[str, Any] = (await proxy.get("/context/requests?limit=1")).json["requests"][0]
    return found


async def until_settled(proxy: Proxy) -> None:
    """What goes on after an answer has come to its end: another one on the same loop was served meanwhile, and what
    was begun is done."""
    await proxy.get("/healthz")
    planner = proxy.app.state.planner
    assert isinstance(planner, Planning)
    await planner.memories.settled()
