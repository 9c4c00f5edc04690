"""What is installed is this project, whole, and within its size.

`make test` sets EDGEWISE_WHEEL=1 after it has installed the wheel; otherwise the project may be installed editable.
"""

import os
import re
import tomllib
from importlib.metadata import Distribution, distribution
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import policies
import proxy

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ["requirements.lock", "requirements-build.lock", "requirements-image.lock", "requirements-dev.lock"]
PIN = re.compile(r"^([a-z0-9.-]+)==([^ ;]+)", re.MULTILINE)
wheel_only = pytest.mark.skipif(
    os.environ.get("EDGEWISE_WHEEL") != "1", reason="only `make test` promises that the wheel is what is installed"
)


@pytest.fixture
def edgewise() -> Distribution:
    return distribution("edgewise")


@pytest.fixture
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def pins(lock: str) -> dict[str, Version]:
    return {name: Version(version) for name, version in PIN.findall((ROOT / lock).read_text("utf-8"))}


@wheel_only
@pytest.mark.parametrize("package", [proxy, policies])
def test_both_packages_are_those_of_the_installed_wheel(package: ModuleType, edgewise: Distribution) -> None:
    inside = f"{package.__name__}/__init__.py"
    assert package.__file__ is not None
    assert Path(package.__file__).samefile(str(edgewise.locate_file(inside)))
    assert "site-packages" in Path(package.__file__).parts
    assert inside in {str(path) for path in edgewise.files or []}


@pytest.mark.parametrize("package", [proxy, policies])
def test_neither_package_is_that_of_another_distribution(package: ModuleType) -> None:
    assert package.__file__ is not None
    installed = Path(package.__file__)
    assert installed.read_bytes() == (ROOT / package.__name__ / "__init__.py").read_bytes()
    assert not hasattr(proxy, "Proxy"), "this is the package of the distribution proxy.py"


@wheel_only
def test_the_wheel_carries_every_file_of_both_packages(edgewise: Distribution) -> None:
    shipped = {str(path) for path in edgewise.files or [] if path.parts[0] in {"proxy", "policies"}}
    paths = [path for name in ("proxy", "policies") for path in (ROOT / name).rglob("*") if path.is_file()]
    expected = {str(path.relative_to(ROOT)) for path in paths if "__pycache__" not in path.parts}
    assert {path for path in shipped if "__pycache__" not in path} == expected


@wheel_only
def test_the_wheel_is_at_most_3_megabytes() -> None:
    (wheel,) = (ROOT / "dist").glob("edgewise-*.whl")
    assert wheel.stat().st_size <= 3_000_000


@wheel_only
def test_the_wheel_carries_its_licence_and_the_notices_of_what_it_contains(edgewise: Distribution) -> None:
    assert edgewise.metadata["License-Expression"] == "Apache-2.0"
    for name in ("LICENSE", "NOTICE"):
        assert edgewise.read_text(f"licenses/{name}") == (ROOT / name).read_text("utf-8")


@pytest.mark.parametrize("package", ["proxy", "policies"])
def test_types_are_shipped(package: str) -> None:
    assert files(package).joinpath("py.typed").is_file()


def test_the_command_is_called_edgewise(edgewise: Distribution) -> None:
    assert [(entry.name, entry.value) for entry in edgewise.entry_points] == [("edgewise", "proxy.cli.main:main")]


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_package_has_a_hash_and_no_address(lock: str) -> None:
    text = (ROOT / lock).read_text("utf-8")
    assert re.findall(r"^\S+==[^\\]*$", text, re.MULTILINE) == []
    assert len(PIN.findall(text)) == len(
        re.findall(r"^\S+==[^\n]*\\\n +--hash=sha256:[0-9a-f]{64}", text, re.MULTILINE)
    )
    assert "://" not in text


def test_the_locks_agree_on_every_version() -> None:
    locked = pins("requirements-dev.lock")
    for lock in LOCKS:
        assert {name: locked[name] for name in pins(lock)} == pins(lock)
    assert pins("requirements-image.lock").items() >= pins("requirements.lock").items()


def test_the_runtime_lock_answers_every_dependency(project: dict[str, Any]) -> None:
    locked = pins("requirements.lock")
    for dependency in map(Requirement, project["project"]["dependencies"]):
        assert locked[canonicalize_name(dependency.name)] in dependency.specifier, dependency


def test_the_changelog_knows_this_version(project: dict[str, Any]) -> None:
    assert f"## [{project['project']['version']}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")
