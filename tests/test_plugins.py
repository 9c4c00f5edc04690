"""Steps of other packages: the documented example, installed as a user would, and packages that are broken."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path

import pytest
from support.prompts import body, lines, round_of, system, user

from policies.policy import PolicyError
from proxy.plugins import find_step
from proxy.policyfile import load

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "edgewise-step-drop-lines"
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a package on the path as an installer leaves it: a module, and metadata with an entry point."""
    monkeypatch.syspath_prepend(tmp_path)

    def put(package: str, step: str, value: str, **modules: str) -> None:
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", "utf-8")
        (info / "entry_points.txt").write_text(f"[edgewise.steps]\n{step} = {value}\n", "utf-8")
        for name, text in modules.items():
            (tmp_path / f"{name}.py").write_text(text, "utf-8")

    return put


def test_a_step_that_no_package_has_is_none() -> None:
    assert find_step("nobody-has-this") is None


def test_only_the_step_that_is_named_is_imported(install: Install) -> None:
    install("good", "good-one", "good_step:VALUE", good_step="VALUE = 7\n")
    install("bad", "bad-one", "bad_step:VALUE", bad_step="raise RuntimeError('imported')\n")
    assert find_step("good-one") == 7
    assert "bad_step" not in sys.modules


def test_two_packages_with_one_name_are_told(install: Install) -> None:
    install("first", "same", "first_step:VALUE")
    install("second", "same", "second_step:VALUE")
    with pytest.raises(ValueError, match=r"several packages have a step of this name \(first, second\)"):
        find_step("same")


def test_a_package_that_cannot_be_imported_is_a_fault_of_the_policy(install: Install, tmp_path: Path) -> None:
    install("bad", "bad-one", "bad_step:VALUE", bad_step="import nothing_of_this_name\n")
    (tmp_path / "own.toml").write_text('version = 1\nname = "own"\n[[steps]]\nuse = "bad-one"\n', "utf-8")
    with pytest.raises(
        PolicyError, match=r"steps\[0\]: step 'bad-one' cannot be imported: ModuleNotFoundError: No module"
    ):
        load(str(tmp_path / "own.toml"))


def edgewise(site: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    command = [sys.executable, "-m", "proxy.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, check=False, env=environment)


def test_the_documented_example_is_installed_and_does_what_it_says(tmp_path: Path) -> None:
    site = tmp_path / "site"
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--quiet", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "install", *offline, "--target", str(site), str(EXAMPLE)]
    subprocess.run(pip, check=True, capture_output=True)
    log = "\n".join(f"DEBUG {line}\nINFO {line}" for line in lines(60).splitlines())
    request = tmp_path / "one.json"
    request.write_bytes(body([system("Be brief."), user("Find it."), *round_of(0, log), user("And now?")]))
    policy = str(EXAMPLE / "policy.toml")
    assert edgewise(site, "check", policy).returncode == 0
    done = edgewise(site, "plan", str(request), "--window", "1700", "--policy", policy, "--json")
    plan = json.loads(done.stdout)
    (decision,) = [one for one in plan["decisions"] if one["step"] == "drop-lines"]
    assert (decision["outcome"], decision["because"]) == ("applied", "60 lines of no interest")
    result = plan["request"]["messages"][3]["content"]
    assert "DEBUG station" not in result
    assert result.endswith("[… 60 lines with DEBUG are not shown]")
    assert edgewise(tmp_path, "check", policy).returncode == 2  # without the package


def test_the_example_names_the_product_it_is_for() -> None:
    assert f'dependencies = ["{distribution("edgewise").name}"]' in (EXAMPLE / "pyproject.toml").read_text("utf-8")
