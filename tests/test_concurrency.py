"""Requests of one conversation and of many at once, in one process and in two: each sends what was decided for it, and
what fails takes back its own decisions alone (DESIGN 4.10, 6)."""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.faulty import faults, proxied, refs_of, sent, sent_for, unreadable, until_settled
from support.lasting import WINDOW, body, refs_in, talk
from support.prompts import Message, said, user
from support.served import serving
from support.servers import Proxy, post
from support.upstream import OK, STREAM_HEAD, Act, Hang, Upstream, Wait, chunk, response, scripted, until

EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"Hm"}}]}\n\n'
OUT_OF_QUOTA = b'{"error":{"message":"no more","type":"insufficient_quota","code":"insufficient_quota"}}'
FAILS: dict[str, Sequence[Act]] = {
    "500": [response(500, b"{}")],
    "429": [response(429, OUT_OF_QUOTA)],
    "400": [response(400, b'{"error":{"message":"no"}}')],
}


async def test_branches_at_once_all_go_on_from_what_their_trunk_sent(tmp_path: Path) -> None:
    async with scripted([OK]) as upstream, proxied(upstream, tmp_path / "ledger") as proxy:
        trunk = await sent(proxy, upstream, talk("pumps"))
        ends = [[said(f"way {number:02}"), user(f"go way {number:02}")] for number in range(30)]
        await asyncio.gather(*(proxy.chat(body([*talk("pumps"), *end])) for end in ends))
        for end in ends:
            assert sent_for(upstream, str(end[1]["content"])) == [*trunk, *end]
        further = [[*end, said("gone"), user(f"and on from {end[1]['content']}")] for end in ends]
        await asyncio.gather(*(proxy.chat(body([*talk("pumps"), *end])) for end in further))
        for end in further:
            assert sent_for(upstream, str(end[-1]["content"])) == [*trunk, *end]
        assert await faults(proxy) == {}


async def test_branches_of_a_trunk_that_nobody_sent_each_keep_what_they_sent(tmp_path: Path) -> None:
    ways = [f"go way {number:02}" for number in range(10)]
    async with scripted([OK]) as upstream, proxied(upstream, tmp_path / "ledger") as proxy:
        for end in ([], [said("gone"), user("and on")]):
            talks = [[*talk("pumps"), said(way), user(way), *end] for way in ways]
            before = {way: sent_for(upstream, way) for way in ways}
            await asyncio.gather(*(proxy.chat(body(messages)) for messages in talks))
            for way in ways:
                now = sent_for(upstream, way)
                assert now[: len(before[way])] == before[way]
                assert await unreadable(proxy, refs_in(now), talk("pumps")) == {}


async def test_a_hundred_conversations_in_any_order_share_nothing(tmp_path: Path) -> None:
    topics = [f"station-{number:03}" for number in range(100)]
    before: dict[str, list[Message]] = {topic: [] for topic in topics}
    async with scripted([OK]) as upstream, proxied(upstream, tmp_path / "ledger") as proxy:
        for rounds in (14, 15):
            random.Random(rounds).shuffle(topics)
            await asyncio.gather(*(proxy.chat(body(talk(topic, rounds))) for topic in topics))
            for topic in topics:
                now = sent_for(upstream, topic)
                assert now[: len(before[topic])] == before[topic]
                before[topic] = now
        for topic in topics[:10]:
            assert refs_in(before[topic])
            assert await unreadable(proxy, refs_in(before[topic]), talk(topic, 15)) == {}
        assert await faults(proxy) == {}


async def test_two_processes_on_one_directory_send_what_one_would(tmp_path: Path) -> None:
    """They are two replicas: each finds what the other decided. None breaks a request of the other's."""
    shared = tmp_path / "shared"
    async with scripted([OK]) as upstream:
        async with proxied(upstream, tmp_path / "alone") as proxy:
            expected = [await sent(proxy, upstream, talk("pumps", rounds)) for rounds in range(12, 24)]
        async with (
            serving(upstream.base, shared, window=WINDOW) as one,
            serving(upstream.base, shared, window=WINDOW) as two,
        ):
            both = (one, two)
            for rounds, as_alone in zip(range(12, 24), expected, strict=True):
                upstream.requests.clear()
                first, second = both[:: 1 if rounds % 2 else -1]
                answers = await asyncio.gather(*(first.chat(body(talk("pumps", rounds))) for _ in range(3)))
                answers.append(await second.chat(body(talk("pumps", rounds))))
                assert [answer.status for answer in answers] == [200] * 4
                assert len({one.body for one in upstream.requests if b"pumps" in one.body}) == 1
                assert sent_for(upstream, "pumps") == as_alone
            for either in both:
                assert await faults(either) == {}
                assert await unreadable(either, refs_in(expected[-1]), talk("pumps", 23)) == {}


async def test_two_processes_that_begin_at_the_same_time_both_serve(tmp_path: Path) -> None:
    topics = [f"station-{number:02}" for number in range(20)]
    async with (
        scripted([OK]) as upstream,
        serving(upstream.base, tmp_path / "ledger", window=WINDOW) as one,
        serving(upstream.base, tmp_path / "ledger", window=WINDOW) as two,
    ):
        asked = [proxy.chat(body(talk(topic))) for topic in topics for proxy in (one, two)]
        assert {answer.status for answer in await asyncio.gather(*asked)} == {200}
        for topic in topics:
            assert await unreadable(one, refs_of(upstream, topic), talk(topic)) == {}
        await one.kill()
        for topic in topics:
            assert await unreadable(two, refs_of(upstream, topic), talk(topic)) == {}


@pytest.mark.parametrize("fails", FAILS)
async def test_a_request_that_fails_takes_back_decisions_and_no_original(fails: str, tmp_path: Path) -> None:
    async with scripted([OK]) as upstream:
        async with proxied(upstream, tmp_path / "ledger") as proxy:
            before = await sent(proxy, upstream, talk("pumps", 14))
            upstream.scripts[:] = [FAILS[fails]]
            failed = await proxy.chat(body(talk("pumps", 20)))
            assert failed.status == int(fails)
            issued = refs_of(upstream, "pumps")
            upstream.scripts[:] = [[OK]]
            await until_settled(proxy)
            assert issued
            assert await unreadable(proxy, issued, talk("pumps", 20)) == {}
            after = await sent(proxy, upstream, talk("pumps", 15))
            assert after[: len(before)] == before
        async with proxied(upstream, tmp_path / "ledger") as proxy:
            assert await unreadable(proxy, issued, talk("pumps", 20)) == {}
            assert (await sent(proxy, upstream, talk("pumps", 16)))[: len(after)] == after


async def leave(proxy: Proxy, upstream: Upstream, messages: Sequence[Message]) -> None:
    """A client goes in the middle of a stream."""
    upstream.gone.clear()
    upstream.scripts[:] = [[STREAM_HEAD, chunk(EVENT), Hang()]]
    async with proxy.client() as client:
        await client.send(post("/v1/chat/completions", body(messages, stream=True)))
        assert (await client.head()).status == 200
        assert await client.chunk()
    async with asyncio.timeout(10):
        await upstream.gone.wait()
    upstream.scripts[:] = [[OK]]
    await until_settled(proxy)


async def test_after_a_client_left_in_the_middle_the_next_request_is_right(tmp_path: Path) -> None:
    async with scripted([OK]) as upstream, proxied(upstream, tmp_path / "ledger") as proxy:
        before = await sent(proxy, upstream, talk("pumps", 14))
        await leave(proxy, upstream, talk("pumps", 20))
        left = refs_of(upstream, "pumps")
        assert left
        assert await unreadable(proxy, left, talk("pumps", 20)) == {}
        messages = [*talk("pumps", 20), said("Hm"), user("Go on.")]
        after = await sent(proxy, upstream, messages)
        assert await unreadable(proxy, refs_in(after), messages) == {}
        assert (await sent(proxy, upstream, [*messages, said("Well."), user("And?")]))[: len(after)] == after
        other = await sent(proxy, upstream, talk("pumps", 15))
        assert other[: len(before)] == before


async def test_what_a_second_request_was_answered_with_outlives_the_first_that_fails(tmp_path: Path) -> None:
    """A client that gave up waiting and asked again: the answer to its second try rests on what the first decided."""
    held = Wait()
    async with scripted([OK]) as upstream:
        async with proxied(upstream, tmp_path / "ledger") as proxy:
            await proxy.chat()
            upstream.scripts[:] = [[held, *FAILS["400"]], [OK]]
            first = asyncio.create_task(proxy.chat(body(talk("pumps", 18))))
            await until(lambda: b"pumps" in upstream.requests[-1].body)
            second = await sent(proxy, upstream, talk("pumps", 18))
            assert second == sent_for(upstream, "pumps")
            held.go()
            assert (await first).status == 400
            await until_settled(proxy)
            third = await sent(proxy, upstream, talk("pumps", 19))
            assert third[: len(second)] == second
            await until_settled(proxy)
        async with proxied(upstream, tmp_path / "ledger") as proxy:
            assert (await sent(proxy, upstream, talk("pumps", 20)))[: len(third)] == third


@pytest.mark.parametrize("answers_first", [True, False])
async def test_what_a_later_request_builds_on_outlives_an_earlier_one_that_fails(
    answers_first: bool, tmp_path: Path
) -> None:
    held, later = Wait(), Wait()
    async with scripted([OK]) as upstream:
        async with proxied(upstream, tmp_path / "ledger") as proxy:
            await proxy.chat()
            await sent(proxy, upstream, talk("pumps", 13))
            upstream.scripts[:] = [[held, *FAILS["400"]], [later, OK]]
            first = asyncio.create_task(proxy.chat(body(talk("pumps", 20))))
            await until(lambda: b"pump 19 " in upstream.requests[-1].body)
            second = asyncio.create_task(proxy.chat(body(talk("pumps", 21))))
            await until(lambda: b"pump 20 " in upstream.requests[-1].body)
            for wait, asked in [(later, second), (held, first)][:: 1 if answers_first else -1]:
                wait.go()
                await asked
                await until_settled(proxy)
            before = sent_for(upstream, "pumps")
        async with proxied(upstream, tmp_path / "ledger") as proxy:
            upstream.scripts[:] = [[OK]]
            assert (await sent(proxy, upstream, talk("pumps", 22)))[: len(before)] == before
