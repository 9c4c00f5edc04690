"""Policies on the command line, as a user runs it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.wrong_policies import GOOD, WRONG

COMMAND = [sys.executable, "-m", "proxy.cli.main"]

OWN = (
    GOOD.replace("enter = 0.75", "enter = { small = 0.9, large = 0.7 }")
    + """
[budget]
window = 16000
margin = 64
[[buckets]]
role = "system"
match = '^\\[MEMORY\\]'
bucket = "memory"
[[steps]]
use = "project"
rules = [{ tool = "track*", jmespath = "{id: id}" }]
[[steps]]
use = "elide"
[[route]]
model = "gpt-*"
policy = "frugal"
"""
)


def edgewise(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, encoding="utf-8", check=False)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.toml"
    path.write_text(OWN, "utf-8")
    return path


def test_a_valid_policy_is_told_in_the_order_in_which_it_runs(own: Path) -> None:
    done = edgewise("check", str(own))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "policy own is valid",
        "  on_refuse = error",
        "  window = 16000",
        "  margin = 64",
        "  level tool_results: enter 0.9 (much room: 0.7), free to 0.3 (0.3)",
        "  level history: enter 0.95, free to 0.6",
        "  level topics: enter 0.97, free to 0.6",
        "  level emergency: enter 1, free to 0.75",
        r"  bucket 0: role = system, match = ^\[MEMORY\], bucket = memory, priority = 0",
        "  step 0 project: rules = [{tool = track*, jmespath = {id: id}, regex = , columns = []}], when = pressure, "
        "level = tool_results",
        "  step 1 elide: keep_rounds = [5, 3, 2, 1], first_tokens = 500, digest_tokens = 480, digest_share = 0.25, "
        "recent_to = 0.3, recent_to_small = 0.5, read_only = [], level = tool_results",
        "  route 0: policy = frugal, model = gpt-*, tenant = *",
    ]


def test_a_policy_against_the_window_says_so() -> None:
    assert "  levels are of the whole window" in edgewise("check", "classic").stdout.splitlines()


@pytest.mark.parametrize(
    "kind", ["not TOML", "misspelt key", "level that frees nothing", "pattern that is none", "misspelt step"]
)
@pytest.mark.parametrize("command", ["check", "policies", "serve"])
def test_a_wrong_policy_is_one_line_and_exit_code_2(tmp_path: Path, kind: str, command: str) -> None:
    text, message = WRONG[kind]
    path = tmp_path / "own.toml"
    path.write_text(text, "utf-8")
    done = edgewise(command, *(["--port", "0", "--policy"] if command == "serve" else []), str(path))
    assert (done.returncode, done.stdout if command != "policies" else "") == (2, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"edgewise: {path}: {message}")


def test_a_route_is_followed_when_a_policy_is_checked(own: Path) -> None:
    own.write_text(OWN.replace('policy = "frugal"', 'policy = "gone.toml"'), "utf-8")
    done = edgewise("check", str(own))
    assert done.returncode == 2
    assert f"{own}: route[0]: policy 'gone.toml': there is no preset and no file of that name" in done.stderr


def test_the_presets_and_given_files_are_listed_step_by_step(own: Path) -> None:
    done = edgewise("policies", str(own))
    heads = [line.split("  ") for line in done.stdout.splitlines() if line and not line.startswith(" ")]
    assert [name for name, _ in heads] == ["balanced", "classic", "frugal", "lossless", "own"]
    assert heads[-1][1] == str(own)
    assert done.stdout.rstrip().endswith(
        "   2 elide    keep_rounds = [5, 3, 2, 1], first_tokens = 500, digest_tokens = 480, digest_share = 0.25, "
        "recent_to = 0.3, recent_to_small = 0.5, read_only = [], level = tool_results"
    )


def test_policies_are_listed_as_objects_too() -> None:
    told = {one["name"]: one for one in map(json.loads, edgewise("policies", "--json").stdout.splitlines())}
    assert told["lossless"]["source"].endswith("lossless.toml")
    assert told["lossless"]["steps"] == [
        {"use": "minify-json", "when": "pressure", "level": "tool_results"},
        {"use": "tabulate", "when": "pressure", "level": "tool_results"},
    ]
