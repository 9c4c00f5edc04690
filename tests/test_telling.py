import asyncio
import json
import logging

import pytest
from prometheus_client import CollectorRegistry
from support.plans import plan, record, small

from proxy.history import History
from proxy.metrics import Metrics
from proxy.observe import Ending
from proxy.planner import Call
from proxy.recall import Conversation
from proxy.remembered import Memory
from proxy.reuse import Sending
from proxy.routing import Upstream
from proxy.telling import LARGE, LATE, TOGETHER, Telling

OVER = Ending(200, None, 0.001, 0.5)


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [json.loads(one.getMessage())["id"] for one in caplog.records if one.name == "edgewise.requests"]


@pytest.fixture
def telling(caplog: pytest.LogCaptureFixture) -> Telling:
    caplog.set_level(logging.INFO, "edgewise.requests")
    return Telling(Metrics(), History())


async def test_who_looks_sees_all_that_happened(telling: Telling) -> None:
    registry = CollectorRegistry()
    registry.register(telling)
    made = record(plan(small()))
    telling.planned(made)
    telling.finished(made, OVER)
    assert registry.get_sample_value("edgewise_requests_total", {"level": "none", "outcome": "untouched"}) == 1
    assert registry.get_sample_value("edgewise_upstream_responses_total", {"status": "200"}) == 1


async def test_a_record_can_be_asked_for_as_soon_as_its_request_is_planned(telling: Telling) -> None:
    made = record(plan(small()))
    telling.planned(made)
    assert telling.history().get(made.about.tenant, made.about.id) is made


async def test_requests_are_told_in_their_order_and_none_waits_long(
    telling: Telling, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(3):
        telling.finished(record(plan(small()), f"ew_{number}"), OVER)
    assert told(caplog) == []
    while not told(caplog):
        await asyncio.sleep(LATE / 5)
    assert told(caplog) == ["ew_0", "ew_1", "ew_2"]
    telling.finished(record(plan(small()), "ew_3"), OVER)
    while len(told(caplog)) < 4:
        await asyncio.sleep(LATE / 5)


async def test_many_requests_do_not_wait(telling: Telling, caplog: pytest.LogCaptureFixture) -> None:
    made = record(plan(small()))
    for _ in range(TOGETHER):
        telling.finished(made, OVER)
    assert len(told(caplog)) == TOGETHER
    telling.settle()
    assert len(told(caplog)) == TOGETHER


async def test_prompts_that_have_to_be_hashed_are_told_a_few_at_a_time(
    telling: Telling, caplog: pytest.LogCaptureFixture
) -> None:
    made, request = record(plan(small())), small()
    call = Call("ew_1", [], "00", Upstream.of("http://127.0.0.1:9/v1"))
    conversation = Conversation(Memory(None, lambda _: None), call, request)
    sending = Sending(made.about, conversation, request.prompt, request.prompt, plan(request).sent)
    for _ in range(LARGE):
        assert told(caplog) == []
        telling.finished(made, OVER, sending)
    assert len(told(caplog)) == LARGE
