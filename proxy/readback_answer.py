"""What one answer of the upstream holds, streamed or not, and what is kept of the rounds before it."""

from typing import Any, Protocol

from policies.hidden import Foreign, Hidden, Sibling, paired
from policies.jsonraw import NotJSON, RawObject, array, dumps, elements, loads
from proxy.readback_calls import Calls
from proxy.readback_usage import summed
from proxy.sse import Usage

HEAD = ("id", "created", "model", "system_fingerprint")  # by which a client knows that chunks are of one answer
REASONING = ("reasoning_content", "reasoning")  # texts, by the names that servers use
SENT_BACK = (*REASONING, "reasoning_details", "thinking_blocks")  # what an assistant message is not understood without
CUT_SHORT = ("length", "content_filter")  # the answer ends inside a call, or is not to go on
CALLING = ("tool_calls", "function_call", "tool_use")


class Story:
    """The rounds of one request so far. `usages` also has that of the round under way, once it is known."""

    def __init__(self, *, hides_usage: bool = False) -> None:
        self.hides_usage = hides_usage
        self.head: dict[str, bytes] = {}  # of the first round: what the client takes for the answer's name
        self.is_begun = False  # a role was shown
        self.role: bytes | None = None  # a role that is still to be shown
        self.rounds = 0
        self.text = ""
        self.reasoning: dict[str, str] = {}
        self.usages: list[Usage] = []
        self.before: list[bytes] = []

    @property
    def usage(self) -> Usage | None:
        """Of all rounds; None where the last one has told none."""
        return summed(self.usages) if len(self.usages) == self.rounds + 1 else None

    def count(self, usage: object) -> None:
        """The usage of the round under way; the last one that a round tells is that of the round."""
        if isinstance(usage, dict):
            untold: list[Usage] = [{}] * (self.rounds - len(self.usages))
            self.usages[self.rounds :] = [*untold, usage]

    def add(self, answer: "Answer", messages: list[bytes]) -> None:
        """A round that stays hidden, as the messages that stand for it."""
        self.rounds += 1
        self.text += text_of(answer.message)
        self.reasoning = self.reasoned(answer.message)
        self.before += messages

    def reasoned(self, message: dict[str, Any]) -> dict[str, str]:
        """All reasoning up to the end of a message, by member name."""
        names = [name for name in REASONING if name in self.reasoning or isinstance(message.get(name), str)]
        return {name: paired(self.reasoning.get(name, "") + _string(message.get(name))) for name in names}

    def hidden(self, answer: "Answer", siblings: list[bytes], results: list[bytes]) -> Hidden | None:
        """The record of what the client did not see; None where it saw everything. `siblings` are our calls in the last
        answer, `results` their results."""
        if not self.before and not siblings:
            return None
        text = text_of(answer.message)
        return Hidden(
            before=tuple(self.before),
            siblings=tuple(Sibling(slot.at, raw) for slot, raw in zip(answer.calls.mine, siblings, strict=False)),
            after=tuple(results),
            visible=paired(self.text + text),
            text=paired(text),
            calls=tuple(Foreign(slot.id, slot.name) for slot in answer.calls.foreign),
            reasoning={name: lead for name, lead in self.reasoning.items() if lead},
        )


class Answer(Protocol):
    """One answer on its way to the client. What of it may be seen comes out as soon as it is known to be."""

    calls: Calls
    message: dict[str, Any]  # all members of the assistant message but its calls
    finish: str
    is_whole: bool  # it ended as an answer ends, and not in an error

    @property
    def is_done(self) -> bool:
        """Nothing more is wanted of the upstream."""
        ...

    def feed(self, chunk: bytes) -> bytes:
        """What can be shown now."""
        ...

    def end(self) -> bytes:
        """The upstream has ended: the rest of what can be shown before it is known what comes next."""
        ...

    def closing(self) -> bytes:
        """What ends the answer, once it is known to be the last."""
        ...


def asks_again(answer: Answer) -> bool:
    """Every call is ours: the client is not to see that the answer ended here."""
    return answer.is_whole and answer.finish not in CUT_SHORT and bool(answer.calls.mine) and not answer.calls.foreign


def has_siblings(answer: Answer) -> bool:
    """Calls of ours stand beside the client's own."""
    return answer.is_whole and answer.finish not in CUT_SHORT and bool(answer.calls.mine and answer.calls.foreign)


def shown_finish(answer: Answer) -> bytes | None:
    """The finish reason to show where the upstream's would promise calls that nobody sees."""
    if answer.calls.mine and not answer.calls.foreign and answer.finish in CALLING:
        return b'"stop"'
    return None


def assistant(message: dict[str, Any], calls: list[bytes]) -> bytes:
    """The raw message that goes back to the upstream with its calls."""
    beside = b"".join([b"," + dumps(name) + b":" + dumps(message[name]) for name in SENT_BACK if message.get(name)])
    content = message.get("content") or None
    said = dumps(paired(content) if isinstance(content, str) else content)
    return b'{"role":"assistant","content":' + said + beside + b',"tool_calls":' + array(calls) + b"}"


def result(call_id: str, text: str) -> bytes:
    """The raw message that answers a call."""
    return dumps({"role": "tool", "tool_call_id": call_id, "content": text})


def text_of(message: dict[str, Any]) -> str:
    """What the client reads of a message."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join([_string(part.get("text")) for part in content if isinstance(part, dict)])
    return _string(content)


def calls_of(holder: dict[str, Any]) -> list[dict[str, Any]]:
    """The calls of a message, or what a delta holds of them."""
    calls = holder.get("tool_calls")
    return calls if isinstance(calls, list) and all(isinstance(call, dict) for call in calls) else []


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


class Body:
    """An answer that is one JSON document."""

    def __init__(self, story: Story) -> None:
        self.calls, self.finish, self.is_whole = Calls(), "", False
        self.message: dict[str, Any] = {}
        self._story = story
        self._received: list[bytes] = []
        self._body = b""

    @property
    def is_done(self) -> bool:
        return False

    def feed(self, chunk: bytes) -> bytes:
        self._received.append(chunk)
        return b""

    def end(self) -> bytes:
        self._body = b"".join(self._received)
        try:
            value = loads(self._body)
        except NotJSON:
            return b""
        choices = value.get("choices") if isinstance(value, dict) else None
        choice = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(choice, dict) or not isinstance(message, dict):
            return b""
        self.is_whole = True
        self._read(value, choice, message)
        return b""

    def closing(self) -> bytes:
        """The body as it came where nothing was hidden."""
        if not self.is_whole or not (self.calls.mine or self._story.rounds):
            return self._body
        outer = RawObject.parse(self._body)
        choice = RawObject.parse(elements(outer.get("choices") or b"[]")[0])
        message = RawObject.parse(choice.get("message") or b"{}")
        within = {"message": message.splice(self._changes(message))}
        if (finish := shown_finish(self)) is not None:
            within["finish_reason"] = finish
        changes = {name: value for name, value in self._story.head.items() if outer.get(name) is not None}
        if self._story.rounds and outer.get("usage") is not None:
            changes["usage"] = dumps(self._story.usage)
        return outer.splice({**changes, "choices": array([choice.splice(within)])})

    def _read(self, value: dict[str, Any], choice: dict[str, Any], message: dict[str, Any]) -> None:
        self.message = {name: member for name, member in message.items() if name != "tool_calls"}
        self.calls.take(calls_of(message))
        self.calls.close()
        self.finish = _string(choice.get("finish_reason"))
        self._story.count(value.get("usage"))
        if not self._story.head:
            self._story.head = head_of(self._body)

    def _changes(self, message: RawObject) -> dict[str, bytes | None]:
        changes: dict[str, bytes | None] = {}
        if self.calls.mine:
            raws = elements(message.get("tool_calls") or b"[]")
            kept = [raws[slot.at] for slot in self.calls.foreign]
            changes["tool_calls"] = array(kept) if kept else None
        if self._story.text:
            changes["content"] = dumps(paired(self._story.text + text_of(self.message)))
        if any(self._story.reasoning.values()):
            changes.update({name: dumps(text) for name, text in self._story.reasoned(self.message).items()})
        return changes


def head_of(document: bytes) -> dict[str, bytes]:
    """The members that name an answer, with their bytes."""
    opened = RawObject.parse(document).values()
    return {name: opened[name] for name in HEAD if name in opened}
