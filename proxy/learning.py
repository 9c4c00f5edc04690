"""One request's share in what bills teach: what is known when it is planned, and what its own bill adds."""

from typing import Any

from policies.counting import Counter
from policies.counting.calibrated import Calibrated
from policies.counting.calibration import Calibration
from policies.counting.margins import EXACT
from policies.counting.observed import Anchor, Observation, Seen, is_estimate
from policies.needs import Learned, Usage
from policies.request import Prompt
from proxy.calibrating import Calibrating, Place
from proxy.observe import Record
from proxy.planner import Call
from proxy.recall import Conversation

MOST_NEW = 16_000  # bytes of the sent prompt that may have to be counted again to learn from its bill


class Learning:
    """`lasting`: the conversation's own bills go to the ledger."""

    __slots__ = ("_all", "_anchoring", "_calibration", "_lasting", "_place", "conversation")

    def __init__(
        self, calibrating: Calibrating, call: Call, model: str, conversation: Conversation, *, lasting: bool
    ) -> None:
        self._all, self.conversation, self._lasting = calibrating, conversation, lasting
        self._place = Place(call.tenant, call.upstream.name, model)
        self._anchoring, self._calibration = False, Calibration()

    async def answer(self, need: Usage) -> Learned | None:
        """None: the base counter is right as it is, as far as anybody knows."""
        known = await self._all.known(self._place, need.counter)
        fresh = known.of(need.counter)
        if not need.close:
            self._calibration = fresh
            return Learned(fresh, fresh) if fresh.changes else None
        if need.exact and not known.off:
            return None
        self._anchoring = True
        self._calibration = frozen = await self._frozen(need, fresh)
        return Learned(frozen, fresh, await self._all.anchor(self._place.tenant, self.conversation.links))

    async def _frozen(self, need: Usage, fresh: Calibration) -> Calibration:
        """What the conversation's epoch began with; a new conversation begins with what is known now."""
        recorded = await self.conversation.recall(need.prompt)
        if recorded is None or not recorded.count or recorded.moved:
            return fresh
        return Calibration.decode(recorded.calibration) if recorded.calibration else Calibration.before(need.counter)

    def counter(self, base: Counter) -> Counter:
        """`base` as it was corrected for this request, for texts that are put behind it."""
        return Calibrated(base, self._calibration) if self._calibration.changes else base

    def billed(self, base: Counter, prompt: Prompt, record: Record, usage: dict[str, Any]) -> None:
        """The upstream told its `usage` of `prompt`, which is what was sent, and of whose count `record` tells."""
        tokens, cached = first_prompt(usage)
        counted, report = record.forwarded_total, record.report
        if not tokens or not counted or report.counter.startswith("server"):
            return
        short = max(0, tokens - counted)
        right = report.exact and not is_estimate(base.name) and short <= EXACT.share * counted + EXACT.constant
        if right and not self._anchoring:
            self._all.agreed(self._place, base.name, counted, short)
        elif not (self._anchoring or self._all.has_time(self._place)) or base.new_bytes(prompt) > MOST_NEW:
            self._all.lose()
        else:
            seen = Seen.of(prompt, base)
            self._all.observe(self._place, base.name, Observation(seen, tokens, counted, cached))
            if self._anchoring and (anchor := Anchor.of(seen, tokens, cached)) is not None:
                ours, tenant = self.conversation, self._place.tenant
                self._all.keep(tenant, ours.id, ours.links[-1], anchor, lasting=self._lasting)


def first_prompt(usage: dict[str, Any]) -> tuple[int, int]:
    """Prompt tokens of the request as it left, and how many of them were cached; of hidden rounds behind it both the
    prompts and the cache are their own. Zeros for what is not told."""
    ours = usage.get("edgewise")
    if isinstance(ours, dict) and isinstance(rounds := ours.get("rounds"), list) and rounds:
        return (_number(rounds[0], "prompt_tokens"), 0)
    return _number(usage, "prompt_tokens"), _number(usage.get("prompt_tokens_details"), "cached_tokens")


def _number(holder: object, name: str) -> int:
    value = holder.get(name) if isinstance(holder, dict) else None
    return value if type(value) is int else 0
