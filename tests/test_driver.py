import httpx2
from support import plans

from policies.needs import Anybody, Ask, Need, Recall, Reply, ServerCount, Usage
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
    usage = Usage(made.prompt, "estimate", exact=False, close=True)
    needs: list[Need] = [ServerCount(made.prompt), Recall(made.prompt), usage, ASK, Anybody()]
    assert [await driver.answer(need) for need in needs] == [None] * 5
    assert driver.billed(made) is made


async def test_questions_go_to_the_side_model_and_its_tokens_stand_in_the_plan() -> None:
    driver, made = Driver(None, {}, questions()), plans.plan(plans.small())
    assert driver.billed(made) is made
    assert await driver.answer(Anybody()) == 1
    assert await driver.answer(ASK) == Reply("read_log", 42)
    assert driver.billed(made).side_tokens == 42


async def test_once_a_question_was_waited_for_in_vain_nobody_is_there_any_more() -> None:
    client = httpx2.AsyncClient(transport=httpx2.MockTransport(lambda _: httpx2.Response(500)))
    driver = Driver(None, {}, Questions(SideModel(Lane("http://side.test/v1", "tiny"), load(), client, len), "tenant"))
    assert [await driver.answer(need) for need in (Anybody(), ASK, Anybody())] == [1, None, None]
