from argparse import Namespace
from pathlib import Path

import pytest

from proxy.cli.commands import Fault, policy_of, prompts_of, settings_of, shelf_of
from proxy.cli.policycommands import check
from proxy.cli.serving import OPTIONS, serve
from proxy.policyfile import presets


def test_faults_of_policies_and_settings_are_one_line() -> None:
    with pytest.raises(Fault, match="did you mean 'balanced'"):
        policy_of("balancd")
    with pytest.raises(Fault, match="EDGEWISE_PORT"):
        settings_of(port=70_000)


def test_faults_of_prompt_files_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "summary.md").write_text("Be short.\n---\n{{text}}", "utf-8")
    with pytest.raises(Fault, match=r"summary\.md: the placeholder '\{\{words\}\}' is missing"):
        prompts_of(settings_of(prompts=str(tmp_path)))
    assert set(prompts_of(settings_of())) == {"summary", "extract", "select_tools"}


def test_the_proxy_does_not_start_on_prompts_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEWISE_PROMPTS", "/no/such/directory")
    with pytest.raises(Fault, match="EDGEWISE_PROMPTS: /no/such/directory is no directory"):
        serve(Namespace(**dict.fromkeys(OPTIONS)))


def test_the_proxy_does_not_start_on_a_policy_that_may_be_asked_for_but_is_wrong() -> None:
    with pytest.raises(
        Fault, match="policy 'fruga': there is no preset and no file of that name; did you mean 'frugal'"
    ):
        shelf_of(settings_of(policies=("fruga",)))


def test_a_policy_is_described_with_its_own_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "own.toml"
    text = presets()["balanced"].read_text("utf-8").replace('name = "balanced"', 'name = "own"')
    path.write_text(text + f'\n[budget]\nwindow = 9000\n\n[reminder]\ntext = "{"rule " * 30}"\n', "utf-8")
    assert check(Namespace(policy=str(path))) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("policy own is valid\n  on_refuse = error\n  window = 9000\n")
    assert "reminder: text = 'rule rule rule rule rule rule rule rule '... (149 characters)" in shown
    assert "places = [head, tail]" in shown
