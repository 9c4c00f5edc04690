"""The ledger that the settings ask for, and what is wrong with those that are none."""

import sys
from pathlib import Path

import pytest
from support.ledgers import ALICE, entry

from proxy.ledger.kept import Kept
from proxy.ledger.memory import MemoryLedger
from proxy.ledger.off import OffLedger
from proxy.ledger.opening import open_ledger, store_of
from proxy.ledger.places import directory_of
from proxy.ledger.sealed import SealedLedger
from proxy.ledger.sqlite import SqliteLedger
from proxy.ledger.valkey import ValkeyLedger
from proxy.settings import Settings, SettingsError

KEY = "0123456789abcdef" * 2


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EDGEWISE_LEDGER")


def test_each_place_has_its_store(tmp_path: Path) -> None:
    stores = {place: type(store_of(Settings.load(ledger=place))) for place in ("memory", " OFF ", str(tmp_path))}
    assert list(stores.values()) == [MemoryLedger, OffLedger, SqliteLedger]
    assert isinstance(store_of(Settings.load()), SqliteLedger)
    for url in ("valkey://127.0.0.1", "redis://:secret@valkey:6379/3", "rediss://[::1]:6379/", "valkeys://h:1"):
        assert isinstance(store_of(Settings.load(ledger=url)), ValkeyLedger)
    assert isinstance(store_of(Settings.load(ledger="memory", ledger_key=KEY)), SealedLedger)
    assert isinstance(store_of(Settings.load(ledger="off", ledger_key=KEY)), OffLedger)


def test_without_a_place_it_is_where_a_program_keeps_its_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/alice")
    monkeypatch.setenv("XDG_STATE_HOME", "/var/state")
    assert directory_of(None) == Path("/var/state/edgewise")
    monkeypatch.setenv("XDG_STATE_HOME", "relative/is/ignored")
    assert directory_of(None) == Path("/home/alice/.local/state/edgewise")
    monkeypatch.delenv("XDG_STATE_HOME")
    assert directory_of(None) == Path("/home/alice/.local/state/edgewise")
    assert directory_of("~/ledger") == Path("/home/alice/ledger")


async def test_what_the_proxy_gets_is_behind_a_deadline_and_keeps_what_it_is_given(tmp_path: Path) -> None:
    settings = Settings.load(ledger=str(tmp_path / "new"), ledger_ttl=60.0, ledger_max_bytes=100_000)
    for _ in range(2):
        ledger = open_ledger(settings)
        assert isinstance(ledger, Kept)
        await ledger.open()
        await ledger.add(ALICE, [entry("k")])
        assert await ledger.get(ALICE, "node", ["k"]) == {"k": b"v"}
        await ledger.close()
    assert (tmp_path / "new" / "ledger.db").exists()
    assert isinstance(open_ledger(Settings.load(ledger="off")), OffLedger)


@pytest.mark.parametrize(
    ("overrides", "module", "says"),
    [
        ({"ledger": "valkey://h"}, "valkey.asyncio", "a ledger in Valkey or Redis needs 'valkey.asyncio'"),
        ({"ledger_key": KEY}, "cryptography.exceptions", "a ledger with a key needs 'cryptography.exceptions'"),
    ],
)
def test_an_extra_that_is_missing_is_named(
    overrides: dict[str, str], module: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # as Python notes a module that is not to be found
    with pytest.raises(SettingsError) as raised:
        store_of(Settings.load(**overrides))
    extra = "sealed" if "ledger_key" in overrides else "valkey"
    assert str(raised.value) == f"EDGEWISE_LEDGER: {says}: pip install 'edgewise[{extra}]'"


@pytest.mark.parametrize(
    "place", ["", "  ", "http://127.0.0.1", "valkey://", "valkey://h:port", "redis://h/db", "redis://h/1?db=2"]
)
def test_a_place_that_is_none_is_one_line_without_its_password(place: str) -> None:
    with pytest.raises(SettingsError, match=r"^EDGEWISE_LEDGER: is ") as raised:
        Settings.load(ledger=place.replace("//", "//:canary@"))
    assert "canary" not in str(raised.value)


def test_no_password_is_in_the_settings_when_they_are_shown() -> None:
    assert "canary" not in repr(Settings.load(ledger="valkey://:canary@h", ledger_key="canary" * 8))


def test_a_short_key_is_refused_unseen() -> None:
    with pytest.raises(SettingsError, match="EDGEWISE_LEDGER_KEY: is shorter than 32 characters") as raised:
        Settings.load(ledger_key="canary")
    assert "canary" not in str(raised.value)
