"""No ledger: nothing is remembered, nothing is touched, and nothing that would have to be kept is begun."""

from collections.abc import Sequence

from proxy.ledger import Entry, Figures, Held, Kind, LedgerFault, Listed


class OffLedger:
    """Knows nothing and takes nothing: `add` raises LedgerFault("off"), so no ref is ever sent."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def get(self, tenant: str, kind: Kind, keys: Sequence[str]) -> dict[str, bytes]:  # noqa: ARG002 - the protocol's
        return {}

    async def add(self, tenant: str, entries: Sequence[Entry]) -> dict[str, bytes]:  # noqa: ARG002 - the protocol's
        raise LedgerFault("off")

    async def put(self, tenant: str, entry: Entry) -> None: ...

    async def confirm(self, tenant: str, kind: Kind, keys: Sequence[str]) -> None: ...

    async def withdraw(self, tenant: str, kind: Kind, keys: Sequence[str]) -> None: ...

    async def conversations(self, tenant: str | None) -> list[Listed]:  # noqa: ARG002 - the protocol's
        return []

    async def held(self, tenant: str, conversation: str) -> list[Held]:  # noqa: ARG002 - the protocol's
        return []

    async def purge(self, *, tenant: str | None = None, older_than: float = 0.0) -> int:  # noqa: ARG002 - the protocol's
        return 0

    async def size(self) -> int:
        return 0

    def figures(self) -> Figures:
        return Figures()
