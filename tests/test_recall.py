"""Conversations through the real proxy, turn by turn, with a ledger behind it."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.faulty import until_settled
from support.prompts import Message, lines, round_of, said, system, user
from support.servers import Proxy, post, running
from support.upstream import OK, STREAM_HEAD, Act, Hang, Reset, Upstream, chunk, scripted, until

from proxy.planning import planner_of
from proxy.settings import Settings

WINDOW = 8_000
BROKEN = b"HTTP/1.1 500 Internal Server Error\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
SUMMARISE = (
    "Your task is to create a detailed summary of the conversation so far, paying close attention to the user's "
    "requests and your previous actions, so that another agent can continue the work without losing context."
)


def talk(rounds: int, *, clock: str = "", topic: str = "task") -> list[Message]:
    """A loop of one user message; each round is about 600 tokens."""
    loop = [m for n in range(rounds) for m in round_of(n, lines(40, f"{topic} pump {n}"))]
    return [system(f"You run the pumps.{clock}"), user(f"Find the {topic}."), *loop]


@asynccontextmanager
async def proxied(upstream: Upstream, **more: Any) -> AsyncIterator[Proxy]:
    given: dict[str, Any] = {"upstream": upstream.base, "port": 0, "window": WINDOW} | more
    settings = Settings(**given)
    async with running(upstream.base, planner=planner_of(settings), window=WINDOW) as proxy:
        yield proxy


async def forwarded(proxy: Proxy, upstream: Upstream, messages: list[Message], **more: Any) -> list[Any]:
    """The messages that arrive upstream."""
    await proxy.chat({"model": "gpt-4o", "messages": messages, **more})
    arrived: list[Any] = json.loads(upstream.requests[-1].body)["messages"]
    return arrived


async def last(proxy: Proxy) -> Mapping[str, Any]:
    listed = await proxy.get("/context/requests?limit=1")
    found: Mapping[str, Any] = listed.json["requests"][0]
    return found


def begins(long: list[Any], short: list[Any]) -> bool:
    return long[: len(short)] == short


async def turns(proxy: Proxy, upstream: Upstream, rounds: Iterable[int], **more: Any) -> list[list[Any]]:
    return [await forwarded(proxy, upstream, talk(count), **more) for count in rounds]


async def test_what_was_sent_is_sent_again_until_an_epoch() -> None:
    async with scripted([OK]) as upstream, proxied(upstream) as proxy:
        before: list[Any] = []
        opened = []
        for count in range(1, 30):
            sent = await forwarded(proxy, upstream, talk(count))
            told = await last(proxy)
            assert told["sent"] <= told["limit"]
            if "opened" in told:
                opened.append((count, told["epoch"], told["opened"]))
            else:
                assert begins(sent, before)
            before = sent
        assert [epoch for _, epoch, _ in opened] == list(range(1, len(opened) + 1))
        assert 2 <= len(opened) <= 8
        metrics = (await proxy.get("/metrics")).body.decode()
        assert "edgewise_ledger_entries_total" in metrics
        counted = [
            line.rpartition(" ")[2] for line in metrics.splitlines() if line.startswith("edgewise_epochs_total{")
        ]
        assert sum(map(float, counted)) == len(opened)


@pytest.mark.parametrize("where", ["sqlite", "valkey"])
async def test_after_a_restart_the_same_bytes_leave(where: str, tmp_path: Path, valkey_url: str) -> None:
    counts = range(1, 18)
    async with scripted([OK]) as upstream:
        async with proxied(upstream) as proxy:
            expected = await turns(proxy, upstream, counts)
        got = []
        ledger = valkey_url if where == "valkey" else str(tmp_path / "ledger")
        for count in counts:
            async with proxied(upstream, ledger=ledger) as proxy:
                got += await turns(proxy, upstream, [count])
        assert got == expected


async def test_two_replicas_send_the_same_bytes(valkey_url: str) -> None:
    async with scripted([OK]) as upstream:
        async with proxied(upstream) as proxy:
            expected = await turns(proxy, upstream, range(1, 18))
        got = []
        async with proxied(upstream, ledger=valkey_url) as one, proxied(upstream, ledger=valkey_url) as two:
            for count in range(1, 18):
                got += await turns((one, two)[count % 2], upstream, [count])
        assert got == expected


async def test_what_nobody_got_an_answer_for_was_not_decided() -> None:
    async with scripted([OK]) as upstream, proxied(upstream) as proxy:
        await forwarded(proxy, upstream, talk(1))
        upstream.scripts[:] = [[BROKEN]] * 4 + [[OK]]
        sent = await forwarded(proxy, upstream, talk(16))
        upstream.scripts[:] = [[OK]]
        assert (await last(proxy))["epoch"] == 1
        await until_settled(proxy)
        again = await forwarded(proxy, upstream, talk(17))
        told = await last(proxy)
        assert (told["epoch"], told["opened"]) == (1, "forced")
        assert sent != again


BEGUN = STREAM_HEAD + chunk(b'data: {"choices":[{"delta":{"content":"so"}}]}\n\n')


@pytest.mark.parametrize("rest", [Reset(), Hang()])
async def test_what_the_upstream_took_is_decided_though_its_answer_breaks_off_or_nobody_stays_for_it(rest: Act) -> None:
    async with scripted([OK]) as upstream, proxied(upstream) as proxy:
        await forwarded(proxy, upstream, talk(1))
        upstream.scripts[:] = [[BEGUN, rest], [OK]]
        async with proxy.client() as client:
            await client.send(post("/v1/chat/completions", {"model": "gpt-4o", "messages": talk(16), "stream": True}))
            await client.head()
            await client.chunk()
        if isinstance(rest, Hang):
            await upstream.gone.wait()
        sent = json.loads(upstream.requests[-1].body)["messages"]
        await until_settled(proxy)
        again = await forwarded(proxy, upstream, talk(17))
        told = await last(proxy)
        assert (told["epoch"], told.get("opened")) == (1, None)
        assert begins(again, sent)


async def test_what_the_upstream_gave_no_status_for_was_not_decided() -> None:
    async with scripted([OK]) as upstream, proxied(upstream) as proxy:
        await forwarded(proxy, upstream, talk(1))
        upstream.scripts[:] = [[Hang()], [OK]]
        async with proxy.client() as client:
            await client.send(post("/v1/chat/completions", {"model": "gpt-4o", "messages": talk(16)}))
            await until(lambda: b"pump 15" in upstream.requests[-1].body)
        await upstream.gone.wait()
        await until_settled(proxy)
        await forwarded(proxy, upstream, talk(17))
        told = await last(proxy)
        assert (told["epoch"], told["opened"]) == (1, "forced")


async def test_a_clock_in_the_system_prompt_costs_no_decision() -> None:
    async with scripted([OK]) as upstream, proxied(upstream) as proxy:
        first = await forwarded(proxy, upstream, talk(16, clock=" It is 10:00."))
        assert (await last(proxy))["opened"] == "forced"
        await until_settled(proxy)
        second = await forwarded(proxy, upstream, talk(17, clock=" It is 10:01."))
        told = await last(proxy)
        assert (told["epoch"], told["opened"]) == (2, "client")
        assert second[1 : len(first)] == first[1:]
        assert "It is 10:01" in second[0]["content"]
        metrics = (await proxy.get("/metrics")).body.decode()
        assert 'edgewise_client_changes_total{change="system_changed"} 1.0' in metrics


async def test_another_end_of_the_same_beginning_has_its_own_decisions() -> None:
    async with scripted([OK]) as upstream, proxied(upstream) as proxy:
        trunk = await forwarded(proxy, upstream, talk(16))
        left = await forwarded(proxy, upstream, [*talk(16), said("left"), user("go left")])
        right = await forwarded(proxy, upstream, [*talk(16), said("right"), user("go right")])
        assert begins(left, trunk)
        assert begins(right, trunk)
        assert left != right


async def test_tenants_and_models_share_no_decision() -> None:
    async with scripted([OK]) as upstream, proxied(upstream) as proxy:
        body = {"model": "gpt-4o", "messages": talk(16)}
        for name in ("mine", "theirs"):
            await proxy.chat(body, ("authorization", f"Bearer {name}"))
            listed = await proxy.get("/context/requests?limit=1", ("authorization", f"Bearer {name}"))
            assert listed.json["requests"][0]["opened"] == "forced"
        await proxy.chat({**body, "model": "gpt-4o-mini"}, ("authorization", "Bearer mine"))
        listed = await proxy.get("/context/requests?limit=1", ("authorization", "Bearer mine"))
        assert listed.json["requests"][0]["opened"] == "forced"


async def test_the_clients_own_compaction_passes_untouched_where_the_window_holds_it() -> None:
    async with scripted([OK]) as upstream, proxied(upstream) as proxy:
        near = [*talk(10), said("So far."), user(SUMMARISE)]
        assert await forwarded(proxy, upstream, near) == near
        over = [*talk(16), said("So far."), user(SUMMARISE)]
        assert await forwarded(proxy, upstream, over) != over


async def test_what_is_only_observed_is_remembered_apart() -> None:
    async with scripted([OK]) as upstream, proxied(upstream, mode="observe") as proxy:
        assert await forwarded(proxy, upstream, talk(16)) == talk(16)
        assert await forwarded(proxy, upstream, talk(17)) == talk(17)
        told = await last(proxy)
        assert (told["outcome"], told["epoch"]) == ("observed", 1)
        assert "opened" not in told


@pytest.mark.parametrize("ledger", ["off", "/dev/null/nowhere"])
async def test_without_a_ledger_requests_go_through_and_the_process_remembers(ledger: str) -> None:
    async with scripted([OK]) as upstream, proxied(upstream, ledger=ledger) as proxy:
        first = await forwarded(proxy, upstream, talk(16))
        second = await forwarded(proxy, upstream, talk(17))
        assert begins(second, first)


async def test_the_first_writer_wins() -> None:
    """Two requests of one prefix at once, by two replicas: both send what the first one wrote down."""
    async with scripted([OK]) as upstream, proxied(upstream) as proxy:
        bodies = await asyncio.gather(*(proxy.chat({"model": "gpt-4o", "messages": talk(16)}) for _ in range(5)))
        assert [one.status for one in bodies] == [200] * 5
        assert len({one.body for one in upstream.requests if b"pumps" in one.body}) == 1


async def test_an_entry_of_somebody_else_is_sent_instead_of_ours(tmp_path: Path) -> None:
    """A node that another replica wrote for the same prefix stands."""
    async with scripted([OK]) as upstream:
        ledger = str(tmp_path / "ledger")
        async with proxied(upstream, ledger=ledger, policy="classic") as proxy:
            first = await forwarded(proxy, upstream, talk(16))
        async with proxied(upstream, ledger=ledger, policy="balanced") as proxy:
            assert await forwarded(proxy, upstream, talk(16)) == first
