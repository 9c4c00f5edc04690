"""Windows: the shipped table answers to the names that clients use, and to no others."""

import json
import lzma
import sys
import zipfile
from pathlib import Path

import pytest
from support.shared import ROOT

from policies.counting.windows import Table, Window, names, table_of, window_of
from proxy.discovery import shipped_table

sys.path.insert(0, str(ROOT / "tools"))
import build_windows  # a script, not part of a package

TABLE: Table = {
    "gpt-4o": (128_000, 16_384),
    "gpt-4": (8_192, 4_096),
    "gpt-5": (272_000, 128_000),
    "claude-sonnet-4-5": (200_000, 64_000),
    "slowhost/gpt-4o": (64_000, 4_096),
}


@pytest.fixture(scope="module")
def shipped() -> Table:
    return shipped_table()


@pytest.mark.parametrize(
    "model",
    [
        "gpt-4o",
        "GPT-4o",
        "openai/gpt-4o",
        "openrouter/openai/gpt-4o",
        "gpt-4o-2024-11-20",
        "gpt-4o:free",
        "gpt-4o-latest",
        "ft:gpt-4o-2024-08-06:acme::abc123",
    ],
)
def test_vendor_date_and_variant_are_taken_off(model: str) -> None:
    assert window_of(model, {}, TABLE) == Window(128_000, "table")


@pytest.mark.parametrize(
    "model",
    ["anthropic/claude-sonnet-4.5", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5@20250929"],
)
def test_clouds_and_routers_spell_one_model_in_their_own_ways(model: str) -> None:
    assert window_of(model, {}, TABLE) == Window(200_000, "table")


@pytest.mark.parametrize("model", ["gpt-4-turbo", "gpt-4o-mini", "gpt", "qwen3:8b", "", "my-deployment", "x" * 5_000])
def test_a_window_that_is_not_known_is_never_guessed(model: str) -> None:
    assert window_of(model, {}, TABLE) is None


def test_the_longest_name_that_is_known_wins() -> None:
    assert window_of("slowhost/gpt-4o-2024-11-20", {}, TABLE) == Window(64_000, "table")
    assert list(names("a/b-2024-01-01")) == ["a/b-2024-01-01", "a/b", "b-2024-01-01", "b"]


def test_overrides_stand_above_the_table_and_the_longest_glob_wins() -> None:
    overrides = {"*": 4_000, "GPT-*": 9_000, "gpt-4o": 7_000}
    assert window_of("gpt-4o", overrides, TABLE) == Window(7_000, "override")
    assert window_of("gpt-4", overrides, TABLE) == Window(9_000, "override")
    assert window_of("nobody-knows", overrides, TABLE) == Window(4_000, "override")


def test_an_answer_bounded_apart_from_the_prompt_stands_beside_the_window() -> None:
    split: Table = {"gpt-5": (272_000, 128_000), "gemini-2-5-pro": (1_048_576, 65_536)}
    assert window_of("gpt-5", {}, split) == Window(272_000, "table", beside=128_000)
    assert window_of("google/gemini-2.5-pro", {}, split) == Window(1_048_576, "table", beside=65_536)


def test_an_answer_as_long_as_the_window_shares_it() -> None:
    assert window_of("gemini-4", {}, {"gemini-4": (1_048_576, 1_048_576)}) == Window(1_048_576, "table")


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("gpt-4o-mini", 128_000),
        ("gpt-4", 8_192),
        ("gpt-4.1", 1_047_576),
        ("o3-mini", 200_000),
        ("gpt-5.1", 272_000),
        ("claude-haiku-4-5", 200_000),
        ("mistral/mistral-large-latest", 262_144),
    ],
)
def test_the_shipped_table_knows_the_models_people_use(shipped: Table, model: str, tokens: int) -> None:
    window = window_of(model, {}, shipped)
    assert window is not None
    assert window.tokens == tokens


def test_the_shipped_table_stays_small() -> None:
    assert (ROOT / "proxy/data/windows.json.xz").stat().st_size < 24_000


def test_the_table_is_slimmed_to_chat_models_and_says_nothing_twice() -> None:
    listed: dict[str, dict[str, object]] = {
        "sample_spec": {"mode": "one of: chat, ...", "max_input_tokens": "text"},
        "gpt-4o": _chat("openai", 128_000, 16_384),
        "gpt-4o-2024-11-20": _chat("openai", 128_000, 16_384),
        "gpt-4o-2024-05-13": _chat("openai", 64_000, 4_096),
        "copilot/gpt-4o": _chat("copilot", 64_000, 4_096),
        "gpt-5.5": _chat("openai", 1_050_000, 128_000),
        "embed-1": {"mode": "embedding", "max_input_tokens": 8_192},
        "ollama/llama3": _chat("ollama", 8_192, 8_192),
        "one/llama": _chat("one", 131_072, None),
        "two/llama": _chat("two", 128_000, 128_000),
        "one/mixed": _chat("one", 131_072, 4_096),
        "two/mixed": _chat("two", 32_768, 4_096),
    }
    assert build_windows.slim(listed) == {
        "copilot/gpt-4o": (64_000, 4_096),
        "gpt-4o": (128_000, 16_384),
        "gpt-4o-2024-05-13": (64_000, 4_096),
        "gpt-5-5": (922_000, 128_000),
        "llama": (128_000, 128_000),
        "one/llama": (131_072, 0),
        "one/mixed": (131_072, 4_096),
        "two/mixed": (32_768, 4_096),
    }


def test_packing_a_wheel_gives_a_table_that_reads_back(tmp_path: Path) -> None:
    wheel, target = tmp_path / "listed.whl", tmp_path / "windows.json.xz"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"litellm/{build_windows.LISTED}", json.dumps({"gpt-4o": _chat("openai", 128_000, 16_384)}))
    assert build_windows.main([str(wheel), str(target)]) == 0
    assert table_of(lzma.decompress(target.read_bytes())) == {"gpt-4o": (128_000, 16_384)}
    assert build_windows.main([]) == 2


def _chat(host: str, most_in: int, most_out: int | None) -> dict[str, object]:
    return {"mode": "chat", "litellm_provider": host, "max_input_tokens": most_in, "max_output_tokens": most_out}
