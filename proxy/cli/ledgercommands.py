"""`edgewise ledger`: what is kept of which conversation, and how to be rid of it. No value is shown."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from policies.jsonraw import dumps
from proxy.cli.commands import Fault, settings_of
from proxy.cli.tables import Cell, Line, Paint, clean, figure, table
from proxy.ledger import Held, LedgerFault, Listed, Store
from proxy.ledger.files import NAME
from proxy.ledger.opening import store_of
from proxy.ledger.places import WORDS, directory_of, is_url

T = TypeVar("T")
SHOWN = 12  # digits of an id in a table; `show` takes as many as tell it from the others


def list_conversations(options: argparse.Namespace) -> int:
    """The one used last comes first. Raises Fault."""
    listed = _with_store(lambda store: store.conversations(options.tenant))
    if options.json:
        _print_objects(listed)
        return 0
    lines = [_row(one) for one in listed]
    print(table(("conversation", "tenant", ">entries", ">bytes", "began", "last used"), lines, Paint.of(sys.stdout)))
    return 0


def show(options: argparse.Namespace) -> int:
    """What one conversation holds. Raises Fault."""
    listed, held = _with_store(lambda store: _found(store, options.id))
    if options.json:
        _out(msgspec.structs.asdict(listed) | {"entries": [msgspec.structs.asdict(one) for one in held]})
        return 0
    paint = Paint.of(sys.stdout)
    print(paint(f"conversation {listed.conversation} · tenant {listed.tenant}", "bold"))
    print(f"began {_time(listed.started)}, last used {_time(listed.used)}", end="\n\n")
    lines = [[Cell(one.kind, "cyan"), Cell(clean(one.key)), Cell(figure(one.size)), _confirmed(one)] for one in held]
    print(table(("kind", "key", ">bytes", "confirmed"), lines, paint))
    return 0


def purge(options: argparse.Namespace) -> int:
    """Raises Fault."""
    if not options.all and options.tenant is None and options.older_than is None:
        raise Fault("ledger purge: say what to remove: --tenant T, --older-than 7d, both, or --all")
    if options.all and (options.tenant is not None or options.older_than is not None):
        raise Fault("ledger purge: --all takes no other choice beside it")
    removed = _with_store(lambda store: store.purge(tenant=options.tenant, older_than=options.older_than or 0.0))
    if options.json:
        _out({"removed": removed})
    else:
        print(f"removed {removed} conversation{'' if removed == 1 else 's'}")
    return 0


COMMANDS = {"list": list_conversations, "show": show, "purge": purge}


def _with_store(ask: Callable[[Store], Awaitable[T]]) -> T:
    """Raises Fault."""
    settings = settings_of()
    place = settings.ledger
    if place in WORDS:
        raise Fault(f"EDGEWISE_LEDGER: '{place}' leaves nothing to look at; name the place that the proxy was given")
    if (place is None or not is_url(place)) and not (path := directory_of(place) / NAME).exists():
        raise Fault(f"{path}: there is no ledger; set EDGEWISE_LEDGER to the place that the proxy was given")
    return asyncio.run(_asked(store_of(settings), ask))


async def _asked(store: Store, ask: Callable[[Store], Awaitable[T]]) -> T:
    try:
        await store.open()
        return await ask(store)
    except LedgerFault as fault:
        raise Fault(str(fault)) from None
    finally:
        await store.close()


async def _found(store: Store, beginning: str) -> tuple[Listed, list[Held]]:
    """Raises Fault."""
    found = [one for one in await store.conversations(None) if one.conversation.startswith(beginning)]
    if len(found) != 1:
        fault = f"{len(found)} conversations begin" if found else "no conversation begins"
        raise Fault(f"{fault} with '{beginning}'; 'edgewise ledger list --json' names them whole")
    return found[0], await store.held(found[0].tenant, found[0].conversation)


def _row(one: Listed) -> Line:
    return [
        Cell(clean(one.conversation[:SHOWN]) or "-"),
        Cell(clean(one.tenant[:SHOWN]), "dim"),
        Cell(figure(one.entries)),
        Cell(figure(one.size)),
        Cell(_time(one.started)),
        Cell(_time(one.used)),
    ]


def _confirmed(one: Held) -> Cell:
    return Cell("yes") if one.confirmed else Cell("no", "dim")


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def _print_objects(structs: Iterable[msgspec.Struct]) -> None:
    for one in structs:
        _out(msgspec.structs.asdict(one))


def _out(value: dict[str, Any]) -> None:
    print(dumps(value).decode())
