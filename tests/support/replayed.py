"""Recorded requests replayed as the proxy meets them: count with what was learned so far, then observe the bill."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from support.converted import chat_of, sayable
from support.recorded import Recorded, prompt_of, recorded

from policies.counting import Counter
from policies.counting.calibrated import Calibrated
from policies.counting.calibration import Calibration
from policies.counting.models import Counters
from policies.counting.observed import Anchor, Observation, State, observe
from policies.request import Prompt

AFTER = 10  # observations


class Row(NamedTuple):
    """One replayed row; `prior`, `fitted` and `counted` are tokens, `room` what the margin adds to the last."""

    row: Recorded
    prompt: Prompt
    prior: int
    fitted: int
    counted: int
    room: int
    anchored: bool

    def error(self, counted: int) -> float:
        return abs(counted - self.row.billed) / self.row.billed

    @property
    def covered(self) -> bool:
        return self.row.billed <= self.counted + self.room

    @property
    def gemini(self) -> bool:
        return "gemini" in self.row.model

    @property
    def said(self) -> bool:
        return sayable(self.row.api, self.row.request)


Group = tuple[str, str]  # upstream and model
Replayed = dict[Group, list[Row]]


def others() -> list[Recorded]:
    """All rows that are not api.openai.com's. Skips the calling test where the data is absent."""
    return [row for row in recorded() if not (row.api == "chat" and row.host == "api.openai.com")]


def replay_all(rows: Iterable[Recorded], counters: Counters, minimum: int) -> Replayed:
    """The groups of more than `minimum` rows; of each the rows after `AFTER` observations."""
    groups: dict[Group, list[Recorded]] = defaultdict(list)
    for row in rows:
        groups[row.host, row.model].append(row)
    return {
        group: replay(found, counters.of(group[1]))[AFTER:]
        for group, found in sorted(groups.items(), key=lambda item: -len(item[1]))
        if len(found) > minimum
    }


def replay(rows: Sequence[Recorded], base: Counter) -> list[Row]:
    """One upstream's model as the proxy meets it: count, then observe."""
    state, anchors, replayed = State(), Anchors(), []
    for row in rows:
        prompt = prompt_of(chat_of(row.api, row.request))
        calibration = Calibration.of(state, base.name)
        anchor = anchors.of(prompt)
        fitted, counter = Calibrated(base, calibration), Calibrated(base, calibration, anchor)
        counted, room = counter.bill(prompt).total, counter.margin(prompt)
        tokens = int(counted * room.share) + room.constant
        prior, plain = base.bill(prompt).total, fitted.bill(prompt).total
        replayed.append(Row(row, prompt, prior, plain, counted, tokens, anchor is not None))
        seen = counter.seen(prompt)
        state = observe(state, Observation(seen, row.billed, counted), base.name)
        anchors.add(prompt, Anchor.of(seen, row.billed))
    return replayed


class Anchors:
    """The bills of known prefixes, as the ledger keeps them."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Anchor] = {}

    def of(self, prompt: Prompt) -> Anchor | None:
        """That of the longest prefix that was billed."""
        for length in range(len(prompt.messages), 0, -1):
            if (found := self._known.get(_key(prompt, length))) is not None:
                return found
        return None

    def add(self, prompt: Prompt, anchor: Anchor | None) -> None:
        if anchor is not None:
            self._known[_key(prompt, len(prompt.messages))] = anchor


def _key(prompt: Prompt, length: int) -> tuple[object, ...]:
    messages = tuple(item.key for item in prompt.messages[:length])
    return messages, tuple(item.key for item in prompt.tools), prompt.tool_choice
