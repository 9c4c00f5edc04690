"""What upstreams bill, in the life of the process: learned from, asked for where nobody asked, kept."""

from prometheus_client import CollectorRegistry

from policies.request import ChatRequest, Prompt
from proxy.calibrating import Calibrating
from proxy.learning import Learning
from proxy.ledger import Ledger
from proxy.observe import Mode
from proxy.planner import Call, Outcome
from proxy.recall import Conversation
from proxy.usageasked import UsageAsked


class Bills:
    """`ledger` keeps what is learned."""

    def __init__(self, ledger: Ledger) -> None:
        self.calibrating, self._asked = Calibrating(ledger), UsageAsked()

    def register(self, registry: CollectorRegistry) -> None:
        registry.register(self.calibrating)
        registry.register(self._asked)

    async def close(self) -> None:
        """Before the ledger is closed."""
        await self.calibrating.close()

    def learning(self, call: Call, model: str, conversation: Conversation, mode: Mode) -> Learning:
        """One request's share. Of traffic that is only observed no conversation is written down."""
        return Learning(self.calibrating, call, model, conversation, lasting=mode == "enforce")

    def outcome(self, request: ChatRequest, prompt: Prompt, upstream: str) -> Outcome:
        """The request with `prompt` in it, which asks for its usage where it is edited and streamed."""
        return self._asked.outcome(request, prompt, upstream)
