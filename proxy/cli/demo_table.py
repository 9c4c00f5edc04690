"""How the demo shows its turns: tokens per bucket, received and sent, and what was done."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from proxy.cli.tables import Paint, clip, figure

COLUMNS = ("system", "tools", "history", "tool_results", "current_turn", "overhead")
TITLES = {"tool_results": "results", "current_turn": "newest", "overhead": "other"}
WIDTH = 8  # columns of a figure
VERBS = {
    "rewrite": "said shorter",
    "elide": "stubbed",
    "drop": "dropped",
    "inject": "added",
    "repair": "repaired",
    "replay": "as before",
}


class Turn(msgspec.Struct, frozen=True):
    """A turn, with what the context API tells of its last request."""

    number: int
    asks: str
    tool: str
    past: Mapping[str, Any]

    @property
    def received(self) -> Mapping[str, int]:
        buckets: Mapping[str, int] = self.past["buckets"]["received"]
        return buckets

    @property
    def sent(self) -> Mapping[str, int]:
        buckets: Mapping[str, int] = self.past["buckets"]["sent"]
        return buckets

    @property
    def done(self) -> str:
        if self.past["outcome"] == "untouched":
            return "untouched"
        return ", ".join(f"{count} {VERBS[kind]}" for kind, count in self.past["done"].items())

    def as_json(self) -> str:
        keys = ("id", "outcome", "level", "limit", "done")
        told = {"turn": self.number, "asks": self.asks, "tool": self.tool} | {key: self.past[key] for key in keys}
        told |= {"received_total": self.past["received"], "sent_total": self.past["sent"]}
        return json.dumps(told | {"received": self.received, "sent": self.sent})


def heading(window: int, turns: int, tools: int, paint: Paint) -> str:
    titles = [TITLES.get(name, name) for name in ("total", *COLUMNS)]
    columns = "".join(title.rjust(WIDTH) for title in titles)
    return (
        f"An agent investigates an incident: {turns} turns, {tools} tools, a window of {figure(window)} tokens.\n"
        "Each turn shows the tokens of its last request by bucket, as received from the agent and as sent on.\n\n"
        + paint(f"turn            {columns}  what was asked, and done", "bold")
    )


def line(turn: Turn, paint: Paint) -> str:
    """Two lines, or one where the prompt went on as it came."""
    number = f"{turn.number:>4}"
    received = _figures(turn.past["received"], turn.received)
    asked = paint(clip(turn.asks, 48), "dim")
    if turn.past["outcome"] == "untouched":
        return f"{number} as it came {received}  {asked}"
    sent = paint(_figures(turn.past["sent"], turn.sent), "green")
    done = paint(f"{turn.past['level']}: {turn.done}", "yellow")
    return f"{number} received   {received}  {asked}\n     sent       {sent}  {done}"


def summary(turns: Sequence[Turn], *, kept: bool) -> dict[str, Any]:
    """Figures of all turns, and `text`, which says them."""
    first, last = turns[0], turns[-1]
    received = sum(turn.past["received"] for turn in turns)
    sent = sum(turn.past["sent"] for turn in turns)
    over = sum(turn.past["received"] > turn.past["limit"] for turn in turns)
    too_big = sum(turn.past["sent"] > turn.past["limit"] for turn in turns)
    told: dict[str, Any] = {
        "turns": len(turns),
        "limit": last.past["limit"],
        "edited": sum(turn.past["outcome"] == "edited" for turn in turns),
        "received_over_limit": over,
        "sent_over_limit": too_big,
        "received": received,
        "sent": sent,
        "rule_and_question_always_sent": kept,
    }
    always = "Every prompt sent held" if kept else "Not every prompt sent held"
    told["text"] = (
        f"\n{over} of {len(turns)} turns came with more than the {figure(last.past['limit'])} tokens that fit; "
        f"{too_big} went on with more.\n"
        f"Received {figure(received)} tokens, sent {figure(sent)} ({1 - sent / received:.0%} fewer).\n"
        f"On turn 1 {_heaviest(first)}; on turn {last.number} {_heaviest(last)}.\n"
        f"{always} the rule of the system text and the question that was asked."
    )
    return told


def _heaviest(turn: Turn) -> str:
    name = max(turn.received, key=lambda bucket: turn.received[bucket])
    share = turn.received[name] / turn.past["received"]
    return f"{name} were {share:.0%} of what was received"


def _figures(total: int, buckets: Mapping[str, int]) -> str:
    """The columns; what has none of its own is counted with `overhead`, so that they add up."""
    other = total - sum(buckets.get(name, 0) for name in COLUMNS[:-1])
    return "".join(figure(tokens).rjust(WIDTH) for tokens in (total, *(buckets.get(c, 0) for c in COLUMNS[:-1]), other))
