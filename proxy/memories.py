"""The ledger in the life of the process: opened, asked through conversations, settled when answers came, closed."""

import asyncio

from prometheus_client import CollectorRegistry

from policies.request import ChatRequest
from proxy.ledger.metrics import LedgerMetrics
from proxy.ledger.opening import open_ledger
from proxy.metrics import Metrics
from proxy.observe import Mode
from proxy.originals import Originals
from proxy.planner import Call
from proxy.recall import Conversation
from proxy.remembered import Memory
from proxy.settings import Settings


class Memories:
    """`ledger` is the store that the settings ask for. What is only observed is remembered apart, and nowhere but
    here."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self._metrics = LedgerMetrics()
        self.ledger = open_ledger(settings, self._metrics)
        kept = None if settings.ledger == "off" else self.ledger
        self._enforced, self._observed = Memory(kept, metrics.changed), Memory(None, metrics.changed)
        self._settling: set[asyncio.Task[None]] = set()

    def register(self, registry: CollectorRegistry) -> None:
        registry.register(self._metrics)

    async def open(self) -> None:
        await self.ledger.open()

    async def close(self) -> None:
        await self.settled()
        await self.ledger.close()

    async def settled(self) -> None:
        """What answers that came so far have settled is written down."""
        await asyncio.gather(*self._settling)

    def conversation(self, call: Call, request: ChatRequest, mode: Mode) -> Conversation:
        return Conversation(self._enforced if mode == "enforce" else self._observed, call, request)

    async def original(self, tenant: str, ref: str) -> bytes | None:
        """What was taken out, as it is stored. Raises LedgerFault."""
        return await Originals(self.ledger, tenant).read(ref)

    def taken(self, conversation: Conversation) -> None:
        """The upstream took the request: what was decided for it is confirmed."""
        conversation.taken = True
        self._settle(conversation)

    def left(self, conversation: Conversation) -> None:
        """The request is over, and what was decided for it is taken back unless the upstream took it."""
        self._settle(conversation)

    def _settle(self, conversation: Conversation) -> None:
        """Nobody waits for it."""
        if conversation.unsettled:
            task = asyncio.get_running_loop().create_task(conversation.settle())
            self._settling.add(task)
            task.add_done_callback(self._settling.discard)
