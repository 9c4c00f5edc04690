"""Estimates: a stretch and a preamble, never exact."""

import pytest
from support.characters import Characters
from support.recorded import png, prompt_of

from policies.counting.estimate import UNKNOWN, EstimateCounter, Prior, prior_of
from policies.counting.images import Area

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
    assert (facts.tokens, facts.exact) == (24, True)  # there is no media in it whose size is not known
    assert ours.facts(prompt.messages[0]) is facts
    assert ours.new_bytes(prompt) == 0
    assert ours.text("four") == 8


def test_reasoning_that_is_sent_back_is_counted() -> None:
    silent = {"role": "assistant", "content": "hi"}
    prompt = prompt_of({"model": "m", "messages": [silent, {**silent, "reasoning_content": "because"}]})
    first, second = EstimateCounter(UNKNOWN, Characters()).bill(prompt).messages
    assert second > first


def test_what_is_added_to_each_message_and_tool_is_in_the_bill_and_in_the_facts() -> None:
    prompt = prompt_of({"model": "m", "messages": [USER], "tools": [TOOL]})
    ours = EstimateCounter(Prior("made", 1.0, 0, 0, 1.0, each=-4.0, per_tool=30), Characters())
    bill = ours.bill(prompt)
    assert bill.messages == (3 + len("user") + len("hello") - 4,)
    assert bill.tools == (len(";\n\ntype f = () => any") + 30,)
    assert ours.facts(prompt.messages[0]).tokens == bill.messages[0]


def test_no_message_costs_less_than_a_token() -> None:
    prompt = prompt_of({"model": "m", "messages": [USER]})
    assert EstimateCounter(Prior("made", 1.0, 0, 0, 1.0, each=-90.0), Characters()).bill(prompt).messages == (1,)


def signed(length: int) -> dict[str, object]:
    google = {"google": {"thought_signature": "s" * length}}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": google}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def test_thoughts_that_are_sent_back_encrypted_are_counted_by_their_length() -> None:
    ours = EstimateCounter(Prior("made", 1.0, 0, 0, 1.0, sealed=0.5), Characters())
    prompt = prompt_of({"model": "m", "messages": [USER, signed(200), signed(1_200)]})
    plain, short, long = (ours.facts(item) for item in prompt.messages)
    assert (plain.sealed, short.sealed, long.sealed) == (0, 0, 500)
    assert long.tokens == short.tokens + 500
    messages = ours.bill(prompt).messages
    assert messages[2] == messages[1] + 500


def test_where_no_thoughts_are_billed_none_are_looked_for() -> None:
    prompt = prompt_of({"model": "m", "messages": [signed(1_200)]})
    assert counter().facts(prompt.messages[0]).sealed == 0


def test_images_and_documents_cost_what_they_cost_the_family() -> None:
    parts = [{"type": "image_url", "image_url": {"url": png(300, 100)}}, {"type": "file", "file": {}}]
    prompt = prompt_of({"model": "m", "messages": [{"role": "user", "content": parts}]})
    ours = EstimateCounter(Prior("made", 1.0, 0, 0, 1.0, images=Area(750, 1_600), document=1_600), Characters())
    facts = ours.facts(prompt.messages[0])
    assert (facts.tokens, facts.exact, facts.media) == (
        3 + len("user") + 40 + 1_600 + 1,
        False,
        True,
    )  # 1: of its bytes
