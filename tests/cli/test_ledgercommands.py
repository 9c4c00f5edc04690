"""`edgewise ledger` as an operator runs it, beside a ledger that is in use."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from support.ledgers import ALICE, BOB, FIRST, SECOND, Clock, entry

from proxy.cli.main import main
from proxy.ledger import Limits, Store
from proxy.ledger.sealed import SealedLedger
from proxy.ledger.sqlite import SqliteLedger
from proxy.ledger.valkey import ValkeyLedger

KEY = "0123456789abcdef" * 2


class Done(NamedTuple):
    code: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `edgewise ledger ...` on a place."""

    def run(*arguments: str, place: str) -> Done:
        monkeypatch.setenv("EDGEWISE_LEDGER", place)
        monkeypatch.setenv("EDGEWISE_LEDGER_TTL", "9999999999")
        try:
            code = main(["ledger", *arguments])
        except SystemExit as end:  # argparse's way
            code = int(end.code or 0)
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return run


async def fill(store: Store, clock: Clock) -> None:
    await store.open()
    await store.add(ALICE, [entry("k1", b"x" * 1_500), entry("tr_1", b"the canary", "original")])
    await store.confirm(ALICE, "node", ["k1"])
    clock.now += 3_600
    await store.add(BOB, [entry("k2", conversation=SECOND)])
    await store.close()


@pytest.fixture
def place(tmp_path: Path) -> str:
    clock = Clock(1_790_000_000.0)  # 2026-09-21 14:13:20 UTC
    asyncio.run(fill(SqliteLedger(tmp_path, Limits(), clock), clock))
    return str(tmp_path)


def test_a_list_is_a_table(ledger: Run, place: str) -> None:
    done = ledger("list", place=place)
    assert (done.code, done.stderr) == (0, "")
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["conversation", "tenant", "entries", "bytes", "began", "last", "used"],
        [SECOND[:12], BOB[:12], "1", "1", "2026-09-21", "15:13", "2026-09-21", "15:13"],
        [FIRST[:12], ALICE[:12], "2", "1,510", "2026-09-21", "14:13", "2026-09-21", "14:13"],
    ]


def test_a_list_of_one_tenant_is_objects_with_json(ledger: Run, place: str) -> None:
    done = ledger("list", "--tenant", ALICE, "--json", place=place)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {
            "tenant": ALICE,
            "conversation": FIRST,
            "entries": 2,
            "size": 1510,
            "started": 1790000000.0,
            "used": 1790000000.0,
        }
    ]


def test_one_conversation_is_shown_without_what_it_says(ledger: Run, place: str) -> None:
    done = ledger("show", FIRST[:8], place=place)
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:2] == [
        f"conversation {FIRST} · tenant {ALICE}",
        "began 2026-09-21 14:13, last used 2026-09-21 14:13",
    ]
    assert [line.split() for line in done.stdout.splitlines()[3:]] == [
        ["kind", "key", "bytes", "confirmed"],
        ["node", "k1", "1,500", "yes"],
        ["original", "tr_1", "10", "no"],
    ]
    assert "canary" not in done.stdout
    told = json.loads(ledger("show", FIRST, "--json", place=place).stdout)
    assert told["entries"][1] == {"kind": "original", "key": "tr_1", "size": 10, "confirmed": False}


def test_an_id_that_names_none_or_several_is_code_2(ledger: Run, place: str) -> None:
    done = ledger("show", "ffff", place=place)
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr == (
        "edgewise: no conversation begins with 'ffff'; 'edgewise ledger list --json' names them whole\n"
    )
    assert ledger("show", "c", place=place).stderr.startswith("edgewise: 2 conversations begin with 'c'; ")


def test_a_purge_removes_what_it_is_told(ledger: Run, place: str) -> None:
    assert ledger("purge", "--older-than", "36500d", place=place).stdout == "removed 0 conversations\n"
    assert ledger("purge", "--tenant", ALICE, "--older-than", "1s", place=place).stdout == "removed 1 conversation\n"
    assert len(ledger("list", "--json", place=place).stdout.splitlines()) == 1
    assert ledger("purge", "--all", "--json", place=place).stdout == '{"removed":1}\n'
    assert ledger("list", "--json", place=place).stdout == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "ledger purge: say what to remove: --tenant T, --older-than 7d, both, or --all"),
        (["--all", "--tenant", "t"], "ledger purge: --all takes no other choice beside it"),
        (["--older-than", "7"], "'7' is no age; write a number and s, m, h or d, as in 7d"),
        (["--older-than", "xd"], "'xd' is no age; write a number and s, m, h or d, as in 7d"),
    ],
)
def test_a_purge_that_is_not_clear_removes_nothing(ledger: Run, arguments: list[str], says: str, place: str) -> None:
    done = ledger("purge", *arguments, place=place)
    assert done.code == 2
    assert says in done.stderr
    assert len(ledger("list", "--json", place=place).stdout.splitlines()) == 2


def test_a_ledger_that_is_not_there_is_not_begun(ledger: Run, tmp_path: Path) -> None:
    done = ledger("list", place=str(tmp_path / "none"))
    assert done.code == 2
    assert done.stderr == (
        f"edgewise: {tmp_path}/none/ledger.db: there is no ledger; set EDGEWISE_LEDGER to the place that the proxy "
        "was given\n"
    )
    assert not (tmp_path / "none").exists()
    assert "'memory' leaves nothing to look at" in ledger("list", place="memory").stderr


def test_a_server_that_is_gone_is_one_line(ledger: Run) -> None:
    done = ledger("list", place="valkey://:canary@127.0.0.1:1")
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr == ("edgewise: ledger: gone: the server does not answer; see that it runs, and its address\n")


def test_a_ledger_in_valkey_is_shown_alike(ledger: Run, valkey_url: str) -> None:
    clock = Clock()
    asyncio.run(fill(ValkeyLedger(valkey_url, Limits(), clock), clock))
    listed = [json.loads(line) for line in ledger("list", "--json", place=valkey_url).stdout.splitlines()]
    assert [(one["tenant"], one["entries"], one["size"]) for one in listed] == [(BOB, 1, 1), (ALICE, 2, 1510)]
    assert ledger("purge", "--tenant", BOB, place=valkey_url).stdout == "removed 1 conversation\n"


def test_a_sealed_ledger_is_listed_without_its_key(ledger: Run, tmp_path: Path) -> None:
    clock = Clock()
    asyncio.run(fill(SealedLedger(SqliteLedger(tmp_path, Limits(), clock), KEY.encode()), clock))
    listed = [json.loads(line) for line in ledger("list", "--json", place=str(tmp_path)).stdout.splitlines()]
    assert [(one["tenant"], one["entries"]) for one in listed] == [(BOB, 1), (ALICE, 2)]
    assert "tr_1" in ledger("show", FIRST, place=str(tmp_path)).stdout


def test_it_is_a_program_of_its_own(place: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("EDGEWISE_")}
    environment |= {"EDGEWISE_LEDGER": place, "EDGEWISE_LEDGER_TTL": "9999999999"}
    command = [sys.executable, "-m", "proxy.cli.main", "ledger", "purge", "--all"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "removed 2 conversations\n", "")
