"""Estimates: a stretch and a preamble, never exact."""

import pytest
from support.characters import Characters
from support.recorded import prompt_of

from policies.counting.estimate import UNKNOWN, EstimateCounter, Prior, prior_of

PRIOR = Prior("made", 2.0, 10, 100, 3.0)
TOOL = {"type": "function", "function": {"name": "f"}}
USER = {"role": "user", "content": "hello"}


def counter() -> EstimateCounter:
    return EstimateCounter(PRIOR, Characters())


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("anthropic/claude-3-5-haiku", "claude"),
        ("claude-opus-4-8", "claude"),
        ("google/gemini-2.5-flash", "gemini"),
        ("mistralai/Mistral-Nemo", "mistral"),
        ("meta-llama/llama-4-scout", "llama"),
        ("deepseek-r1-distill-llama-70b", "deepseek"),
        ("Qwen/Qwen3-32B", "qwen"),
        ("openai/gpt-oss-120b", "gpt-oss"),
        ("something", ""),
    ],
)
def test_the_prior_of_a_model(model: str, name: str) -> None:
    assert prior_of(model).name == name


def test_newer_claude_models_stretch_more() -> None:
    assert prior_of("claude-sonnet-5").slope > prior_of("claude-sonnet-4-5").slope


def test_messages_are_stretched_and_the_constant_is_overhead() -> None:
    bill = counter().bill(prompt_of({"model": "m", "messages": [USER]}))
    assert bill.messages == (2 * (3 + len("user") + len("hello")),)
    assert (bill.overhead, bill.exact) == (10, False)


def test_tools_bring_a_preamble() -> None:
    plain = counter().bill(prompt_of({"model": "m", "messages": [USER]}))
    tooled = counter().bill(prompt_of({"model": "m", "messages": [USER], "tools": [TOOL]}))
    assert tooled.tools == (3 * len(";\n\ntype f = () => any"),)
    assert tooled.overhead > plain.overhead + 100
    legacy = counter().bill(prompt_of({"model": "m", "messages": [USER], "functions": [TOOL["function"]]}))
    assert legacy.overhead > plain.overhead + 100


def test_facts_and_texts_are_stretched_and_remembered() -> None:
    prompt = prompt_of({"model": "m", "messages": [USER]})
    ours = counter()
    assert ours.new_bytes(prompt) == len(prompt.messages[0].raw)
    facts = ours.facts(prompt.messages[0])
    assert (facts.tokens, facts.exact) == (24, False)
    assert ours.facts(prompt.messages[0]) is facts
    assert ours.new_bytes(prompt) == 0
    assert ours.text("four") == 8


def test_reasoning_that_is_sent_back_is_counted() -> None:
    silent = {"role": "assistant", "content": "hi"}
    prompt = prompt_of({"model": "m", "messages": [silent, {**silent, "reasoning_content": "because"}]})
    first, second = EstimateCounter(UNKNOWN, Characters()).bill(prompt).messages
    assert second > first
