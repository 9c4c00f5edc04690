"""What the proxy tells of reuse is what a provider's cache would find in the bytes that arrived."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from support.faulty import until_settled
from support.prompts import Message, calls, counter, lines, result, round_of, said, system, tool, user
from support.servers import Proxy, post, running
from support.upstream import OK, STREAM_HEAD, Hang, Upstream, chunk, response, scripted

from policies.request import ChatRequest, Prompt
from proxy.planning import planner_of
from proxy.settings import Settings

WINDOW = 8_000
RULES = "".join([f" Pump {at} is never run dry, and valve {at} is shut before it is opened." for at in range(60)])
TOOLS = [tool("read_log"), tool("read_map", "Reads the map.")]
BEGUN = STREAM_HEAD + chunk(b"data: {}\n\n")
BROKEN = response(500, b"{}")


def talk(rounds: int, *, clock: str = "", topic: str = "task", size: int = 40) -> list[Message]:
    """A loop of one user message; each round is about 600 tokens."""
    loop = [m for n in range(rounds) for m in round_of(n, lines(size, f"{topic} pump {n}"))]
    return [system(f"You run the pumps.{clock}{RULES}"), user(f"Find the {topic}."), *loop]


def brute(before: Prompt, now: Prompt) -> float:
    """By the bytes of all that arrived, tools first."""
    bill = counter().bill(before)
    costs = [*bill.tools, *bill.messages]
    older, newer = [[item.raw for item in (*one.tools, *one.messages)] for one in (before, now)]
    same = next((at for at, raw in enumerate(older) if newer[at : at + 1] != [raw]), len(older))
    return sum(costs[:same]) / sum(costs)


@dataclass
class Desk:
    """A client at a proxy, that looks what the histogram says after each of its requests."""

    proxy: Proxy
    upstream: Upstream
    arrived: list[Prompt] = field(default_factory=list)

    async def send(self, messages: Sequence[Message], **more: Any) -> float | None:
        """What was observed of this request; None: nothing."""
        count, total = await self.seen()
        await self.proxy.chat({"model": "gpt-4o", "messages": list(messages), **more})
        body = next(one.body for one in reversed(self.upstream.requests) if one.body)
        self.arrived.append(ChatRequest.parse(body).prompt)
        await until_settled(self.proxy)
        after, sum_after = await self.seen()
        assert after - count in (0, 1)
        return round(sum_after - total, 9) if after > count else None

    async def seen(self) -> tuple[int, float]:
        """How many were observed, and their sum."""
        told = (await self.proxy.get("/metrics")).body.decode().splitlines()
        found = {line.split("{")[0]: float(line.rpartition(" ")[2]) for line in told if "_prefix_reuse_ratio_" in line}
        name = "edgewise_prefix_reuse_ratio"
        return int(found.get(f"{name}_count", 0)), found.get(f"{name}_sum", 0.0)

    def brute(self, before: int = -2) -> float:
        return brute(self.arrived[before], self.arrived[-1])

    async def last(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = (await self.proxy.get("/context/requests?limit=1")).json["requests"][0]
        return found


class Desks:
    def __init__(self, upstream: Upstream, **more: Any) -> None:
        given: dict[str, Any] = {"upstream": upstream.base, "port": 0, "window": WINDOW} | more
        self._upstream, self._settings = upstream, Settings(**given)
        self._running = running(upstream.base, planner=planner_of(self._settings), window=WINDOW)

    async def __aenter__(self) -> Desk:
        return Desk(await self._running.__aenter__(), self._upstream)

    async def __aexit__(self, *fault: Any) -> None:
        await self._running.__aexit__(*fault)


@pytest.mark.parametrize("more", [{}, {"policy": "classic"}, {"policy": "frugal"}, {"ledger": "off"}])
async def test_each_turn_tells_what_a_cache_would_find_in_it(more: dict[str, Any]) -> None:
    async with scripted([OK]) as upstream, Desks(upstream, **more) as desk:
        torn = 0
        assert await desk.send(talk(0), tools=TOOLS) is None
        for count in range(1, 26):
            seen = await desk.send(talk(count), tools=TOOLS)
            assert seen == pytest.approx(desk.brute(), abs=0.002)
            assert ("opened" in await desk.last()) or seen == 1
            torn += seen != 1
        assert torn >= 2


async def test_a_client_that_changes_its_own_prefix_tears_its_cache() -> None:
    async with scripted([OK]) as upstream, Desks(upstream) as desk:
        await desk.send(talk(16, clock=" It is 10:00."))
        seen = await desk.send(talk(17, clock=" It is 10:01."))
        assert (await desk.last())["opened"] == "client"
        assert (seen, desk.brute()) == (0, 0)
        edited = talk(18, clock=" It is 10:01.")
        edited[-3] = {**edited[-3], "content": "rewritten"}
        seen = await desk.send(edited)
        assert seen == pytest.approx(desk.brute(), abs=0.002)


async def test_a_mark_that_moves_through_the_messages_tears_the_bytes() -> None:
    """Of a client that marks the last message for its cache; short, and so long that the proxy looks it up."""
    async with scripted([OK]) as upstream, Desks(upstream, window=100_000) as desk:
        for count in range(20):
            messages = talk(count, size=60)
            messages[-1] = {**messages[-1], "cache_control": {"type": "ephemeral"}}
            seen = await desk.send(messages)
            if count > 1:
                assert seen == pytest.approx(desk.brute(), abs=0.002)
                assert seen is not None
                assert 0 < seen < 1


async def test_tools_stand_first() -> None:
    async with scripted([OK]) as upstream, Desks(upstream) as desk:
        await desk.send(talk(2), tools=TOOLS)
        assert await desk.send(talk(3), tools=TOOLS) == 1
        for tools in (TOOLS[:1], [], TOOLS, [*TOOLS, tool("write")], TOOLS[::-1]):
            seen = await desk.send(talk(4 + len(desk.arrived)), tools=tools)
            assert seen == pytest.approx(desk.brute(), abs=0.002)
            assert seen is not None
            assert seen < 0.2


@pytest.mark.parametrize("rounds", [2, 10, 16])
async def test_two_ends_of_one_beginning_each_go_on_from_it(rounds: int) -> None:
    async with scripted([OK]) as upstream, Desks(upstream) as desk:
        await desk.send(talk(rounds))
        left, right = ([*talk(rounds), said(way), user(f"go {way}")] for way in ("left", "right"))
        assert await desk.send(left) == 1
        assert await desk.send(right) == 1
        assert await desk.send([*left, said("there"), user("on")]) == 1
        assert await desk.send([*right, said("there"), user("on")]) == 1


@pytest.mark.parametrize("rounds", [0, 2, 10, 16])
async def test_the_same_request_again_goes_on_from_nothing(rounds: int) -> None:
    async with scripted([OK]) as upstream, Desks(upstream) as desk:
        await desk.send(talk(rounds))
        assert await desk.send(talk(rounds)) is None
        assert await desk.send(talk(rounds + 1)) == pytest.approx(desk.brute(), abs=0.002)


@pytest.mark.parametrize("rounds", [1, 10, 16])
async def test_what_the_upstream_did_not_take_is_in_no_cache(rounds: int) -> None:
    async with scripted([OK]) as upstream, Desks(upstream, retries=0) as desk:
        await desk.send(talk(rounds))
        upstream.scripts[:] = [[BROKEN]]
        assert await desk.send(talk(rounds + 1)) is None
        upstream.scripts[:] = [[OK]]
        seen = await desk.send(talk(rounds + 1))
        assert seen == pytest.approx(desk.brute(-3), abs=0.002)


async def test_what_is_only_observed_is_sent_again_whole() -> None:
    async with scripted([OK]) as upstream, Desks(upstream, mode="observe") as desk:
        await desk.send(talk(0))
        for count in range(1, 18):
            assert await desk.send(talk(count)) == 1


async def test_tenants_share_no_prefix() -> None:
    async with scripted([OK]) as upstream, Desks(upstream) as desk:
        for count in (0, 1, 10, 16):
            await desk.proxy.chat({"model": "gpt-4o", "messages": talk(count)}, ("authorization", "Bearer theirs"))
        seen, _ = await desk.seen()
        assert seen == 3
        for count in (1, 10, 16):
            await desk.proxy.chat({"model": "gpt-4o", "messages": talk(count)}, ("authorization", f"Bearer {count}"))
        assert (await desk.seen())[0] == 3


async def test_a_replica_compares_with_what_it_sent_itself(valkey_url: str) -> None:
    more = {"ledger": valkey_url}
    async with scripted([OK]) as upstream, Desks(upstream, **more) as one, Desks(upstream, **more) as two:
        two.arrived = one.arrived
        for count in range(20):
            seen = await (one, two)[count % 2].send(talk(count))
            assert seen == (pytest.approx(one.brute(-3), abs=0.002) if count > 1 else None)


async def test_a_client_that_leaves_once_the_upstream_answered_has_filled_the_cache() -> None:
    async with scripted([OK]) as upstream, Desks(upstream) as desk:
        await desk.send(talk(1))
        upstream.scripts[:] = [[BEGUN, Hang()], [OK]]
        async with desk.proxy.client() as client:
            await client.send(post("/v1/chat/completions", {"model": "gpt-4o", "messages": talk(2), "stream": True}))
            await client.head()
            await client.chunk()
        await upstream.gone.wait()
        await until_settled(desk.proxy)
        assert await desk.seen() == (1, 1)
        assert await desk.send(talk(3)) == 1


async def test_a_repair_at_the_end_is_no_part_of_what_is_sent_again() -> None:
    async with scripted([OK]) as upstream, Desks(upstream) as desk:
        await desk.send(talk(16))
        open_end = [*talk(16), calls(("late", "read_log"))]
        await desk.send(open_end)
        assert b"late" in desk.arrived[-1].messages[-1].raw
        assert b'"tool"' in desk.arrived[-1].messages[-1].raw
        assert await desk.send([*open_end, result("late", "shut"), user("Go on.")]) == 1
        assert desk.brute() < 1


async def test_what_is_too_short_for_any_cache_tells_nothing() -> None:
    """Providers keep prefixes of 1,024 tokens and more."""
    short = [system("You run the pumps."), user("Find the task.")]
    async with scripted([OK]) as upstream, Desks(upstream) as desk:
        await desk.send(short)
        longer = [*short, said("Where?"), user("Here: " + lines(160, "pump"))]
        assert await desk.send(longer) is None
        assert await desk.send([*longer, said("There."), user("Go on.")]) == 1


async def test_a_request_without_messages_tells_nothing() -> None:
    async with scripted([OK]) as upstream, Desks(upstream) as desk:
        assert await desk.send([], tools=[tool(f"read_{at}", RULES) for at in range(3)]) is None


async def test_what_nobody_took_and_nobody_went_before_leaves_nothing() -> None:
    async with scripted([BROKEN]) as upstream, Desks(upstream) as desk:
        assert await desk.send(talk(3)) is None
        upstream.scripts[:] = [[OK]]
        assert await desk.send(talk(4)) is None
