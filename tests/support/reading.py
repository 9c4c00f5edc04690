"""A planner that gives every request a store to read back from, and the answers of a scripted upstream."""

import json
from collections.abc import Sequence
from typing import Any

from support.memory import Canned, Memory, Response, call, scope_of
from support.pieces import pieces
from support.rounds import REF, TOOL, Dialect, Said, events, joined

from policies.hidden import Hidden
from policies.readback_tool import DEFINITION
from policies.request import ChatRequest
from proxy.app import create_app
from proxy.errors import UpstreamError
from proxy.planner import Call, Outcome, Untouched
from proxy.readback.loop import Readback
from proxy.settings import Settings

ORIGINAL = "\n".join(f"row {row}: 价格 {row * 7}" for row in range(400))
ASK = json.dumps({"ref": REF, "offset": 0, "limit": 30})
CHAT = (
    b'{ "model":"gpt-4o",\n "temperature" : 1e0, "messages": [ {"role":"user","content":"\\u4ef7?"} ],"tools":[%b]}\n'
)
BODY = CHAT % DEFINITION
JSON = [(b"content-type", b"application/json")]
EVENTS = [(b"content-type", b"text/event-stream"), (b"content-length", b"9999"), (b"x-request-id", b"first")]
SETTINGS = Settings.load(upstream="http://a.test/v1")
WEATHER = ("call_w", "get_weather", '{"city": "Zürich"}')


class Reads(Untouched):
    """Forwards as received. What stands in `store` under a ref may be an exception, as for `recording`."""

    def __init__(self, room: int | None = None, *, hides_usage: bool = False) -> None:
        self.store: dict[str, bytes | Exception] = {REF: ORIGINAL.encode()}
        self.asked: list[str] = []
        self.recorded: list[Hidden] = []
        self.recording: Exception | None = None
        self.ends: list[tuple[int, dict[str, Any] | None]] = []
        self._room, self._hides_usage = room, hides_usage

    async def plan(self, request: ChatRequest, call: Call) -> Outcome:  # noqa: ARG002 - the protocol's signature
        seam = Readback(self.read, self.record, pieces, self._room)
        return Outcome(request.body, [(b"edgewise-budget", b"b=1")], readback=seam, hides_usage=self._hides_usage)

    async def read(self, ref: str) -> bytes | None:
        self.asked.append(ref)
        found = self.store.get(ref)
        if isinstance(found, Exception):
            raise found
        return found

    async def record(self, hidden: Hidden) -> None:
        if self.recording is not None:
            raise self.recording
        self.recorded.append(hidden)

    def finished(self, outcome: Outcome, status: int, usage: dict[str, Any] | None) -> None:  # noqa: ARG002 - likewise
        self.ends.append((status, usage))


def usage(prompt: int, completion: int) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def own(identity: str = "call_a", arguments: str = ASK) -> tuple[str, str, str]:
    return identity, TOOL, arguments


def answer(text: str = "", *calls: tuple[str, str, str], finish: str = "", number: int = 0) -> Said:
    """The `number`-th answer of a request, which costs 100 tokens of prompt more than the one before."""
    said = [text[:1], text[1:]] if text else []
    return Said(said, [], list(calls), finish or ("tool_calls" if calls else "stop"), usage(100 + 100 * number, 5))


def streamed(*answers: Said) -> list[bytes]:
    return [joined(events(said, Dialect(), number)) for number, said in enumerate(answers)]


def documents(*answers: Said) -> list[bytes]:
    return [document(said, number) for number, said in enumerate(answers)]


def document(said: Said, number: int = 0) -> bytes:
    """The same as one JSON document."""
    message: dict[str, Any] = {"role": "assistant", "content": "".join(said.text) or None, "refusal": None}
    if said.calls:
        message["tool_calls"] = [call_of(*call) for call in said.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": said.finish}
    head = {"id": f"chatcmpl-{number}", "object": "chat.completion", "created": 17 + number, "model": "gpt-4o"}
    return json.dumps({**head, "choices": [choice], "usage": said.usage}, ensure_ascii=False).encode()


def call_of(identity: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def results(messages: Sequence[dict[str, Any]]) -> list[str]:
    return [message["content"] for message in messages if message["role"] == "tool"]


async def ask(
    planner: Untouched, *replies: Canned | UpstreamError, app_of: list[Any] | None = None
) -> tuple[Response, Memory]:
    transport = Memory(list(replies))
    app = create_app(SETTINGS, transport=transport, planner=planner)
    if app_of is not None:
        app_of.append(app)
    response = await call(app, scope_of("POST", "/v1/chat/completions", (b"idempotency-key", b"k")), BODY)
    return response, transport


def sse(raw: bytes, *more: Exception) -> Canned:
    return Canned(200, EVENTS, raw, *more)


def body(transport: Memory, at: int) -> bytes:
    found = transport.sent[at].body
    assert isinstance(found, bytes)
    return found
