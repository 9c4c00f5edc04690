from argparse import Namespace
from pathlib import Path

import pytest

from proxy.commands import Fault, check, policy_of, settings_of
from proxy.policyfile import presets


def test_faults_of_policies_and_settings_are_one_line() -> None:
    with pytest.raises(Fault, match="did you mean 'balanced'"):
        policy_of("balancd")
    with pytest.raises(Fault, match="EDGEWISE_PORT"):
        settings_of(port=70_000)


def test_a_policy_is_described_with_its_own_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "own.toml"
    text = presets()["balanced"].read_text("utf-8").replace('name = "balanced"', 'name = "own"')
    path.write_text(text + f'\n[budget]\nwindow = 9000\n\n[reminder]\ntext = "{"rule " * 30}"\n', "utf-8")
    assert check(Namespace(policy=str(path))) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("policy own is valid\n  on_refuse = error\n  window = 9000\n")
    assert "reminder: text = 'rule rule rule rule rule rule rule rule '... (149 characters)" in shown
    assert "places = [head, tail]" in shown
