"""The picture in README.md: tokens of each turn of the demo, as received from the agent and as sent to the model.

`tools/readme.py` runs the demo and writes the picture to docs/demo.svg. Both charts have one scale, and the page that
shows them may be light or dark.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Turn = Mapping[str, Any]  # an object that `edgewise demo --json` prints

WIDTH, HEIGHT = 860, 464
LEFT, RIGHT = 64, 844  # of the charts
BASES = (320, 428)  # where the bars of each chart stand
TALLEST = 212  # pixels of the heaviest turn
BAR = 13  # pixels
STAGES = (("received", "received from the agent"), ("sent", "sent to the model"))
SERIES = (("tools", "tools"), ("history", "history"), ("tool_results", "tool results"))
REST = ("rest", "system, newest question, overhead, notes")
FONT = 'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif"'
STYLE = """
.title { font-size: 16px } .title, .bold { font-weight: 600 }
.page { fill: #fcfcfb; stroke: #e1e0d9 } .ink { fill: #1f1f1e } .soft { fill: #5f5e59 } .line { stroke: #d6d5ce }
.limit { stroke: #1f1f1e } .rest { fill: #8a8880 } .tools { fill: #2a78d6 } .history { fill: #1baf7a }
.tool_results { fill: #eb6834 }
@media (prefers-color-scheme: dark) {
.page { fill: #1a1a19; stroke: #383835 } .ink { fill: #f4f3ef } .soft { fill: #b4b2aa } .line { stroke: #3c3b38 }
.limit { stroke: #f4f3ef } .rest { fill: #8f8d86 } .tools { fill: #3987e5 } .history { fill: #199e70 }
.tool_results { fill: #d95926 } }
"""


def picture(turns: Sequence[Turn]) -> str:
    """An SVG. It says in words, too, what it shows."""
    parts = [*_head(turns), *_legend()]
    for (stage, title), base in zip(STAGES, BASES, strict=True):
        parts += _chart(turns, stage, title, base)
    return "\n".join([*parts, "</svg>", ""])


def _head(turns: Sequence[Turn]) -> Iterator[str]:
    last, limit = turns[-1], turns[-1]["limit"]
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" {FONT} font-size="12">'
    yield (
        f"<title>{len(turns)} turns of an agent: at the end {last['received_total']:,} tokens are received and "
        f"{last['sent_total']:,} sent; the limit is {limit:,}.</title>"
    )
    yield f"<style>{STYLE}</style>"
    yield f'<rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8"/>'
    yield _text(24, 32, f"An agent's {len(turns)} turns: prompt tokens by who pays for them", "ink title")


def _legend() -> Iterator[str]:
    x = 24
    for name, title in (*SERIES, REST):
        yield f'<rect class="{name}" x="{x}" y="48" width="11" height="11" rx="2"/>'
        yield _text(x + 17, 58, title, "soft")
        x += 40 + 7 * len(title)


def _chart(turns: Sequence[Turn], stage: str, title: str, base: int) -> Iterator[str]:
    scale = TALLEST / max(turn["received_total"] for turn in turns)
    step = (RIGHT - LEFT) / len(turns)
    limit = base - turns[-1]["limit"] * scale
    height = max(turn[f"{stage}_total"] for turn in turns) * scale
    heading = base - max(height, base - limit) - 12
    yield _text(24, heading if stage == "sent" else 92, title, "ink bold")
    yield f'<line class="line" x1="{LEFT}" x2="{RIGHT}" y1="{base}" y2="{base}"/>'
    for index, turn in enumerate(turns):
        yield from _bar(turn, stage, round(LEFT + index * step + (step - BAR) / 2, 1), base, scale)
        if turn["turn"] == 1 or turn["turn"] % 10 == 0:
            yield _text(LEFT + (index + 0.5) * step, base + 16, str(turn["turn"]), "soft", anchor="middle")
    yield f'<line class="limit" x1="{LEFT}" x2="{RIGHT}" y1="{limit:.1f}" y2="{limit:.1f}" stroke-dasharray="4 3"/>'
    yield _text(LEFT - 6, limit + 4, f"{turns[-1]['limit']:,}", "ink", anchor="end")
    if stage == "received":
        yield _text(LEFT, limit - 6, "the limit: what fits beside the answer", "soft")
    yield _text(LEFT - 6, base + 16, "turn", "soft", anchor="end")
    top = base - turns[-1][f"{stage}_total"] * scale
    yield _text(RIGHT, min(top, limit) - 6, f"{turns[-1][f'{stage}_total']:,}", "ink bold", anchor="end")


def _bar(turn: Turn, stage: str, x: float, base: float, scale: float) -> Iterator[str]:
    buckets, y = turn[stage], base
    named = {name: buckets.get(name, 0) for name, _ in SERIES}
    named["rest"] = turn[f"{stage}_total"] - sum(named.values())
    for name in ("rest", *(name for name, _ in SERIES)):
        height = named[name] * scale
        if height >= 0.05:
            y -= height
            yield f'<rect class="{name}" x="{x}" y="{y:.1f}" width="{BAR}" height="{height:.1f}"/>'


def _text(x: float, y: float, said: str, kind: str, *, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:.1f}" text-anchor="{anchor}">{said}</text>'
