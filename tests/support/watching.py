"""What may never happen in a conversation, looked for in what is forwarded (DESIGN 1.1, 1.3, 1.5)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from support.grammar import introduced, unrepaired
from support.talks import Talk

from policies.plan import Plan
from policies.recorded import decoded, encoded
from policies.request import ChatRequest, Item

SILENT = ("system", "developer", "tool", "function")  # roles that neither ask nor call


@dataclass(frozen=True)
class Seen:
    """A request that was forwarded: what was received, and what was sent."""

    received: Sequence[Item]
    sent: Sequence[bytes]
    tools: Sequence[bytes]
    stand_ins: int = 0  # results at the end that nobody sent, for calls whose own may still come


@dataclass
class Watcher:
    """Sends a conversation through the core. `problems` are what should not have happened."""

    talk: Talk
    once: Sequence[str] = ()  # texts that may not stand twice in one message
    problems: list[str] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    opened: int = 0
    refused: int = 0

    def send(self, body: bytes) -> Plan:
        request, made = self.talk.send(body)
        where = f"request {len(self.seen) + self.refused}, {len(request.prompt.messages)} messages"
        found = [*self._recorded(made), *self._fits(made)]
        if made.refusal is not None:
            self.refused += 1
        else:
            found += [*_valid(request, made), *self._append_only(request, made), *self._once(made)]
            self.seen.append(_seen(request, made))
        self.opened += made.opened
        self.problems += [f"{where}: {problem}" for problem in found]
        return made

    def _recorded(self, made: Plan) -> list[str]:
        found = [f"the step {name} broke" for name in made.failed_steps]
        if made.record is not None and decoded(encoded(made.record)) != made.record:
            found.append("the record does not read back as it was written")
        return found

    def _fits(self, made: Plan) -> list[str]:
        total, limit = self.talk.counter.bill(made.prompt).total, made.budget.limit
        if made.refusal is None and limit is not None and total > limit:
            return [f"{total} of {limit} tokens sent"]
        return [] if made.refusal is not None or total == made.sent_total else ["the report says another total"]

    def _once(self, made: Plan) -> list[str]:
        texts = [(at, item.raw, text.encode()) for at, item in enumerate(made.prompt.messages) for text in self.once]
        return [f"message {at} holds {text!r} twice" for at, raw, text in texts if raw.count(text) > 1]

    def _append_only(self, request: ChatRequest, made: Plan) -> list[str]:
        before = self._before(request.prompt.messages)
        if before is None or made.opened:
            return []
        sent = [item.raw for item in made.prompt.messages]
        head = before.sent[: len(before.sent) - before.stand_ins]
        at = next((at for at, raw in enumerate(head) if at >= len(sent) or sent[at] != raw), None)
        found = []
        if at is not None:
            now = sent[at][:120] if at < len(sent) else None
            found.append(f"message {at} of {len(head)} was {head[at][:120]!r} and is {now!r}, epoch {made.epoch}")
        if [item.raw for item in made.prompt.tools] != list(before.tools):
            found.append("the tools changed")
        return found

    def _before(self, messages: Sequence[Item]) -> Seen | None:
        """The longest request before this one, the latest of these, that this one goes on from."""
        raws = [item.raw for item in messages]
        fitting = [one for one in self.seen if [item.raw for item in one.received] == raws[: len(one.received)]]
        return max(reversed(fitting), key=lambda one: len(one.received), default=None)


def _seen(request: ChatRequest, made: Plan) -> Seen:
    stand_ins = 0
    for span in reversed([span for span in made.sent if span.kind == "message"]):
        if span.id[0] != "n" or not span.is_result:
            break
        stand_ins += 1
    sent = [item.raw for item in made.prompt.messages]
    return Seen(request.prompt.messages, sent, [item.raw for item in made.prompt.tools], stand_ins)


def _valid(request: ChatRequest, made: Plan) -> list[str]:
    if made.prompt is request.prompt:
        return []
    before, after = json.loads(request.body), json.loads(request.forward(made.prompt))
    new = introduced(before, after)
    repairable = any(message.get("role") not in SILENT for message in before["messages"])
    left = [fault for fault in unrepaired(after) if fault not in new] if repairable else []
    texts = "\n".join(str(message.get("content")) for message in after["messages"])
    rules = [one["content"] for one in before["messages"] if one["role"] == "system"]
    lost = [f"lost: {rule[:40]}" for rule in rules if rule not in texts]
    return [f"invalid: {fault}" for fault in new] + [f"unrepaired: {fault}" for fault in left] + lost
