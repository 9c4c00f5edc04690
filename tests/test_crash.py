"""kill -9 while hundreds of requests are under way: every ref that ever arrived upstream reads back (DESIGN 1.4)."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.lasting import WINDOW, are_dropped, body, originals, refs_in, talk
from support.prompts import Message
from support.served import Served, serving
from support.servers import CHAT, request
from support.upstream import OK, Script, Upstream, Wait, scripted, until

from proxy.access import Access

ANONYMOUS = Access().tenant([])
Talks = Mapping[str, list[Message]]


def talks(count: int) -> Talks:
    """By the system text that each has to itself, which leaves as it is. Some are so long that rounds are dropped."""
    lengths = [90 if number % 40 == 0 else 13 + number % 3 for number in range(count)]
    each = [talk(f"station-{number:03}", rounds) for number, rounds in enumerate(lengths)]
    return {one[0]["content"]: one for one in each}


def which(arrived: bytes, of: Talks) -> str:
    (found,) = [name for name in of if name.encode() in arrived]
    return found


def sent_refs(upstream: Upstream, of: Talks) -> dict[str, list[Message]]:
    """Every ref that arrived upstream, and the conversation it arrived in."""
    found: dict[str, list[Message]] = {}
    for one in upstream.requests:
        found |= dict.fromkeys(refs_in(one.body), of[which(one.body, of)])
    return found


async def read_back(proxy: Served, refs: Mapping[str, list[Message]]) -> int:
    """How many of them are of dropped rounds; all the others are results."""
    rounds = 0
    async with proxy.client() as client:
        for ref, messages in refs.items():
            await client.send(request("GET", f"/context/results/{ref}", b""))
            answer = await client.answer()
            assert answer.status == 200, f"{ref}: {answer.body!r}"
            result = originals(ANONYMOUS, messages).get(ref)
            if result is None:
                rounds += 1
                assert are_dropped(answer.body, messages)
            else:
                assert answer.body == result
    return rounds


@pytest.mark.parametrize(
    ("count", "answered", "arrived"), [pytest.param(40, 1, 15, id="in-planning"), pytest.param(200, 0, 200, id="held")]
)
async def test_every_ref_that_was_sent_outlives_a_kill(count: int, answered: int, arrived: int, tmp_path: Path) -> None:
    """Requests at once, when so many of them have arrived; of two, so many are `answered`, and the others held."""
    held, of = Wait(), talks(count)
    scripts: list[Script] = [*[[OK]] * answered, [held, OK]] * count
    async with scripted([OK]) as upstream:
        async with serving(upstream.base, tmp_path / "ledger", window=WINDOW) as proxy:
            await proxy.chat(CHAT)  # for which it asks the upstream what it needs to know
            upstream.requests.clear()
            upstream.scripts[:] = scripts
            asking = [asyncio.create_task(proxy.chat(body(messages))) for messages in of.values()]
            await until(lambda: len(upstream.requests) >= arrived, 60)
            await proxy.kill()
            answers = await asyncio.gather(*asking)
        assert sum(not answer.complete for answer in answers) >= count - arrived * answered
        refs = sent_refs(upstream, of)
        assert len(refs) >= 5 * arrived
        async with serving(upstream.base, tmp_path / "ledger", window=WINDOW) as again:
            rounds = await read_back(again, refs)
            assert rounds > 0 or arrived < count
