"""What the documents say is so: their commands are run, their tables made, their examples tried."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest
import readme
from packaging.requirements import Requirement
from support.prompts import chat, lines, planned, round_of, user

from policies.messages import Message
from policies.policy import Policy
from policies.spans import Bucket
from policies.step import Step
from policies.steps import STEPS
from proxy.cli.main import EPILOG

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")
FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PORT = "127.0.0.1:8400"  # of the documents; a test puts its own server there
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith(("EDGEWISE_", "PYTHON"))}
ENVIRONMENT["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
NOT_RUN = {
    "git clone <this repository> && cd edgewise": "it stands for the address that you cloned from",
    ".venv/bin/pip install --no-deps --no-build-isolation -e .": "it would replace the wheel under the running tests",
    ".venv/bin/python tools/readme.py": "it would write into the repository; what it writes is compared here",
    ".venv/bin/edgewise demo": "it is run once, with --json, by what makes its table and picture",
    "EDGEWISE_UPSTREAM=https://api.openai.com/v1 make run": "it is `make run`, before a server on the internet",
    "OPENAI_API_KEY=your-key docker compose up --build": "it needs an engine; `make gates` checks the composition, "
    "and the agent in it runs here as docker/agent.py",
}


class Block(NamedTuple):
    """A fenced part of a document. `file` is the name that stands behind the language, or ""."""

    page: str
    language: str
    file: str
    text: str

    @property
    def commands(self) -> list[str]:
        """Whole commands; one may go on over several lines."""
        found, open_one = [], ""
        for line in self.text.splitlines():
            open_one += line
            if line.endswith("\\") or not _is_whole(open_one):
                open_one += "\n"
                continue
            found.append(open_one)
            open_one = ""
        return found


def _is_whole(command: str) -> bool:
    try:
        shlex.split(command)
    except ValueError:
        return False
    return True


def blocks(page: str) -> list[Block]:
    return [Block(page, *found) for found in FENCE.findall((ROOT / page).read_text("utf-8"))]


ALL = [block for page in PAGES for block in blocks(page)]
COMMANDS = [(block.page, command) for block in ALL if block.language == "sh" for command in block.commands]
SERVERS = [command for _, command in COMMANDS if re.search(r"\bedgewise serve\b", command)]
TARGETS = [command for _, command in COMMANDS if re.fullmatch(r"make \w+", command)]
SCRIPTS = [
    (block, script)
    for block in ALL
    if block.language == "sh"
    and (script := [one for one in block.commands if one not in [*SERVERS, *TARGETS, *NOT_RUN]])
]


def named(name: str) -> str:
    """The text of the example that has a file name."""
    (found,) = [block.text for block in ALL if block.file == name]
    return found


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A copy of the repository by links, with the examples that have a name, and this Python as its .venv."""
    for path in ROOT.iterdir():
        if path.name not in (".venv", ".git"):
            (tmp_path / path.name).symlink_to(path)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    for block in ALL:
        if block.file and "/" not in block.file:
            (tmp_path / block.file).write_text(block.text, "utf-8")
    return tmp_path


def shell(script: str, desk: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=desk,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


@contextmanager
def serving(command: str, desk: Path) -> Iterator[str]:
    """The address that `edgewise serve ...` tells; it is ended as an operator would."""
    with subprocess.Popen(
        ["bash", "-c", f"exec env {command} --port 0"],
        cwd=desk,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            assert running.stdout is not None
            told = re.match(r"Edgewise listens on http://([\d.:]+) ", running.stdout.readline())
            assert told is not None, running.communicate()[1]
            yield told[1]
        finally:
            running.terminate()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Where the documents' own server answers: its host and port."""
    with serving("edgewise serve", ROOT) as address:
        yield address


def test_what_is_made_from_the_product_is_as_the_product_is() -> None:
    stale = [name for name, text in readme.made().items() if (ROOT / name).read_text("utf-8") != text]
    assert stale == [], "run python tools/readme.py"


def test_the_tool_names_what_is_stale_and_mends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.md").write_text("old\n")
    (tmp_path / "b.md").write_text("same\n")
    pages = {"a.md": "new\n", "b.md": "same\n"}
    assert [readme.write(tmp_path, pages, check=check) for check in (True, False, True)] == [1, 0, 0]
    assert (tmp_path / "a.md").read_text() == "new\n"
    assert capsys.readouterr().out.splitlines() == [
        "readme: stale: a.md; run python tools/readme.py",
        "readme: written: a.md",
        "readme: as the product is",
    ]


def test_a_place_that_nothing_fills_is_an_error() -> None:
    page = "<!-- steps: written -->\nold\n<!-- /steps -->\n"
    assert readme.filled(page, {"steps": "new"}) == "<!-- steps: written -->\nnew\n<!-- /steps -->\n"
    with pytest.raises(KeyError, match="steps"):
        readme.filled(page, {})


@pytest.mark.parametrize(("block", "commands"), SCRIPTS, ids=[commands[0][:40] for _, commands in SCRIPTS])
def test_a_command_of_the_documents_does_what_they_say(
    block: Block, commands: list[str], desk: Path, server: str
) -> None:
    script = "\n".join(commands)
    if "curl " in script and shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    done = shell(script.replace(PORT, server), desk)
    assert done.returncode == 0, (block.page, done.stderr)
    following = (ROOT / block.page).read_text("utf-8").split(block.text, 1)[1]
    shown = re.match(r"```\n\n```http\n(.*?)```", following, re.DOTALL)
    for line in shown[1].splitlines() if shown else ():
        assert line.partition("…")[0] in done.stdout


@pytest.mark.parametrize("command", SERVERS)
def test_a_server_of_the_documents_starts(command: str, desk: Path) -> None:
    with serving(command, desk) as address:
        assert httpx2.get(f"http://{address}/healthz").json() == {"status": "ok"}


@pytest.mark.parametrize("command", sorted(set(TARGETS)))
def test_a_target_of_the_documents_is_in_the_makefile(command: str) -> None:
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    done = subprocess.run([*command.split(), "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_make_run_starts_what_the_tests_start() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert re.search(r"^run: .*\n\t@exec \$\(BIN\)/edgewise serve \$\(ARGS\)$", makefile, re.MULTILINE)


def test_whatever_is_not_run_is_still_in_the_documents() -> None:
    assert set(NOT_RUN) - {command for _, command in COMMANDS} == set()


def test_a_refusal_of_the_documents_ends_with_1(desk: Path) -> None:
    (commands,) = [commands for _, commands in SCRIPTS if any("long.json" in command for command in commands)]
    told, code = shell("\n".join(commands), desk).stdout.splitlines()
    example = next(block for block in ALL if block.language == "json" and not block.file)
    expected, given = json.loads(example.text)["error"], json.loads(told)["error"]
    assert (code, given["message"], given["code"]) == ("exit code 1", expected["message"], expected["code"])
    assert given["edgewise"]["units"][0]["chars"] == expected["edgewise"]["units"][0]["chars"]


def test_the_reminder_of_the_documents_stands_at_both_ends(desk: Path) -> None:
    done = shell("edgewise plan request.json --policy policy.toml --json", desk)
    first, *_, last = json.loads(done.stdout)["request"]["messages"]
    for message in (first, last):
        assert message["content"].endswith("\n\nNever promise a refund.\n\nFile every ticket under 4417.")


@pytest.fixture
def example_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[Step]:
    """The step in ARCHITECTURE.md, imported from a file of its own."""
    (tmp_path / "squeeze_blanks.py").write_text(named("policies/steps/squeeze_blanks.py"), "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    step: type[Step] = import_module("squeeze_blanks").SqueezeBlanks
    return step


def test_the_step_of_the_documents_works_as_they_say(example_step: type[Step], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STEPS, "squeeze-blanks", example_step)  # the one line
    preset = (ROOT / "policies/presets/balanced.toml").read_text("utf-8").partition("[[steps]]")[0]
    policy = Policy.parse(preset + named("squeeze.toml"), "squeeze.toml")
    airy = lines(40).replace("\n", "   \n\n\n\n")
    request = chat([user("Which station?"), *round_of(1, airy), user("And now?")])
    total = planned(request, 100_000).received_total
    made = planned(request, total - 1, policy)
    assert [(one.step, one.outcome, one.spans) for one in made.decisions] == [("squeeze-blanks", "applied", ("m2",))]
    assert Message.of(made.prompt.messages[2].raw).text == lines(40).replace("\n", "\n\n")
    assert made.sent_total < made.received_total


def test_a_policy_without_the_step_of_the_documents_names_it_unknown() -> None:
    with pytest.raises(ValueError, match="unknown step 'squeeze-blanks'"):
        Policy.parse('version = 1\nname = "x"\n' + named("squeeze.toml"), "squeeze.toml")


def test_the_exit_codes_are_those_of_the_command() -> None:
    table = re.findall(r"^\| (\d+) \| (.+) \|$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert table == re.findall(r"^  (\d+) +(.+)$", EPILOG, re.MULTILINE)


def test_the_paths_of_the_api_are_those_that_are_served(server: str) -> None:
    page = (ROOT / "README.md").read_text("utf-8")
    served = set(httpx2.get(f"http://{server}/openapi.json").json()["paths"])
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    listed = {path for row in rows for path in re.findall(r"(/(?:context|healthz|readyz|metrics)[\w/{}]*)", row)}
    assert listed == served


def test_the_buckets_of_the_documents_are_buckets() -> None:
    row = next(line for line in (ROOT / "README.md").read_text("utf-8").splitlines() if "`Edgewise-Tokens`" in line)
    listed = set(re.findall(r"`([a-z_]+)`", row))
    assert listed == {bucket.value for bucket in Bucket} - {"state", "memory"}  # nothing fills these two yet


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(one for listed in extras.values() for one in listed)]
    table = (ROOT / "ARCHITECTURE.md").read_text("utf-8").partition("## Dependencies")[2].partition("\n## ")[0]
    listed = {name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\S+)`", row)}
    names = {Requirement(one).name for one in wanted}
    assert listed - (set(extras) - names) == names


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_document_names_is_there(page: str) -> None:
    text = FENCE.sub("", (ROOT / page).read_text("utf-8"))
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    files = re.findall(r"`([\w./-]+\.(?:py|md|toml|yaml))`", text)
    known = {str(path.relative_to(ROOT)) for folder in ("policies", "proxy", "tests", "tools", "docker") for path in
             (ROOT / folder).rglob("*")}  # fmt: skip
    gone = [name for name in links if not (ROOT / name).exists()]
    gone += [
        name for name in files if not (ROOT / name).exists() and not any(one.endswith(f"/{name}") for one in known)
    ]
    assert gone == []
