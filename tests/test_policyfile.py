from pathlib import Path

import pytest

from policies.policy import PolicyError
from proxy.policyfile import load, presets

BALANCED = presets()["balanced"].read_text("utf-8")


def test_every_preset_loads_under_its_own_name() -> None:
    assert [load(name).name for name in presets()] == list(presets())


def test_a_file_is_read_with_what_it_names_beside_it(tmp_path: Path) -> None:
    (tmp_path / "rules.md").write_text("Cite ids.\n", "utf-8")
    (tmp_path / "own.toml").write_text(BALANCED + '\n[reminder]\nfile = "rules.md"\n', "utf-8")
    policy = load(str(tmp_path / "own.toml"))
    assert any(getattr(step, "text", "") == "Cite ids." for step in policy.steps)
    before = policy.digest
    (tmp_path / "rules.md").write_text("Cite records.\n", "utf-8")
    assert load(str(tmp_path / "own.toml")).digest != before


def fault(name: str) -> str:
    with pytest.raises(PolicyError) as raised:
        load(name)
    message = str(raised.value)
    assert "\n" not in message
    return message


def test_a_misspelt_name_gets_a_suggestion() -> None:
    assert (
        fault("balansed") == "policy 'balansed': there is no preset and no file of that name; did you mean 'balanced'?"
    )


def test_an_unknown_name_gets_the_list() -> None:
    assert fault("zzz").endswith("presets are " + ", ".join(presets()))


def test_a_folder_and_bytes_are_no_policies(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_bytes(b"\xff\xfe")
    assert fault(str(tmp_path)).endswith("cannot be read: Is a directory; give a TOML file")
    assert fault(str(tmp_path / "own.toml")).endswith("is not UTF-8 text; give a TOML file")


def test_a_constitution_that_is_missing_or_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(BALANCED + '\n[reminder]\nfile = "rules.md"\n', "utf-8")
    assert "'rules.md' cannot be read" in fault(str(tmp_path / "own.toml"))
    (tmp_path / "rules.md").write_bytes(b"\xff\xfe")
    assert "'rules.md' cannot be read: it is not UTF-8 text" in fault(str(tmp_path / "own.toml"))
