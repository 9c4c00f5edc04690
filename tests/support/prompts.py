"""Small real prompts, counted by the real counter: the nouns that tests of the core are told in."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from policies.budget import Budget
from policies.counting import Counter
from policies.counting.models import counter_for
from policies.draft import Draft
from policies.editor import Editor
from policies.needs import Answer, Ask, Need, solve
from policies.pipeline import plan_once
from policies.plan import Edit, Level, Plan
from policies.policy import Policy
from policies.request import ChatRequest, Prompt
from policies.split import split
from policies.step import Step
from proxy.policyfile import load as load_policy
from proxy.ranks import load

Message = dict[str, Any]


@cache
def counter(model: str = "gpt-4o") -> Counter:
    return counter_for(model, load)


@cache
def balanced() -> Policy:
    return load_policy("balanced")


def system(text: str) -> Message:
    return {"role": "system", "content": text}


def user(text: Any) -> Message:
    return {"role": "user", "content": text}


def said(text: str) -> Message:
    return {"role": "assistant", "content": text}


def calls(*made: tuple[str, str], arguments: str = "{}") -> Message:
    """An assistant message with calls, each an id and a name."""
    functions = [
        {"id": call, "type": "function", "function": {"name": name, "arguments": arguments}} for call, name in made
    ]
    return {"role": "assistant", "content": None, "tool_calls": functions}


def result(call: str, text: Any) -> Message:
    return {"role": "tool", "tool_call_id": call, "content": text}


def round_of(number: int, text: str, name: str = "read_log") -> list[Message]:
    """A call and its result."""
    return [calls((f"call_{number}", name)), result(f"call_{number}", text)]


def tool(name: str, description: str = "Reads the log.") -> Message:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": {}}}


def lines(count: int, subject: str = "station") -> str:
    """About 14 tokens a line, each line different."""
    return "\n".join(f"{subject} {line} pressure {line * 7 % 50} bar, valve {line * 13 % 101}" for line in range(count))


def rows(count: int) -> str:
    """JSON, about 20 tokens a row."""
    return json.dumps(
        [{"id": f"TCK-{row:05}", "open": row % 3 == 0, "owner": f"team {row % 7}"} for row in range(count)]
    )


def body(messages: list[Message], **fields: Any) -> bytes:
    return json.dumps({"model": "gpt-4o", "messages": messages} | fields).encode()


def chat(messages: list[Message], **fields: Any) -> ChatRequest:
    return ChatRequest.parse(body(messages, **fields))


def prompt(messages: list[Message], **fields: Any) -> Prompt:
    return chat(messages, **fields).prompt


def draft(
    messages: list[Message], *, limit: int | None = None, level: Level = Level.TOOL_RESULTS, **fields: Any
) -> Draft:
    """A draft whose limit and target are `limit` (default: what the prompt costs)."""
    counted, asked = counter(), prompt(messages, **fields)
    bill = counted.bill(asked)
    made = Draft(asked, counted, split(asked, [counted.facts(item) for item in asked.messages], bill), bill)
    made.level = level
    if limit is not None:
        made.limit = made.target = limit
    return made


def edits(step: Step, of: Draft) -> list[Edit]:
    """What the step proposes when each edit is applied before the next is asked for, as the pipeline does it."""
    editor, asked = Editor(of), []
    editor.leaf = step.leaf
    for edit in step.edits(of):
        assert not isinstance(edit, Ask), "this step asks the side model: answer it"
        asked.append(edit)
        editor.apply(step.name, edit)
    of.rebill()
    return asked


def texts(of: Draft) -> list[str]:
    """The text of each message that is left."""
    return [of.message(span).text for span in of.messages]


def ids(of: Draft) -> list[str]:
    return [span.id for span in of.spans]


def budget(limit: int) -> Budget:
    """A window that leaves exactly `limit` tokens for the prompt."""
    return Budget(limit)


def planned(request: ChatRequest, limit: int, policy: Policy | None = None) -> Plan:
    return solve(plan_once(request, policy or balanced(), counter(request.model), budget(limit)))


def planned_with(answer: Callable[[Need], Answer], messages: list[Message], limit: int) -> Plan:
    """A plan by the default policy whose needs are answered by a plain function."""
    request = chat(messages)
    return solve(plan_once(request, balanced(), counter(request.model), budget(limit)), answer)
