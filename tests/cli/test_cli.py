"""The command as a user runs it: a program of its own, real files, real pipes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.plans import hopeless, long, small

COMMAND = [sys.executable, "-m", "proxy.cli.main"]
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith(("EDGEWISE_", "PYTHON"))}
HEARING = (  # a job in the background is started deaf to interrupts
    "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "runpy.run_module('proxy.cli.main', run_name='__main__', alter_sys=True)"
)


def edgewise(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*COMMAND, *arguments], input=stdin, capture_output=True, check=False, env=ENVIRONMENT)


@pytest.fixture
def one(tmp_path: Path) -> str:
    path = tmp_path / "one.json"
    path.write_bytes(json.dumps(json.loads(small().body), indent=2).encode())
    return str(path)


@pytest.fixture
def many(tmp_path: Path) -> str:
    path = tmp_path / "many.jsonl"
    path.write_bytes(b"\n".join([small().body, long().body, small().body]))
    return str(path)


def test_a_count_is_a_table_with_its_total(one: str) -> None:
    done = edgewise("count", one)
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    assert text.splitlines()[0].startswith(f"{one} · gpt-4o · counted by openai/o200k_base · exact · limit ")
    assert text.split()[-2:] == ["total", "57"]
    assert "\x1b" not in text


def test_a_count_of_standard_input_is_one_object_with_json(one: str) -> None:
    done = edgewise("count", "-", "--json", stdin=Path(one).read_bytes())
    told = json.loads(done.stdout)
    assert {"total", "limit", "exact", "buckets", "spans"} <= set(told)
    assert (told["total"], told["exact"], sum(told["buckets"].values())) == (57, True, 57)


def test_a_plan_prints_one_object_a_line_and_all_fit(many: str) -> None:
    done = edgewise("plan", many, "--window", "4000", "--json")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (0, b"")
    assert [plan["edited"] for plan in told] == [False, True, False]
    assert all(sum(plan["sent"].values()) <= plan["limit"] for plan in told)
    assert told[0]["request"] == json.loads(small().body)


def test_a_plan_is_a_table_of_before_and_after(many: str) -> None:
    text = edgewise("plan", many, "--window", "4000").stdout.decode()
    assert "elide: " in text
    assert "· level " in text


def test_what_cannot_fit_is_code_1_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "big.json"
    path.write_bytes(hopeless().body)
    done = edgewise("plan", str(path), "--window", "4000")
    assert done.returncode == 1
    assert "cannot fit: This model's maximum context length is 4000 tokens" in done.stdout.decode()
    assert done.stderr.decode() == f"edgewise: {path}: cannot be made to fit 3,457 tokens\n"
    told = json.loads(edgewise("plan", str(path), "--window", "4000", "--json").stdout)
    assert told["error"]["code"] == "context_length_exceeded"


def test_a_request_that_cannot_be_read_is_code_1_and_the_others_are_shown() -> None:
    done = edgewise("count", "-", "--json", stdin=small().body + b"\n{oops\n" + small().body)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert [plan.get("total") for plan in told] == [57, None, 57]
    assert done.stderr.decode().startswith("edgewise: stdin:2: ")


def test_an_unknown_window_is_told_and_nothing_is_cut() -> None:
    done = edgewise("plan", "-", stdin=small(model="nobody-knows").body)
    assert done.returncode == 0
    assert "the window of model 'nobody-knows' is not known; give --window N" in done.stderr.decode()
    assert "level unknown" in done.stdout.decode()


def test_a_valid_policy_is_described() -> None:
    done = edgewise("check", "balanced")
    assert done.returncode == 0
    assert done.stdout.decode().startswith("policy balanced is valid\n")
    assert "fold-json: over_tokens = 8000" in done.stdout.decode()


def test_an_invalid_policy_is_code_2_with_place_fault_and_remedy(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('version = 1\nname = "own"\n[budget]\nwindw = 3\n', "utf-8")
    done = edgewise("check", str(path))
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == f"edgewise: {path}: [budget]: unknown key 'windw'; did you mean 'window'?\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("count", "no-such-file"), "no-such-file: No such file or directory; give a file that can be read, or -"),
        (("count", "."), ".: Is a directory; give a file"),
        (("plan", "-", "--policy", "balansed"), "did you mean 'balanced'?"),
        (("plan", "-", "--window", "0"), "'0' is not a number of tokens above 0"),
        (("serve", "--upstream", "ftp://x"), "EDGEWISE_UPSTREAM"),
        (("serve", "--policy", "nowhere.toml"), "policy 'nowhere.toml'"),
        ((), "COMMAND"),
    ],
)
def test_wrong_usage_is_code_2_with_a_message(arguments: tuple[str, ...], said: str) -> None:
    done = edgewise(*arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert said in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()


def test_the_version_and_the_exit_codes_can_be_asked_for() -> None:
    assert edgewise("--version").stdout == b"edgewise 0.1.0\n"
    assert "exit codes:" in edgewise("--help").stdout.decode()


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    path.write_bytes(b"\n".join([long().body] * 100))
    with subprocess.Popen(
        [*COMMAND, "count", str(path), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.read(10)
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 141


def test_an_interrupt_is_code_130_without_a_traceback() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HEARING, "count", "-", "--json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdin.write(small().body + b"\n")
        running.stdin.flush()
        assert running.stdout.readline().startswith(b'{"total":57')
        running.send_signal(signal.SIGINT)
        assert running.stderr.read() == b""
    assert running.returncode == 130


def test_the_demo_shows_turns_and_ends_with_a_summary() -> None:
    done = edgewise("demo", "--window", "12000")
    text = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    assert "   1 as it came " in text
    assert "  40 received " in text
    assert "0 went on with more." in text
    assert text.endswith("Every prompt sent held the rule of the system text and the question that was asked.\n")
