"""`edgewise demo`: an agent's forty turns through a real proxy on loopback, and what became of every prompt."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx2

from policies.messages import Call, Message
from policies.request import ChatRequest
from proxy.app import create_app
from proxy.cli.commands import settings_of
from proxy.cli.demo_data import MODEL, RULE, STORY, SYSTEM, Step, size
from proxy.cli.demo_table import Turn, heading, line, summary
from proxy.cli.demo_tools import TOOLS, pick, run
from proxy.cli.embedded import Embedded, Said
from proxy.cli.serving import tokens
from proxy.cli.tables import Paint
from proxy.loopback import listening, plain
from proxy.planning import planner_of
from proxy.server import configure

TIMEOUT = 30.0  # seconds for one request on loopback
KEY = "demo"  # the agent's credential: its requests are shown to itself alone


def demo(options: argparse.Namespace) -> int:
    """Print the turns as they happen, then a summary. Raises Fault."""
    paint, turns = Paint.of(sys.stdout), []
    with _proxy(options.window) as (address, model):
        if not options.json:
            print(heading(options.window, len(STORY), len(TOOLS), paint), flush=True)
        for turn in _investigate(address):
            turns.append(turn)
            print(turn.as_json() if options.json else line(turn, paint), flush=True)
        kept = model.kept_rule and model.kept_task
    said = summary(turns, kept=kept)
    print(json.dumps({"summary": said}) if options.json else said["text"])
    return 0


@contextmanager
def _proxy(window: int) -> Iterator[tuple[str, "Model"]]:
    """The proxy's address, and the model behind it; all of it in this process, on ports of 127.0.0.1."""
    own = settings_of(upstream="http://127.0.0.1:1/v1", window=window, mode="enforce", port=0, log_level="error")
    model = Model()
    upstream = Embedded(tokens(own), model.answer, window)
    with listening(plain(upstream)) as base:
        settings = settings_of(upstream=f"{base}/v1", window=window, mode="enforce", port=0, log_level="error")
        app = create_app(settings, planner=planner_of(settings))
        with listening(configure(settings, app)) as address:
            yield address, model


class Model:
    """Answers as the story says: it finds its place by the newest question, which no proxy may take from it.

    `kept_rule` and `kept_task` say whether every prompt so far held the rule of the system text and the question.
    """

    def __init__(self) -> None:
        self.kept_rule = self.kept_task = True
        self._steps = {step.asks: step for step in STORY}

    def answer(self, request: ChatRequest, _: int) -> Said:
        messages = [Message.of(item.raw) for item in request.prompt.messages]
        self.kept_rule &= any(message.role == "system" and RULE in message.text for message in messages)
        step = next((found for message in reversed(messages) if (found := self._step(message))), None)
        self.kept_task &= step is not None
        if step is None:
            return Said("I do not know what I was asked.")
        if messages[-1].role == "tool":
            return Said(step.concludes)
        arguments = json.dumps(step.arguments)
        return Said(calls=(Call(f"call_{pick(step.asks):08x}", step.tool, arguments),))

    def _step(self, message: Message) -> Step | None:
        if message.role != "user":
            return None
        return next((step for asks, step in self._steps.items() if asks in message.text), None)


def _investigate(address: str) -> Iterator[Turn]:
    """The agent: it sends all of its history each time, as agents do."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
    with httpx2.Client(base_url=address, headers={"authorization": f"Bearer {KEY}"}, timeout=TIMEOUT) as client:
        for number, step in enumerate(STORY, 1):
            messages.append({"role": "user", "content": step.asks})
            request_id = ""
            while messages[-1]["role"] != "assistant" or "tool_calls" in messages[-1]:
                messages += _results(messages[-1], number)
                request_id, message = _ask(client, messages)
                messages.append(message)
            past = client.get(f"/context/requests/{request_id}").raise_for_status().json()
            yield Turn(number, step.asks, step.tool, past)


def _ask(client: httpx2.Client, messages: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    body = {"model": MODEL, "messages": messages, "tools": TOOLS}
    response = client.post("/v1/chat/completions", json=body).raise_for_status()
    message: dict[str, Any] = response.json()["choices"][0]["message"]
    del message["refusal"]
    return response.headers["edgewise-request-id"], message


def _results(message: Mapping[str, Any], turn: int) -> list[dict[str, Any]]:
    """What the tools answer to the calls of a message."""
    return [
        {
            "role": "tool",
            "tool_call_id": call["id"],
            "content": run(call["function"]["name"], json.loads(call["function"]["arguments"]), size(turn)),
        }
        for call in message.get("tool_calls", ())
    ]
