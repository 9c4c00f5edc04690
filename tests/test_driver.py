import httpx2
from support import plans

from policies.needs import Ask, Reply, ServerCount
from proxy.driver import Driver
from proxy.promptfiles import load
from proxy.sidemodel import Lane, Questions, SideModel

ASK = Ask("select_tools", {"question": "why?", "tools": "read_log: Reads the log."}, 50)
ANSWER = {
    "choices": [{"message": {"content": "read_log"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 40, "completion_tokens": 2},
}


def questions() -> Questions:
    client = httpx2.AsyncClient(transport=httpx2.MockTransport(lambda _: httpx2.Response(200, json=ANSWER)))
    return Questions(SideModel(Lane("http://side.test/v1", "tiny"), load(), client, len), "tenant")


async def test_where_there_is_nobody_to_ask_every_need_is_answered_with_none() -> None:
    driver, made = Driver(None, {}), plans.plan(plans.small())
    assert [await driver.answer(ServerCount(made.prompt)), await driver.answer(ASK)] == [None, None]
    assert driver.billed(made) is made


async def test_questions_go_to_the_side_model_and_its_tokens_stand_in_the_plan() -> None:
    driver, made = Driver(None, {}, questions()), plans.plan(plans.small())
    assert driver.billed(made) is made
    assert await driver.answer(ASK) == Reply("read_log", 42)
    assert driver.billed(made).side_tokens == 42
