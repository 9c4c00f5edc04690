"""Does a model call the right tool more often when `select-tools` shows it fewer?

Thirty tools and sixty questions of our own (`data/`), half in English and half in Chinese, most of them without the
words of the tool that they need. A real model of 1.5 billion parameters on loopback answers each question twice: with
the whole catalogue, and with what the step keeps when the same model is asked first, as the side model, which tools may
be needed. A call is right when its name is; a tool costs the tokens of its JSON by the server's own tokenizer.

    python e2e/select_tools.py [--questions N] [--base URL]

The bar: at least as many right calls, at no more than 45 % of the catalogue's tokens. Exit code 1 on a miss, 2 where
the model or the server cannot be fetched.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from processes import NotAvailable
from server import fetch_model, post_json, serving

from policies.budget import Budget
from policies.counting.models import counter_for
from policies.needs import Answer, Ask, Need, Reply, solve
from policies.pipeline import plan_once
from policies.plan import Plan
from policies.request import ChatRequest, Item
from policies.steps.select_tools import SelectTools
from policies.tools import Tool
from proxy import promptfiles, ranks
from proxy.policyfile import load

DATA = Path(__file__).parent / "data"
TEMPLATE = "qwen25coder-fence.jinja"
CONTEXT = 8192  # tokens
SYSTEM = "You are a helpful assistant. Use the functions."
ANSWER_TOKENS = 80
PATIENCE = 1800  # seconds for one answer: the machine may be busy
SHARE = 0.45  # of the catalogue's tokens, at most
STEP = SelectTools(mode="model", when="always")


class Question(msgspec.Struct, frozen=True):
    language: str
    tool: str
    question: str


class Tried(msgspec.Struct, frozen=True):
    """One question: the names that were offered and called, tokens of the tools, seconds."""

    asked: Question
    offered: tuple[str, ...]
    called: str
    tokens: int
    seconds: float

    @property
    def right(self) -> bool:
        return self.called == self.asked.tool


NONE: Mapping[bytes, Tried] = {}


class Server:
    """The model: as the main one, and as the side model."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._costs: dict[bytes, int] = {}
        self._side = promptfiles.load()
        self.side_tokens = 0

    def called(self, body: bytes) -> str:
        """The name of the first function that the model calls, "" when it answers in words."""
        message = post_json(f"{self._base}/chat/completions", body, PATIENCE)["choices"][0]["message"]
        calls = message.get("tool_calls") or []
        return str(calls[0]["function"]["name"]) if calls else ""

    def cost(self, tools: Sequence[Item]) -> int:
        """Tokens of the tools' JSON."""
        for item in tools:
            if item.key not in self._costs:
                body = json.dumps({"content": item.raw.decode()}).encode()
                tokens = post_json(f"{self._base.removesuffix('/v1')}/tokenize", body, PATIENCE)["tokens"]
                self._costs[item.key] = len(tokens)
        return sum(self._costs[item.key] for item in tools)

    def answer(self, need: Need) -> Answer:
        """What the side model says."""
        if not isinstance(need, Ask):
            return None
        instructions, message = self._side[need.prompt].filled(need.values)
        asked = [{"role": "system", "content": instructions}, {"role": "user", "content": message}]
        body = {"model": "side", "messages": asked, "max_tokens": need.max_tokens, "temperature": 0}
        said = post_json(f"{self._base}/chat/completions", json.dumps(body).encode(), PATIENCE)
        self.side_tokens += said["usage"]["total_tokens"]
        return Reply(said["choices"][0]["message"]["content"] or "", said["usage"]["total_tokens"])


def requests_of(questions: Sequence[Question], tools: Sequence[Mapping[str, Any]]) -> list[ChatRequest]:
    """Each question with the whole catalogue."""
    return [_request(asked, tools) for asked in questions]


def choose(server: Server, requests: Sequence[ChatRequest]) -> Iterator[Plan]:
    """What the step keeps for each. The questions to the side model share a prefix, which its server caches."""
    policy = replace(load("balanced"), steps=(STEP,))
    counter = counter_for("gpt-4o", ranks.load)
    for request in requests:
        yield solve(plan_once(request, policy, counter, Budget(CONTEXT)), server.answer)


def tried(
    server: Server, questions: Sequence[Question], requests: Sequence[ChatRequest], known: Mapping[bytes, Tried] = NONE
) -> Iterator[Tried]:
    """What the model calls. A request that was answered already, as nothing was taken from it, is not asked again."""
    for asked, request in zip(questions, requests, strict=True):
        yield known.get(request.body) or _tried(server, asked, request.body, request.prompt.tools)


def _request(asked: Question, tools: Sequence[Mapping[str, Any]]) -> ChatRequest:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": asked.question}]
    body = {"model": "main", "messages": messages, "tools": tools, "max_tokens": ANSWER_TOKENS, "temperature": 0}
    return ChatRequest.parse(json.dumps(body, ensure_ascii=False).encode())


def _tried(server: Server, asked: Question, body: bytes, tools: Sequence[Item]) -> Tried:
    started = time.monotonic()
    called = server.called(body)
    seconds = time.monotonic() - started
    return Tried(asked, tuple(Tool.of(item.raw).name for item in tools), called, server.cost(tools), seconds)


def kept(questions: Sequence[Question], requests: Sequence[ChatRequest], plans: Iterator[Plan]) -> list[ChatRequest]:
    """Print each choice as it comes; the requests that are left."""
    print("What select-tools keeps", flush=True)
    left: list[ChatRequest] = []
    for asked, request, plan in zip(questions, requests, plans, strict=True):
        names = [Tool.of(item.raw).name for item in plan.prompt.tools]
        mark = "kept" if asked.tool in names else "LOST"
        told = ", ".join(names) if len(names) < len(plan.received) - 2 else "all"
        print(f"  {mark} {asked.language} {asked.tool:26} {len(names):2} tools: {told}", flush=True)
        left.append(ChatRequest.parse(request.forward(plan.prompt)))
    return left


def told(title: str, answers: Iterator[Tried]) -> list[Tried]:
    """Print each one as it comes, and the sum."""
    print(f"\n{title}", flush=True)
    done: list[Tried] = []
    for one in answers:
        done.append(one)
        mark = "right" if one.right else "WRONG" if one.asked.tool in one.offered else "LOST "
        print(
            f"  {mark} {one.asked.language} {one.asked.tool:26} called {one.called or '-':26} "
            f"{len(one.offered):2} tools {one.tokens:5} tokens {one.seconds:5.1f} s",
            flush=True,
        )
    return done


def verdict(full: Sequence[Tried], few: Sequence[Tried], side_tokens: int) -> bool:
    """Print the figures; whether the bar is met."""
    share = sum(one.tokens for one in few) / sum(one.tokens for one in full)
    for language in ("en", "zh"):
        pairs = [(a, b) for a, b in zip(full, few, strict=True) if a.asked.language == language]
        right = [sum(one.right for one in side) for side in zip(*pairs, strict=True)] if pairs else [0, 0]
        lost = sum(b.asked.tool not in b.offered for _, b in pairs)
        print(f"{language}: {len(pairs)} questions, right with all {right[0]}, with few {right[1]}; tool lost {lost}")
    before, after = sum(one.right for one in full), sum(one.right for one in few)
    print(
        f"both: right with all {before}, with few {after} of {len(full)}; tools kept "
        f"{sum(len(one.offered) for one in few) / len(few):.1f}, their tokens {share:.1%} of the catalogue's "
        f"{full[0].tokens}; the side model cost {side_tokens / len(few):.0f} tokens a question"
    )
    return after >= before and share <= SHARE


@contextmanager
def _server(base: str | None) -> Iterator[str]:
    if base is not None:
        yield base
        return
    with serving(fetch_model("1.5b"), CONTEXT, TEMPLATE) as own:
        yield own


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=30, help="of each language, at most")
    parser.add_argument("--base", help="base URL of a server that runs already")
    given = parser.parse_args()
    tools = json.loads((DATA / "assistant_tools.json").read_bytes())
    every = msgspec.json.decode((DATA / "assistant_questions.json").read_bytes(), type=list[Question])
    some = [one for at, one in enumerate(every) if at % 30 < given.questions]
    try:
        with _server(given.base) as base:
            server = Server(base)
            requests = requests_of(some, tools)
            reduced = kept(some, requests, choose(server, requests))
            full = told("With the whole catalogue", tried(server, some, requests))
            known = {request.body: one for request, one in zip(requests, full, strict=True)}
            few = told("With what select-tools keeps", tried(server, some, reduced, known))
    except NotAvailable as error:
        print(error, file=sys.stderr)
        return 2
    met = verdict(full, few, server.side_tokens)
    print("bar: at least as many right, at most 45 % of the catalogue's tokens:", "met" if met else "MISSED")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
