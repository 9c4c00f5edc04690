"""Answers what planning asks for: counts by the upstream's own tokenizer, words by the side model (DESIGN 3, Needs)."""

from collections.abc import Mapping

import msgspec

from policies.needs import Answer, Anybody, Ask, Need, Recall
from policies.plan import Plan
from proxy.recall import Conversation
from proxy.servercount import ServerCount
from proxy.sidemodel import Questions


class Driver(msgspec.Struct, frozen=True):
    """Of one request. `told` are the headers that speak for the caller at the upstream; the side model gets none."""

    counts: ServerCount | None
    told: Mapping[str, str]
    questions: Questions | None = None
    conversation: Conversation | None = None

    async def answer(self, need: Need) -> Answer:
        """None: there is nobody to ask, it failed, or it took too long."""
        if isinstance(need, Recall):
            return None if self.conversation is None else await self.conversation.recall(need.prompt)
        if isinstance(need, Ask):
            return None if self.questions is None else await self.questions.answer(need)
        if isinstance(need, Anybody):
            return 1 if self.questions is not None and self.questions.open else None
        return None if self.counts is None else await self.counts.count(need.prompt, self.told)

    def billed(self, made: Plan) -> Plan:
        """The plan with everything that the side model cost, also for answers that could not be used."""
        if self.questions is None or not self.questions.spent:
            return made
        return msgspec.structs.replace(made, side_tokens=self.questions.spent)
