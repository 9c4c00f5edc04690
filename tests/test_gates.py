"""The gates hold what they say they hold: each is shown a fault, and the same without it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import audit
import msgspec
import pytest
import sizes

ROOT = Path(__file__).resolve().parent.parent


def findings(text: str) -> audit.Audit:
    return msgspec.json.decode(text, type=audit.Audit)


CLEAN = findings('{"dependencies": [{"name": "brotli", "version": "1.2.0", "vulns": []}]}')
UNKNOWN = '{"name": "attrs", "skip_reason": "Dependency not found on PyPI and could not be audited: attrs (26.4)"}'
VULNERABLE = findings(
    '{"dependencies": [{"name": "jinja2", "version": "2.4.1", "vulns": [{"id": "PYSEC-2014-8", "fix_versions": '
    '["2.7.2"], "aliases": [], "description": ""}]}, {"name": "brotli", "version": "1.2.0", "vulns": []}], "fixes": []}'
)


def test_a_file_of_300_lines_passes_and_one_of_301_does_not() -> None:
    assert list(sizes.oversized("a.py", "x = 1\n" * 300)) == []
    assert list(sizes.oversized("a.py", "x = 1\n" * 301)) == ["a.py: 301 lines, at most 300"]


def test_a_function_of_50_lines_passes_and_one_of_51_does_not() -> None:
    assert list(sizes.oversized("a.py", "def f():\n" + "    x = 1\n" * 49)) == []
    assert list(sizes.oversized("a.py", "y = 2\ndef f():\n" + "    x = 1\n" * 50)) == [
        "a.py:2: f has 51 lines, at most 50"
    ]


def test_a_long_method_and_a_long_async_function_are_found() -> None:
    source = "class A:\n    async def f(self):\n" + "        x = 1\n" * 60
    assert list(sizes.oversized("a.py", source)) == ["a.py:2: f has 61 lines, at most 50"]


def test_the_size_gate_reads_new_files_and_leaves_ignored_ones(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("built/\n")
    (tmp_path / "built").mkdir()
    for name in ("new.py", "built/old.py"):
        (tmp_path / name).write_text("x = 1\n" * 400)
    ran = subprocess.run(
        [sys.executable, ROOT / "tools/sizes.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (1, "new.py: 400 lines, at most 300\n")


def test_a_known_vulnerability_fails_and_says_which_version_mends_it() -> None:
    assert audit.verdict("dev.lock", VULNERABLE) == (
        "audit: dev.lock:\njinja2 2.4.1: PYSEC-2014-8, fixed in: 2.7.2",
        1,
    )


def test_a_lock_without_a_finding_passes() -> None:
    assert audit.verdict("dev.lock", CLEAN) == ("audit: dev.lock: 1 packages, no known vulnerability", 0)


@pytest.mark.parametrize("answer", [None, findings(f'{{"dependencies": [{UNKNOWN}]}}')])
def test_only_a_service_that_knows_nothing_counts_as_out_of_reach(answer: audit.Audit | None) -> None:
    text, code = audit.verdict("dev.lock", answer)
    assert (text.startswith("audit: NOT CHECKED"), code) == (True, 0)


def test_one_unknown_package_among_known_ones_fails() -> None:
    text, code = audit.verdict(
        "dev.lock", audit.Audit(CLEAN.dependencies + findings(f'{{"dependencies": [{UNKNOWN}]}}').dependencies)
    )
    assert code == 1
    assert "attrs" in text


def test_too_old_a_python_is_refused_with_the_version_that_is_needed(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    ran = subprocess.run(
        ["bash", ROOT / "tools/venv.sh", tmp_path / "venv"],
        env={**os.environ, "PYTHON": str(old)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stderr == f"Edgewise needs Python 3.11 or newer; none of these is: {old}\n"


def test_ci_runs_every_gate_and_the_tests() -> None:
    assert re.findall(r"^make (\w+)$", (ROOT / ".ci/run").read_text("utf-8"), re.MULTILINE) == ["gates", "test"]
    gates = re.search(r"^gates: ([\w ]+)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert gates is not None
    assert gates[1].split() == ["style", "types", "layers", "sizes", "containers", "audit"]
