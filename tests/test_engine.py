import dataclasses
import json
from pathlib import Path

import pytest
from support import plans

from policies.counting.windows import Window
from policies.request import BadRequest, ChatRequest
from proxy.engine import Engine
from proxy.policyfile import load
from proxy.settings import Settings, SettingsError


def made(**settings: object) -> Engine:
    return Engine(Settings.load(**settings), load("balanced"))


def request(model: str, **fields: object) -> ChatRequest:
    return ChatRequest.parse(
        json.dumps({"model": model, "messages": [{"role": "user", "content": "hi"}]} | fields).encode()
    )


def test_a_known_model_has_its_own_window() -> None:
    plan = made().plan_sync(request("gpt-4o"), None)
    assert (plan.budget.window, plan.budget.reserve) == (128_000, 4_096)


def test_the_answer_that_is_asked_for_is_reserved() -> None:
    assert made().plan_sync(request("gpt-4o", max_tokens=1_000), 8_000).budget.reserve == 1_000


def test_a_window_by_model_pattern_goes_before_the_table() -> None:
    engine = made(windows={"gpt-4o*": 9_000})
    assert engine.plan_sync(request("gpt-4o-mini"), None).budget.window == 9_000
    assert engine.plan_sync(request("gpt-4.1"), None).budget.window == 1_047_576


def test_a_model_nobody_knows_has_no_window_and_is_not_cut() -> None:
    plan = made().plan_sync(plans.long(200, model="nobody-knows"), None)
    assert (plan.budget.limit, plan.level, plan.prompt is plan.prompt) == (None, "unknown", True)
    assert plan.sent_total == plan.received_total


def test_a_count_edits_nothing_whatever_the_size() -> None:
    plan = made().count(plans.long(60), 4_000)
    assert plan.refusal is None
    assert plan.sent_total == plan.received_total > 4_000
    assert plan.budget.window == 4_000


def test_nothing_is_counted_before_the_plan_is_asked_for() -> None:
    engine, asked = made(), request("gpt-4o")
    counter = engine.counter("gpt-4o")
    steps = engine.planning(asked, Window(128_000, "given"), ask_server=False)
    assert counter.new_bytes(asked.prompt) > 0
    with pytest.raises(StopIteration):
        next(steps)
    assert counter.new_bytes(asked.prompt) == 0


def test_the_last_steps_alone_make_a_prompt_fit() -> None:
    plan = made().last_resort(plans.long(60), Window(4_000, "given"))
    assert plan.budget.limit is not None
    assert plan.sent_total <= plan.budget.limit
    assert {decision.step for decision in plan.decisions} <= {"emergency", "fit", "note", "repair"}


def test_a_tokenizer_that_is_not_there_is_said_at_start(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"EDGEWISE_TOKENIZERS: .*there is no tokenizer.json"):
        made(tokenizers={"qwen*": str(tmp_path)})


def test_a_given_window_goes_before_the_policys_and_that_before_the_table() -> None:
    policy = dataclasses.replace(load("balanced"), window=6_000)
    engine = Engine(Settings.load(), policy)
    assert engine.plan_sync(request("gpt-4o"), None).budget.window == 6_000
    assert engine.plan_sync(request("gpt-4o"), 3_000).budget.window == 3_000
    assert Engine(Settings.load(window=5_000), policy).plan_sync(request("gpt-4o"), None).budget.window == 5_000


def test_the_last_steps_are_taken_only_where_the_policy_has_them() -> None:
    plan = made().last_resort(plans.long(60), Window(4_000, "given"), load("lossless"))
    assert plan.refusal is not None
    assert plan.sent_total == plan.received_total


def test_a_margin_of_the_policy_goes_before_that_of_the_counter(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('version = 1\nname = "own"\n[budget]\nmargin = 500\n', "utf-8")
    budget = made().plan_sync(request("gpt-4o"), 8_000, load(str(tmp_path / "own.toml"))).budget
    assert (budget.reserve, budget.margin, budget.limit) == (1_000, 500, 6_500)


@pytest.mark.parametrize("deep", ["[" * 600 + "]" * 600, '[{"name":"f","x":' + "[" * 600 + "]" * 600 + "}]"])
@pytest.mark.parametrize("field", ["tools", "functions"])
def test_what_is_nested_too_deep_to_be_counted_is_the_clients_fault(field: str, deep: str) -> None:
    asked = f'{{"model":"gpt-4o","messages":[{{"role":"user","content":"hi"}}],"{field}":{deep}}}'
    with pytest.raises(BadRequest, match=r"nested deeper|must be an object"):
        made().plan_sync(ChatRequest.parse(asked.encode()), 4_000)
