"""A conversation that outgrows a real model's window: it fails against the server, and succeeds through Edgewise.

    python e2e/conversation.py [0.5b|1.5b]

The same scripted incident goes twice to the real model: directly, until its server refuses; then through a real
`edgewise serve --window auto`, each request once for a whole answer and once streamed. Tools are called by the model;
where it calls none that it has (0.5b never did), by the script. What reaches the server is recorded: the rule of the
system prompt and the task have to be in each request, word for word; and what Edgewise says it sent may be 1 % off what
the server bills. Exit code 1 on a miss, 2 where the model or the server cannot be fetched.
"""

import json
import sys
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import incident
import openai
from processes import NotAvailable, edgewise
from recorder import Recorder, recording
from server import WORK, fetch_model, serving

CONTEXT = 4096  # tokens
OFF = 0.01  # of the server's own count
MOST = 40  # tokens of an answer
TEMPLATES = {"1.5b": "qwen25coder-fence.jinja"}  # with it this model returns structured calls
PATIENCE = 600  # seconds for an answer: a busy machine reads 20 tokens a second
KEY = "sk-made-up"


@dataclass(frozen=True)
class Answer:
    """`tokens` is the server's own count of the prompt; `request_id` is Edgewise's, "" without it."""

    message: dict[str, Any]
    finish: str
    tokens: int
    request_id: str


@dataclass(frozen=True)
class Line:
    """One request of the conversation, told by Edgewise and billed by the server. Figures are tokens."""

    told: dict[str, Any]
    answer: Answer

    @property
    def off(self) -> float:
        return abs(int(self.told["sent"]) - self.answer.tokens) / self.answer.tokens

    def __str__(self) -> str:
        told, how = self.told, "streamed" if self.told["stream"] else "whole"
        figures = f"{told['received']:9}{told['sent']:8}{self.answer.tokens:8}{self.off:8.2%}"
        return f"{figures}  {told['level']:14}{how:10}{self.answer.finish}"


Ask = Callable[[list[dict[str, Any]]], Answer]


def converse(ask: Ask) -> str:
    """The whole script; what the model said last. Raises openai.BadRequestError when the server refuses."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": incident.SYSTEM}]
    number = 0
    for turn in incident.TURNS:
        messages.append({"role": "user", "content": turn.said})
        for name, arguments in turn.calls:
            called = _called(ask(messages).message, name, arguments, number)
            messages.append(called)
            for call in called["tool_calls"]:
                number += 1
                said = incident.result(call["function"]["name"], call["function"]["arguments"], number)
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": said})
        messages.append({"role": "assistant", "content": ask(messages).message.get("content") or "(nothing)"})
    return str(messages[-1]["content"])


def asking(base: str, *, stream: bool) -> Ask:
    client = openai.OpenAI(base_url=base, api_key=KEY, max_retries=0, timeout=PATIENCE)

    def ask(messages: list[dict[str, Any]]) -> Answer:
        fields: dict[str, Any] = {"model": "local", "messages": messages, "tools": incident.tools()}
        fields |= {"max_tokens": MOST, "temperature": 0}
        if stream:
            fields |= {"stream": True, "stream_options": {"include_usage": True}}
        response = client.chat.completions.with_raw_response.create(**fields)
        message, finish, tokens = _joined(response.parse()) if stream else _whole(response.parse())
        return Answer(message, finish, tokens, response.headers.get("edgewise-request-id", ""))

    return ask


def fails_directly(base: str) -> bool:
    """Prints how far the conversation comes without Edgewise."""
    billed = [0]
    whole = asking(base, stream=False)

    def ask(messages: list[dict[str, Any]]) -> Answer:
        answer = whole(messages)
        billed.append(answer.tokens)
        return answer

    try:
        converse(ask)
    except openai.BadRequestError as error:
        said = error.body if isinstance(error.body, dict) else {}
        print(
            f"directly: {len(billed) - 1} requests, the last of {billed[-1]} tokens, then {error.message}\n", flush=True
        )
        return said.get("type") == "exceed_context_size_error"
    print(f"directly: {len(billed) - 1} requests, the last of {billed[-1]} tokens, and none fails\n")
    return False


def succeeds(recorder: Recorder) -> bool:
    """Prints a line per request through Edgewise, and what is missing."""
    print(f"{'received':>9}{'sent':>8}{'server':>8}{'off':>8}  {'level':14}{'answer':10}finish")
    recorder.chats.clear()
    lines: list[Line] = []
    with edgewise(recorder.base, WORK / "conversation.log", window="auto") as root:
        ways = [asking(f"{root}/v1", stream=stream) for stream in (True, False)]

        def ask(messages: list[dict[str, Any]]) -> Answer:
            for way in ways:  # the second time the server has the prompt in its cache
                answer = way(messages)
                lines.append(Line(_record(root, answer.request_id), answer))
                print(lines[-1], flush=True)
            return answer

        last = converse(ask)
    missing = list(faults(lines, recorder.chats))
    print(f"last answer: {' '.join(last.split())}\nmissing: {', '.join(missing) or 'nothing'}\n")
    return not missing


def faults(lines: list[Line], sent: list[Any]) -> Iterable[str]:
    """What the conversation should have shown and did not."""
    needed = {
        "the window was not discovered": all(line.told["window"] == CONTEXT for line in lines),
        "the conversation did not outgrow the window": any(line.told["received"] > CONTEXT for line in lines),
        "nothing was edited": any(line.told["outcome"] == "edited" for line in lines),
        "an answer did not finish": all(line.answer.finish for line in lines),
        f"a count is more than {OFF:.0%} off": all(line.off <= OFF for line in lines),
        "not every request reached the server once": len(sent) == len(lines),
    }
    yield from (fault for fault, holds in needed.items() if not holds)
    for number, chat in enumerate(sent, 1):
        yield from (f"{what} in request {number}" for what in _lost(chat["messages"]))


def _lost(messages: list[dict[str, Any]]) -> Iterable[str]:
    if messages[0] != {"role": "system", "content": incident.SYSTEM} or incident.RULE not in incident.SYSTEM:
        yield "the rule of the system prompt"
    if not any(message["role"] == "user" and incident.TASK in str(message["content"]) for message in messages):
        yield "the task"


def _called(message: dict[str, Any], name: str, arguments: dict[str, str], number: int) -> dict[str, Any]:
    """The message with calls that the conversation goes on with: the model's, or the script's."""
    known = {tool["function"]["name"] for tool in incident.tools()}
    calls = message.get("tool_calls") or []
    if calls and all(call["function"]["name"] in known for call in calls):
        return message
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _whole(completion: Any) -> tuple[dict[str, Any], str, int]:
    choice = completion.choices[0]
    message = choice.message.model_dump(exclude_none=True, include={"role", "content", "tool_calls"})
    return message, choice.finish_reason, completion.usage.prompt_tokens


def _joined(chunks: Any) -> tuple[dict[str, Any], str, int]:
    """Of a stream the text alone; its calls are those of the whole answer."""
    text, finish, tokens = "", "", 0
    for chunk in chunks:
        tokens = chunk.usage.prompt_tokens if chunk.usage else tokens
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
    return {"role": "assistant", "content": text}, finish, tokens


def _record(root: str, request_id: str) -> dict[str, Any]:
    url = f"{root}/context/requests/{request_id}"
    request = urllib.request.Request(url, headers={"authorization": f"Bearer {KEY}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        record: dict[str, Any] = json.load(answer)
    return record


def main(arguments: list[str]) -> int:
    size = arguments[0] if arguments else "0.5b"
    try:
        model = fetch_model(size)
        print(f"method: {model.name} behind llama.cpp's own server at {CONTEXT} tokens; figures in tokens, `server` is")
        print(f"its usage.prompt_tokens; bar: sent at most {OFF:.0%} off, rule and task in each request\n", flush=True)
        with serving(model, CONTEXT, TEMPLATES.get(size)) as base, recording(base) as recorder:
            passed = [fails_directly(base), succeeds(recorder)]
    except NotAvailable as error:
        print(error, file=sys.stderr)
        return 2
    print("passed" if all(passed) else "FAILED")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
