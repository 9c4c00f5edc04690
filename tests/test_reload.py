"""A running proxy takes up a policy that changes, and keeps the old one when the new one is wrong."""

import asyncio
import itertools
import json
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from support.servers import CHAT, Proxy, running
from support.upstream import OK, scripted

from proxy.planning import planner_of
from proxy.settings import Settings

POLICY = 'version = 1\nname = "{name}"\n[reminder]\nfile = "rules.md"\nplaces = ["tail"]\n'


def write(path: Path, text: str) -> None:
    path.with_suffix(".new").write_text(text, "utf-8")
    os.replace(path.with_suffix(".new"), path)


async def until(found: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await found():
            await asyncio.sleep(0.05)


async def used(proxy: Proxy) -> str:
    """The name of the policy of the last request."""
    listed = await proxy.get("/context/requests?limit=1")
    return str(listed.json["requests"][0]["policy"])


def reloads(proxy: Proxy, outcome: str) -> float:
    labels = {"outcome": outcome}
    return proxy.app.state.registry.get_sample_value("edgewise_policy_reloads_total", labels) or 0.0


async def test_policy_and_constitution_are_read_again_and_a_broken_policy_keeps_the_old(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, rules = tmp_path / "own.toml", tmp_path / "rules.md"
    write(rules, "Cite ids.")
    write(path, POLICY.format(name="first"))
    settings = Settings(upstream="http://a.test/v1", policy=str(path), window=8_000)
    async with scripted([OK]) as upstream, running(upstream.base, planner=planner_of(settings)) as proxy:
        turns = itertools.count()

        async def sent() -> str:
            """The text of a new conversation: one that goes on keeps what was decided for it."""
            turn = next(turns)
            await proxy.chat({**CHAT, "messages": [{"role": "user", "content": f"hello {turn}"}]})
            text = str(json.loads(upstream.requests[-1].body)["messages"][-1]["content"])
            return text.replace(f"hello {turn}", "hello")

        assert await sent() == "hello\n\nCite ids."
        assert await used(proxy) == "first"

        write(rules, "Cite records.")
        await until(lambda: _is(sent(), "hello\n\nCite records."))
        assert reloads(proxy, "loaded") == 1

        write(path, POLICY.format(name="second") + "colour = 1\n")
        with caplog.at_level(logging.WARNING, "edgewise"):
            await until(lambda: _is(_now(reloads(proxy, "invalid")), 1.0))
        assert await sent() == "hello\n\nCite records."
        assert await used(proxy) == "first"
        (said,) = [one.getMessage() for one in caplog.records if "own.toml" in one.getMessage()]
        assert (
            "unknown key 'colour'; known are text, file, places, max_tokens, every_tokens; what was read before" in said
        )

        write(path, POLICY.format(name="second"))
        await until(lambda: _is(_now(reloads(proxy, "loaded")), 2.0))
        await sent()
        assert await used(proxy) == "second"


async def _now(value: float) -> float:
    return value


async def _is(value: Awaitable[object], expected: object) -> bool:
    return await value == expected
