import json

from proxy import ranks
from proxy.cli.demo_data import RULE, STORY, SYSTEM, size
from proxy.cli.demo_tools import ANSWERS, TOOLS, run


def test_forty_turns_use_all_twelve_tools_with_their_own_parameters() -> None:
    assert len(STORY) == 40
    assert {step.tool for step in STORY} == set(ANSWERS)
    parameters = {tool["function"]["name"]: set(tool["function"]["parameters"]["properties"]) for tool in TOOLS}
    assert all(set(step.arguments) <= parameters[step.tool] for step in STORY)


def test_questions_tell_turns_apart() -> None:
    questions = [step.asks for step in STORY]
    assert not [(a, b) for a in questions for b in questions if a is not b and a in b]


def test_the_rule_stands_in_the_system_text() -> None:
    assert SYSTEM.endswith(RULE)


def test_tools_dominate_at_first_and_results_at_last() -> None:
    tokens = ranks.load("o200k_base").count
    results = [tokens(run(step.tool, step.arguments, size(turn))) for turn, step in enumerate(STORY, 1)]
    tools = tokens(json.dumps(TOOLS))
    assert results[0] * 4 < tools
    assert sum(results) > 20 * tools
