"""A counter brought into line with what the upstream billed: fitted if it estimates, anchored if a prefix is known."""

import math
from collections.abc import Sequence

import msgspec

from policies.budget import Margin
from policies.counting import Bill, Counter
from policies.counting.calibration import Calibration
from policies.counting.observed import Anchor, Seen
from policies.counting.rounds import shares
from policies.facts import Facts
from policies.request import Item, Prompt

_CONSTANT, _MESSAGE, _TEXT, _MEDIA, _SEALED, _CALL, _PREAMBLE, _TOOL, _SCHEMA, _FORCED = range(10)


class Calibrated:
    """`base` as `calibration` corrects it. With an `anchor`, what a prompt costs is what the anchor's was billed and
    what ours counts more (or less) than the anchor's prompt: only the difference is ever guessed."""

    def __init__(
        self, base: Counter, calibration: Calibration, anchor: Anchor | None = None, *, careful: bool = False
    ) -> None:
        """A calibration of another counter is left aside. `careful`: no count is below that of `base`, but for media
        that it could not measure. Servers bill too little for many reasons, and a prompt that is too long is refused,
        whatever was billed before."""
        self.base, self._careful = base, careful
        self.calibration = calibration if calibration.counter == base.name else Calibration.before(base.name)
        self.anchor = anchor
        fitted = self.calibration.changes
        self.name = base.name.replace("estimate", "calibrated", 1) if fitted else base.name
        if anchor is not None:
            self.name += " anchored"
            self._anchored = self.calibration.total(anchor.seen)
        self._last: tuple[Prompt, Seen] | None = None  # bill and margin are asked of the same prompt

    def bill(self, prompt: Prompt) -> Bill:
        """Each part corrected by itself; what belongs to none of them, and what the anchor adds, is overhead."""
        bill = self.base.bill(prompt)
        if self.anchor is None and not self.calibration.changes:
            return bill
        total = self._total(self.seen(prompt, bill))
        known = self.base.all_facts(prompt.messages)
        messages = [self._message(tokens, facts) for tokens, facts in zip(bill.messages, known, strict=True)]
        tools = [self._tool(tokens) for tokens in bill.tools]
        rest = total - sum(messages) - sum(tools)
        if rest < 0:
            parts = shares(total, [*messages, *tools])
            messages, tools = parts[: len(messages)], parts[len(messages) :]
            rest = total - sum(parts)
        return Bill(tuple(messages), tuple(tools), rest, bill.exact, bill.names)

    def margin(self, prompt: Prompt) -> Margin:
        """What to keep free beside the count of `prompt`."""
        return self.calibration.room(self.seen(prompt), self.anchor.seen.unmeasured if self.anchor else 0)

    def seen(self, prompt: Prompt, bill: Bill | None = None) -> Seen:
        """The prompt as an observation or an anchor tells of it; `bill` is the base counter's, where it is known."""
        if self._last is None or self._last[0] is not prompt:
            self._last = prompt, Seen.of(prompt, self.base, bill)
        return self._last[1]

    def facts(self, item: Item) -> Facts:
        """What is known of a message, its tokens corrected."""
        return self._corrected(self.base.facts(item))

    def all_facts(self, items: Sequence[Item]) -> Sequence[Facts]:
        """`facts` of each."""
        known = self.base.all_facts(items)
        return [self._corrected(facts) for facts in known] if self.calibration.changes else known

    def text(self, text: str) -> int:
        """Tokens of a bare text, corrected."""
        tokens = self.base.text(text)
        return self._least(math.ceil(tokens * self.calibration.weights[_TEXT]), tokens)

    def new_bytes(self, prompt: Prompt) -> int:
        """Bytes of messages and tools that were not counted before."""
        return self.base.new_bytes(prompt)

    def _total(self, seen: Seen) -> int:
        """An anchor speaks for as much of itself as is still there: of a prompt half as long, with half its voice."""
        total = self.calibration.total(seen)
        if self.anchor is not None:
            off = self.anchor.billed - self._anchored
            total = max(0, total + (off if total >= self._anchored else off * total // self._anchored))
        return self._least(total, seen.total - seen.unmeasured)

    def _least(self, corrected: int, ours: int) -> int:
        return max(corrected, ours) if self._careful else corrected

    def _corrected(self, facts: Facts) -> Facts:
        tokens = self._message(facts.tokens, facts)
        return facts if tokens == facts.tokens else msgspec.structs.replace(facts, tokens=tokens)

    def _message(self, tokens: int, facts: Facts) -> int:
        weights, sealed = self.calibration.weights, facts.sealed
        content = (tokens - sealed) * weights[_MEDIA if facts.media else _TEXT]
        calls = len(facts.call_names) * weights[_CALL]
        least = 0 if facts.media and not facts.exact else tokens
        return self._least(max(0, int(content + sealed * weights[_SEALED] + calls + weights[_MESSAGE])), least)

    def _tool(self, tokens: int) -> int:
        weights = self.calibration.weights
        return self._least(max(0, int(tokens * weights[_SCHEMA] + weights[_TOOL])), tokens)
