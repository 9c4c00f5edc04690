import json
from argparse import Namespace
from typing import Any

import pytest

from policies.request import ChatRequest
from proxy.cli.demo import Model, demo
from proxy.cli.demo_data import RULE, STORY


@pytest.fixture(scope="module")
def told() -> list[Any]:
    """One whole demo, as JSON."""
    with pytest.MonkeyPatch.context() as patch:
        lines: list[str] = []
        patch.setattr("builtins.print", lambda line, **_: lines.append(line))
        assert demo(Namespace(window=16_000, json=True)) == 0
    return [json.loads(line) for line in lines]


def heaviest(turn: Any) -> str:
    buckets: dict[str, int] = turn["received"]
    return max(buckets, key=lambda name: buckets[name])


def test_tools_dominate_the_first_turn_and_tool_results_the_last(told: list[Any]) -> None:
    assert [turn["turn"] for turn in told[:-1]] == list(range(1, 41))
    assert (heaviest(told[0]), heaviest(told[39])) == ("tools", "tool_results")


def test_every_turn_fits_and_adds_up(told: list[Any]) -> None:
    for turn in told[:-1]:
        assert sum(turn["received"].values()) == turn["received_total"]
        assert sum(turn["sent"].values()) == turn["sent_total"] <= turn["limit"]


def test_early_turns_are_untouched_and_late_ones_are_cut(told: list[Any]) -> None:
    assert {turn["outcome"] for turn in told[:10]} == {"untouched"}
    assert {turn["outcome"] for turn in told[30:40]} == {"edited"}


def test_the_summary_holds_the_promises(told: list[Any]) -> None:
    summary = told[-1]["summary"]
    assert summary["sent_over_limit"] == 0
    assert summary["received_over_limit"] > 10
    assert summary["rule_and_question_always_sent"] is True


def answer(*messages: dict[str, Any]) -> tuple[Model, str]:
    model = Model()
    request = ChatRequest.parse(json.dumps({"messages": messages}).encode())
    return model, model.answer(request, 0).text


def test_the_model_notices_when_the_rule_or_the_question_is_gone() -> None:
    asked = {"role": "user", "content": STORY[3].asks}
    model, _ = answer(asked)
    assert (model.kept_rule, model.kept_task) == (False, True)
    model, said = answer({"role": "system", "content": RULE}, {"role": "user", "content": "?"})
    assert (model.kept_rule, model.kept_task) == (True, False)
    assert said == "I do not know what I was asked."
