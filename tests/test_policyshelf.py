from pathlib import Path

import pytest

from policies.policy import PolicyError
from proxy.errors import Refusal
from proxy.policyshelf import Shelf

OWN = 'version = 1\nname = "own"\n'
TENANT = "0123abcd" * 4


def shelf(folder: Path, routes: str = "", allowed: tuple[str, ...] = ()) -> Shelf:
    (folder / "own.toml").write_text(OWN + routes, "utf-8")
    (folder / "careful.toml").write_text('version = 1\nname = "careful"\n', "utf-8")
    return Shelf.load(str(folder / "own.toml"), allowed)


def test_without_routes_one_policy_plans_everything(tmp_path: Path) -> None:
    assert shelf(tmp_path).choose("gpt-4o", TENANT, None).name == "own"
    assert Shelf.load("balanced").choose("gpt-4o", TENANT, None).name == "balanced"


@pytest.mark.parametrize(
    ("model", "tenant", "name"),
    [
        ("gpt-4o", TENANT, "careful"),
        ("gpt-4o", "f" * 32, "frugal"),
        ("qwen3", TENANT, "classic"),
        ("qwen3", "f" * 32, "own"),
    ],
)
def test_the_first_route_that_fits_model_and_tenant_counts(tmp_path: Path, model: str, tenant: str, name: str) -> None:
    routes = """
        [[route]]
        model = "gpt-*"
        tenant = "0123"
        policy = "careful.toml"
        [[route]]
        model = "gpt-*"
        policy = "frugal"
        [[route]]
        tenant = "0123abcd"
        policy = "classic"
    """
    assert shelf(tmp_path, routes).choose(model, tenant, None).name == name


def test_a_request_may_ask_for_what_is_allowed_by_its_name(tmp_path: Path) -> None:
    made = shelf(tmp_path, allowed=("frugal", str(tmp_path / "careful.toml")))
    assert [made.choose("m", TENANT, name).name for name in ("frugal", "careful")] == ["frugal", "careful"]
    with pytest.raises(Refusal, match="names no policy that may be asked for; allowed are careful, frugal") as raised:
        made.choose("m", TENANT, "classic")
    assert raised.value.status == 400


def test_where_none_is_allowed_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="none is allowed here"):
        shelf(tmp_path).choose("m", TENANT, "balanced")


def fault(folder: Path, routes: str = "", allowed: tuple[str, ...] = ()) -> str:
    with pytest.raises(PolicyError) as raised:
        shelf(folder, routes, allowed)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_a_route_to_nowhere_and_one_to_another_crossroads_are_told(tmp_path: Path) -> None:
    assert "own.toml: route[0]: policy 'fruga': there is no preset and no file of that name; did you mean" in fault(
        tmp_path, '[[route]]\npolicy = "fruga"\n'
    )
    (tmp_path / "more.toml").write_text(OWN + '[[route]]\npolicy = "frugal"\n', "utf-8")
    assert "route[0]: 'more.toml' has routes of its own" in fault(tmp_path, '[[route]]\npolicy = "more.toml"\n')


def test_two_allowed_policies_of_one_name_are_told(tmp_path: Path) -> None:
    (tmp_path / "twin.toml").write_text('version = 1\nname = "frugal"\n', "utf-8")
    assert fault(tmp_path, allowed=("frugal", str(tmp_path / "twin.toml"))) == (
        "EDGEWISE_POLICIES: two of its policies are called 'frugal'; rename one of them"
    )


def test_all_files_that_were_read_are_known(tmp_path: Path) -> None:
    seen: set[Path] = set()
    shelf(tmp_path)
    (tmp_path / "own.toml").write_text(
        OWN + '[reminder]\nfile = "rules.md"\n[[route]]\npolicy = "careful.toml"\n', "utf-8"
    )
    (tmp_path / "rules.md").write_text("Cite ids.", "utf-8")
    Shelf.load(str(tmp_path / "own.toml"), ("frugal",), seen)
    assert seen == {tmp_path / "own.toml", tmp_path / "rules.md", tmp_path / "careful.toml"}
