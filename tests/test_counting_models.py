"""Each model gets the counter of its rules, and equal rules share one."""

from support.characters import Characters

from policies.counting import Encoding
from policies.counting.models import Counters, counter_for


def load(_name: str) -> Encoding:
    return Characters()


def test_openai_models_get_the_exact_rules() -> None:
    assert counter_for("gpt-4o", load).name == "openai/characters"


def test_other_models_get_an_estimate_that_says_so() -> None:
    assert counter_for("anthropic/claude-sonnet-4", load).name == "estimate/claude"
    assert counter_for("my-model", load).name == "estimate"


def test_only_the_encoding_that_is_needed_is_loaded() -> None:
    asked: list[str] = []

    def noting(name: str) -> Encoding:
        asked.append(name)
        return Characters()

    counters = Counters(noting)
    for model in ("gpt-4o", "gpt-4o-2024-08-06", "chatgpt-4o-latest", "gpt-4", "claude-opus-4"):
        counters.of(model)
    assert asked == ["o200k_base", "cl100k_base", "o200k_base"]


def test_models_of_equal_rules_share_a_counter() -> None:
    counters = Counters(load)
    assert counters.of("gpt-4o") is counters.of("openai/gpt-4o-2024-08-06")
    assert counters.of("claude-opus-4") is counters.of("claude-sonnet-4")
    assert counters.of("gpt-4o") is not counters.of("gpt-4o-mini")
