"""The ledger that the settings ask for."""

from proxy.extras import MissingExtra
from proxy.ledger import Limits, Store
from proxy.ledger.kept import Kept
from proxy.ledger.memory import MemoryLedger
from proxy.ledger.metrics import LedgerMetrics
from proxy.ledger.off import OffLedger
from proxy.ledger.places import directory_of, is_url
from proxy.ledger.sealed import SealedLedger
from proxy.ledger.sqlite import SqliteLedger
from proxy.ledger.valkey import ValkeyLedger
from proxy.settings import Settings, SettingsError


def open_ledger(settings: Settings, metrics: LedgerMetrics | None = None) -> Store:
    """Behind its deadline, not yet opened: `await ledger.open()` never fails, a fault is counted and tried again.

    Register `metrics` to show them. Raises SettingsError where an extra is missing.
    """
    if settings.ledger == "off":
        return OffLedger()
    return Kept(store_of(settings), metrics or LedgerMetrics(), settings.ledger_timeout)


def store_of(settings: Settings) -> Store:
    """The bare store, for commands: no deadline, and `open` tells what is wrong. Raises SettingsError."""
    limits = Limits(settings.ledger_ttl, settings.ledger_max_bytes, settings.ledger_timeout)
    try:
        store = _plain(settings, limits)
        if settings.ledger_key is not None and settings.ledger != "off":
            return SealedLedger(store, settings.ledger_key.get_secret_value().encode())
    except MissingExtra as error:
        raise SettingsError(f"EDGEWISE_LEDGER: {error}") from None
    return store


def _plain(settings: Settings, limits: Limits) -> Store:
    place = settings.ledger
    if place == "off":
        return OffLedger()
    if place == "memory":
        return MemoryLedger(limits)
    if place is not None and is_url(place):
        return ValkeyLedger(place, limits)
    return SqliteLedger(directory_of(place), limits)
