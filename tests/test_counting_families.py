"""Models are told apart by their names."""

import pytest

from policies.counting.families import family_of, plain
from policies.counting.images import Patches, Tiles


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4o-2024-08-06", "o200k_base"),
        ("openai/gpt-4o-mini", "o200k_base"),
        ("openrouter/openai/gpt-5", "o200k_base"),
        ("ft:gpt-4.1-mini-2025-04-14:acme::abc", "o200k_base"),
        ("ft:gpt-3.5-turbo:acme::abc", "cl100k_base"),
        ("chatgpt-4o-latest", "o200k_base"),
        ("GPT-4-0613", "cl100k_base"),
        ("gpt-4-turbo-preview", "cl100k_base"),
        ("gpt-35-turbo", "cl100k_base"),
        ("o3-mini", "o200k_base"),
    ],
)
def test_the_encoding_of_a_model(model: str, encoding: str) -> None:
    family = family_of(model)
    assert family is not None
    assert family.encoding == encoding


@pytest.mark.parametrize("model", ["", "claude-sonnet-4", "gpt-oss-120b", "openai/gpt-oss-20b", "llama", "ft:", "/"])
def test_other_models_have_no_family(model: str) -> None:
    assert family_of(model) is None


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("gpt-4o", 425),
        ("gpt-4o-mini", 14_167),
        ("gpt-4.1-mini", 488),
        ("gpt-4.1-nano", 739),
        ("gpt-5", 350),
        ("gpt-5-mini", 361),
        ("gpt-5-nano", 451),
        ("gpt-5.4", 361),
        ("gpt-5.1", 350),
        ("o1", 375),
        ("o4-mini", 517),
    ],
)
def test_the_cost_of_an_image_of_640_by_480(model: str, tokens: int) -> None:
    family = family_of(model)
    assert family is not None
    assert isinstance(family.images, Tiles | Patches)
    assert family.images.tokens(640, 480, low=False) == tokens


def test_prefixes_and_customers_are_taken_off() -> None:
    assert plain(" OpenAI/GPT-4o ") == "gpt-4o"
    assert plain("ft:gpt-4o:acme:name:id") == "gpt-4o"
