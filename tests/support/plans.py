"""Real plans of real requests, by the engine and the default policy."""

import json
from functools import cache
from typing import Any

from policies.plan import Plan
from policies.request import ChatRequest
from proxy.engine import Engine
from proxy.observe import About, Mode, Record
from proxy.policyfile import load
from proxy.settings import Settings

SECRET = "the-password-is-swordfish"  # stands in the texts of every request here, and may stand in no report
TOOL = {
    "type": "function",
    "function": {
        "name": "read_log",
        "description": "Read the log of a station.",
        "parameters": {"type": "object", "properties": {"station": {"type": "integer"}}},
    },
}


@cache
def engine() -> Engine:
    return Engine(Settings.load(), load("balanced"))


def small(**fields: Any) -> ChatRequest:
    """Fits every window."""
    messages = [{"role": "system", "content": f"Be brief. {SECRET}"}, {"role": "user", "content": "Which station?"}]
    return request(messages, tools=[TOOL], **fields)


def long(rounds: int = 12, **fields: Any) -> ChatRequest:
    """One turn of so many rounds, each with a result of about 500 tokens."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": f"Be brief. {SECRET}"},
        {"role": "user", "content": "Which station lost pressure?"},
    ]
    for number in range(rounds):
        call = {"id": f"call_{number}", "type": "function", "function": {"name": "read_log", "arguments": "{}"}}
        text = "\n".join(f"station {number} line {line} pressure {line * 7 % 50} bar, {SECRET}" for line in range(25))
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": text})
    return request(messages, tools=[TOOL], **fields)


def hopeless(**fields: Any) -> ChatRequest:
    """A newest user message that fits no small window, but can be split."""
    text = " ".join(f"Paragraph {number} tells of valve {number}." for number in range(900))
    return request([{"role": "user", "content": f"{text} {SECRET}"}], **fields)


def request(messages: list[dict[str, Any]], **fields: Any) -> ChatRequest:
    return ChatRequest.parse(json.dumps({"model": "gpt-4o", "messages": messages} | fields).encode())


def plan(of: ChatRequest, window: int | None = 4_000) -> Plan:
    return engine().plan_sync(of, window)


def record(made: Plan, name: str = "ew_1", *, tenant: str = "t1", mode: Mode = "enforce", session: str = "") -> Record:
    about = About(name, 1_793_700_000.25, tenant, "api.example:443", "gpt-4o", stream=False, mode=mode, session=session)
    return Record.of(about, made)
