import json
from typing import Any

import pytest
from support.reading import Reads, answer, ask, own, sse, streamed
from support.rounds import REF

ROUNDS = "edgewise_read_back_rounds_total"


async def counted(planner: Reads, *raws: bytes) -> tuple[dict[str, float], float | None]:
    """Calls by their result, and the rounds beyond the first."""
    apps: list[Any] = []
    await ask(planner, *map(sse, raws), app_of=apps)
    registry = apps[0].state.registry
    families = [family for family in registry.collect() if family.name == "edgewise_read_backs"]
    reads = {one.labels["result"]: one.value for family in families for one in family.samples}
    return reads, registry.get_sample_value(ROUNDS)


async def test_nothing_is_counted_where_nothing_is_read() -> None:
    assert await counted(Reads(), *streamed(answer("7"))) == ({}, 0)


@pytest.mark.parametrize(
    ("arguments", "result"),
    [(json.dumps({"ref": REF}), "answered"), ('{"ref": "tr_ffffffffffffffff"}', "missing"), ("{", "unclear")],
)
async def test_a_call_is_counted_by_what_came_of_it(arguments: str, result: str) -> None:
    raws = streamed(answer("", own(arguments=arguments)), answer("7"))
    assert await counted(Reads(), *raws) == ({result: 1}, 1)


async def test_a_store_that_breaks_is_counted() -> None:
    planner = Reads()
    planner.store[REF] = ValueError("secret")
    assert await counted(planner, *streamed(answer("", own()), answer("7"))) == ({"broken": 1}, 1)


async def test_what_has_no_room_is_counted() -> None:
    assert await counted(Reads(room=10), *streamed(answer("", own()), answer("7"))) == ({"no_room": 1}, 1)


async def test_what_goes_beyond_the_read_budget_is_counted() -> None:
    raws = streamed(*[answer("", own(f"call_{number}"), number=number) for number in range(5)])
    assert await counted(Reads(), *raws) == ({"answered": 3, "used_up": 1}, 4)


async def test_a_call_beside_the_clients_is_counted_without_a_round() -> None:
    calls = own(), ("call_w", "get_weather", "{}")
    assert await counted(Reads(), *streamed(answer("", *calls))) == ({"answered": 1}, 0)
