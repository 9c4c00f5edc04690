"""What README.md and ARCHITECTURE.md say of the product, made from the product itself.

    python tools/readme.py [--check]

Rewrites what stands between `<!-- NAME: ... -->` and `<!-- /NAME -->`, and docs/demo.svg. With --check nothing is
written; what would change is named, and the exit code is 1. Run it on the code that is installed.
"""

import ast
import dataclasses
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from picture import picture

from policies.policy import Policy
from policies.request import ChatRequest
from policies.step import Step
from policies.steps import STEPS
from proxy.app import create_app
from proxy.cli.demo_table import Turn, heading, line
from proxy.cli.demo_tools import TOOLS
from proxy.cli.tables import Paint
from proxy.engine import Engine
from proxy.planning import planner_of
from proxy.policyfile import load
from proxy.refusals import error_object
from proxy.settings import PREFIX, Settings

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "ARCHITECTURE.md")
PICTURE = "docs/demo.svg"
LONG = "Check this order. " * 1000  # README's example of what cannot fit
DEMO_WINDOW = 16_000  # tokens; the command's own default
SHOWN_TURNS = (1, 19, 20, 40)
SHOWN_TEXT = 64  # characters of a text in an example
SOURCE = re.compile(r" \((?:DESIGN|FACTS)[^)]*\)|, from FACTS \d| of FACTS \d")


def steps() -> str:
    """Of each step: what it is for, from which level on it acts, its keys and their defaults."""
    rows = [("step", "from level", "in `balanced`", "what it does", "keys and defaults")]
    default = {step.name for step in load("balanced").steps}
    for name, kind in STEPS.items():
        about = f"{first_sentences(sys.modules[kind.__module__].__doc__)}. {in_one_line(kind.__doc__)}"
        level = "always" if kind().level.value == "none" else f"`{kind().level.value}`"
        used = "yes" if name in default else ""
        rows.append((f"`{name}`", level, used, about, ", ".join(f"`{key}`" for key in _keys(kind()))))
    return table(rows)


def _keys(step: Step) -> Iterator[str]:
    """As a policy file would set them; what every step has is left out."""
    for field in dataclasses.fields(step):  # type: ignore[arg-type] # every step is a dataclass
        value = getattr(step, field.name)
        if field.name not in ("name", "level", "leaf"):
            yield f"{field.name} = {json.dumps(value, default=str)}"


def levels() -> str:
    """The pressures of the default policy."""
    rows = [("level", "entered at", "frees down to", "a request alone", "steps that may act")]
    policy = load("balanced")
    for level, rule in policy.levels.items():
        enter, free_to = rule.large or (rule.enter, rule.free_to)
        entered, freed = _pair(rule.enter, enter), _pair(rule.free_to, free_to)
        alone = f"{rule.alone.free_to:.2f}"
        rows.append((f"`{level.value}`", entered, freed, alone, _licensed(policy, level.value)))
    return table(rows)


def _pair(small: float, large: float) -> str:
    """With little room and with much."""
    return f"{small:.2f}" if small == large else f"{small:.2f} / {large:.2f}"


def _licensed(policy: Policy, level: str) -> str:
    own = ", ".join(f"`{step.name}`" for step in policy.steps if step.level.value == level)
    return own if level == next(iter(policy.levels)).value else f"and {own}"


def settings() -> str:
    rows = [("variable", "default", "what it is")]
    for name, field in Settings.model_fields.items():
        default = field.get_default(call_default_factory=True)
        shown = "" if default in (None, (), {}) else f"`{str(default).lower()}`"
        rows.append((f"`{PREFIX}{name.upper()}`", shown, field.description or ""))
    return table(rows)


def metrics() -> str:
    """Every family of ours that `/metrics` shows."""
    chosen = Settings(upstream="http://127.0.0.1:1/v1")
    app = create_app(chosen, planner=planner_of(chosen))
    rows = []
    for family in app.state.registry.collect():
        if family.name.startswith("edgewise_"):
            shown = family.name + ("_total" if family.type == "counter" else "")
            unit = " (histogram)" if family.type == "histogram" else ""
            labels = getattr(family, "_labelnames", ())  # the library tells them nobody in public
            rows.append((f"`{shown}`", ", ".join(f"`{label}`" for label in labels), family.documentation + unit))
    return table([("metric", "labels", "what it is"), *sorted(rows)])


def refusal() -> str:
    """What is answered to a request that cannot fit, its texts and repetitions shortened."""
    body = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": LONG}]}).encode()
    made = Engine(Settings(), load("balanced")).plan_sync(ChatRequest.parse(body), 2000)
    error = error_object(made, "ew_0123456789abcdef")
    told = error["edgewise"]
    told["buckets"] = {name: tokens for name, tokens in told["buckets"].items() if tokens}
    told["units"] = told["units"][:1]
    return f"```json\n{compact({'error': shortened(error)})}\n```"


def shortened(value: Any) -> Any:
    """Long texts cut; the message, which is ours, stays whole."""
    if isinstance(value, dict):
        return {key: one if key in ("message", "reason") else shortened(one) for key, one in value.items()}
    if isinstance(value, list):
        return [shortened(one) for one in value]
    if isinstance(value, str) and len(value) > SHOWN_TEXT:
        return f"{value[: SHOWN_TEXT // 2].rstrip()} … {value[-SHOWN_TEXT // 2 :].lstrip()}"
    return value


def compact(value: Any, indent: str = "") -> str:
    """JSON with one line for whatever fits into one."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(flat) <= 110 or not isinstance(value, dict | list):
        return flat
    inner = indent + "  "
    if isinstance(value, list):
        return "[\n" + ",\n".join(inner + compact(one, inner) for one in value) + f"\n{indent}]"
    members = (f"{inner}{json.dumps(key)}: {compact(one, inner)}" for key, one in value.items())
    return "{\n" + ",\n".join(members) + f"\n{indent}}}"


def excerpt(told: list[dict[str, Any]]) -> str:
    """What `edgewise demo` prints, less most of its turns, from what it prints with --json."""
    *turns, last = told
    plain = Paint()
    shown = [line(_turn(turn), plain) for turn in turns if turn["turn"] in SHOWN_TURNS]
    head = heading(DEMO_WINDOW, len(turns), len(TOOLS), plain)
    return "\n".join(["```text", *(text.rstrip() for text in (head, *shown, last["summary"]["text"])), "```"])


def _turn(told: dict[str, Any]) -> Turn:
    buckets = {"received": told["received"], "sent": told["sent"]}
    past = told | {"received": told["received_total"], "sent": told["sent_total"], "buckets": buckets}
    return Turn(told["turn"], told["asks"], told["tool"], past)


def tree() -> str:
    """One line for each file of the product: what its docstring opens with."""
    lines, folder = ["```text"], None
    paths = [path for package in ("policies", "proxy") for path in (ROOT / package).rglob("*.py")]
    for path in sorted(paths, key=lambda path: (path.parent, path.name)):
        about = first_sentences(ast.get_docstring(ast.parse(path.read_text("utf-8"))))
        if path.parent != folder:
            folder = path.parent
            lines.append(f"{folder.relative_to(ROOT)}/")
        if about:
            lines.append(f"  {path.name:<19} {about}")
    return "\n".join([*lines, "```"])


def first_sentences(text: str | None) -> str:
    """The first paragraph up to its first full stop, in one line, without references to design papers."""
    paragraph = in_one_line((text or "").split("\n\n")[0])
    sentence = re.split(r"(?<=[^.]\.) (?=[A-Z`])", paragraph)[0]
    return SOURCE.sub("", sentence).rstrip(".:").strip()


def in_one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def table(rows: Iterable[Iterable[str]]) -> str:
    """Markdown; the first row is the head."""
    head, *body = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def demo() -> list[dict[str, Any]]:
    """What `edgewise demo` tells: an object for each turn, then its summary."""
    command = [sys.executable, "-m", "proxy.cli.main", "demo", "--window", str(DEMO_WINDOW), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True)
    return [json.loads(one) for one in done.stdout.splitlines()]


MADE: dict[str, Callable[[], str]] = {
    "steps": steps,
    "levels": levels,
    "settings": settings,
    "metrics": metrics,
    "refusal": refusal,
    "tree": tree,
}


def made() -> dict[str, str]:
    """Every file by its name relative to the root, as it should be."""
    told = demo()
    texts = {name: make() for name, make in MADE.items()} | {"demo": excerpt(told)}
    pages = {page: filled((ROOT / page).read_text("utf-8"), texts) for page in PAGES}
    return pages | {PICTURE: picture(told[:-1])}


def filled(page: str, texts: dict[str, str]) -> str:
    """The page with every marked place filled. Raises KeyError for a name that nothing makes."""

    def put(found: re.Match[str]) -> str:
        return f"{found[1]}\n{texts[found[2]]}\n{found[4]}"

    return re.sub(r"(<!-- (\w+): [^>]*-->)\n(.*?)(<!-- /\2 -->)", put, page, flags=re.DOTALL)


def write(root: Path, pages: Mapping[str, str], *, check: bool) -> int:
    """Write what differs, or with `check` only name it; the exit code."""
    stale = [name for name, text in pages.items() if _read(root / name) != text]
    if check:
        print(
            f"readme: stale: {', '.join(stale)}; run python tools/readme.py" if stale else "readme: as the product is"
        )
        return 1 if stale else 0
    for name in stale:
        (root / name).write_text(pages[name], "utf-8")
    print(f"readme: written: {', '.join(stale) or 'nothing'}")
    return 0


def _read(path: Path) -> str | None:
    return path.read_text("utf-8") if path.exists() else None


if __name__ == "__main__":
    sys.exit(write(ROOT, made(), check="--check" in sys.argv))
