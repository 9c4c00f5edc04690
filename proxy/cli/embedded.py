"""The embedded upstream: an OpenAI-compatible server for first steps and for the demo. It is no model, and says so.

Its usage holds real counts, it streams, it refuses what is over its window, and a script may have it call tools.
"""

import itertools
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from policies.jsonraw import dumps
from policies.messages import Call, Message
from policies.request import BadRequest, ChatRequest, Item
from proxy import bodies
from proxy.errors import JSON, Refusal, refusal_of
from proxy.exchange import Exchange, Scope, Send
from proxy.headers import Header
from proxy.refusals import wants_usage

MODEL = "edgewise-embedded"
WINDOW = 16_384  # tokens
MAX_BODY = 64 * 1024 * 1024  # bytes
QUOTED = 120  # characters of the caller's last words that are said back
EVENTS: Header = (b"content-type", b"text/event-stream; charset=utf-8")

_WORD = re.compile(r"\S+\s*|\s+")


class Said(msgspec.Struct, frozen=True):
    """An assistant's answer: a text, or calls."""

    text: str = ""
    calls: tuple[Call, ...] = ()


class Tokens(msgspec.Struct, frozen=True):
    """How to count: a whole prompt, and a bare text."""

    prompt: Callable[[ChatRequest], int]
    text: Callable[[str], int]


Script = Callable[[ChatRequest, int], Said]
"""A request and its prompt tokens → the answer."""


def echo(request: ChatRequest, tokens: int) -> Said:
    """What arrived, in plain words."""
    prompt = request.prompt
    users = [message for message in map(_message, prompt.messages) if message.role == "user"]
    words = " ".join(users[-1].text.split()) if users else ""
    quoted = f' Your last words were: "{words[:QUOTED]}{"..." if len(words) > QUOTED else ""}".' if words else ""
    return Said(
        "This is Edgewise's embedded upstream, not a model: it only says what arrived. "
        f"{_many(len(prompt.messages), 'message')} and {_many(len(prompt.tools), 'tool')} came, "
        f"{_many(tokens, 'prompt token')} in all.{quoted} To talk to a model, start Edgewise with --upstream URL."
    )


class Embedded:
    """A pure ASGI app. `window` bounds prompts, in tokens."""

    def __init__(self, tokens: Tokens, script: Script = echo, window: int = WINDOW) -> None:
        self._tokens, self._script, self._window = tokens, script, window
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: bodies.Receive, send: Send) -> None:
        exchange = Exchange(scope, receive, send)
        try:
            await self._answer(exchange)
        except Refusal as refusal:
            await exchange.refuse(refusal)
        except BadRequest as error:
            await exchange.refuse(refusal_of(error))

    async def _answer(self, exchange: Exchange) -> None:
        path = exchange.path.rstrip("/")
        if path == "/v1/models" and exchange.method == "GET":
            listed = [
                {"id": MODEL, "object": "model", "created": 0, "owned_by": "edgewise", "max_model_len": self._window}
            ]
            await exchange.answer(200, [JSON], dumps({"object": "list", "data": listed}))
        elif path == "/v1/chat/completions" and exchange.method == "POST":
            await self._chat(exchange)
        else:
            raise Refusal(404, f"the embedded upstream has no {exchange.method} {exchange.path}", code="not_found")

    async def _chat(self, exchange: Exchange) -> None:
        request = ChatRequest.parse(await bodies.read(exchange.receive, exchange.headers, MAX_BODY))
        tokens = self._tokens.prompt(request)
        if tokens > self._window:
            raise Refusal(
                400,
                f"This model's maximum context length is {self._window} tokens. However, your messages resulted in "
                f"{tokens} tokens. Please reduce the length of the messages.",
                code="context_length_exceeded",
                param="messages",
            )
        said = self._script(request, tokens)
        answer = _Answer(self._head(request), said, self._usage(tokens, said))
        if not request.stream:
            await exchange.answer(200, [JSON], dumps(answer.completion()))
            return
        await exchange.start(200, [EVENTS])
        for event in answer.events(with_usage=wants_usage(request)):
            await exchange.send({"type": "http.response.body", "body": event, "more_body": True})
        await exchange.send({"type": "http.response.body", "body": b""})

    def _head(self, request: ChatRequest) -> dict[str, Any]:
        number = next(self._numbers)
        return {"id": f"chatcmpl-embedded-{number}", "created": int(time.time()), "model": request.model or MODEL}

    def _usage(self, prompt: int, said: Said) -> dict[str, int]:
        texts = [said.text, *(call.name + call.arguments for call in said.calls)]
        completion = sum(self._tokens.text(text) for text in texts)
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


class _Answer:
    """One answer in both forms."""

    def __init__(self, head: dict[str, Any], said: Said, usage: dict[str, int]) -> None:
        self.head, self.said, self.usage = head, said, usage
        self.finish = "tool_calls" if said.calls else "stop"

    def completion(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.said.text or None, "refusal": None}
        if self.said.calls:
            message["tool_calls"] = [_call(call) for call in self.said.calls]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self.finish}
        return {**self.head, "object": "chat.completion", "choices": [choice], "usage": self.usage}

    def events(self, *, with_usage: bool) -> Iterator[bytes]:
        yield self._chunk({"role": "assistant", "content": "" if self.said.text else None})
        for word in _WORD.findall(self.said.text):
            yield self._chunk({"content": word})
        for index, call in enumerate(self.said.calls):
            opened = _call(Call(call.id, call.name, ""))
            yield self._chunk({"tool_calls": [{"index": index, **opened}]})
            for word in _WORD.findall(call.arguments):
                yield self._chunk({"tool_calls": [{"index": index, "function": {"arguments": word}}]})
        yield self._chunk({}, self.finish)
        if with_usage:
            yield _event({**self.head, "object": "chat.completion.chunk", "choices": [], "usage": self.usage})
        yield b"data: [DONE]\n\n"

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _event({**self.head, "object": "chat.completion.chunk", "choices": [choice]})


def _event(chunk: dict[str, Any]) -> bytes:
    return b"data: " + dumps(chunk) + b"\n\n"


def _call(call: Call) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _message(item: Item) -> Message:
    return Message.of(item.raw)


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
