"""Answers what planning asks for: counts by the upstream's own tokenizer, words by the side model (DESIGN 3, Needs)."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import Executor

import msgspec

from policies.needs import Answer, Anybody, Ask, Need, Recall, Usage
from policies.pipeline import Planning
from policies.plan import Plan
from proxy.learning import Learning
from proxy.servercount import ServerCount
from proxy.sidemodel import Questions


class Driver(msgspec.Struct, frozen=True):
    """Of one request. `told` are the headers that speak for the caller at the upstream; the side model gets none."""

    counts: ServerCount | None
    told: Mapping[str, str]
    questions: Questions | None = None
    learning: Learning | None = None

    async def drive(self, steps: Planning, thread: Executor, *, is_work: bool) -> Plan:
        """The plan that `steps` come to; what is work is done in the thread."""
        answered: Answer = None
        while True:
            if is_work:
                need = await asyncio.get_running_loop().run_in_executor(thread, _advance, steps, answered)
            else:
                need = _advance(steps, answered)
            if isinstance(need, Plan):
                return need
            answered = await self.answer(need)
            if isinstance(need, Ask):
                is_work = True  # what is made of words, a summary to check above all, is work

    async def answer(self, need: Need) -> Answer:
        """None: there is nobody to ask, it failed, or it took too long."""
        if isinstance(need, Recall):
            return None if self.learning is None else await self.learning.conversation.recall(need.prompt)
        if isinstance(need, Usage):
            return None if self.learning is None else await self.learning.answer(need)
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


def _advance(steps: Planning, answered: Answer) -> Need | Plan:
    try:
        return steps.send(answered)
    except StopIteration as done:
        made: Plan = done.value
        return made
