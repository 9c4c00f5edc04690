"""What one answer of the upstream holds, streamed or not, and what is kept of the rounds before it."""

from typing import Any, Protocol

from policies.hidden import Foreign, Hidden, Sibling, paired
from policies.jsonraw import RawObject, array, dumps
from proxy.readback.calls import Calls
from proxy.readback.usage import summed
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

    def beside(self) -> "Story":
        """That of another choice of the round under way: of the same name and cost, with a text of its own."""
        other = Story(hides_usage=self.hides_usage)
        other.head, other.usages, other.rounds = self.head, self.usages, self.rounds
        return other

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
        return {name: paired(self.reasoning.get(name, "") + string(message.get(name))) for name in names}

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


class Said(Protocol):
    """One choice of an answer."""

    @property
    def calls(self) -> Calls: ...

    @property
    def message(self) -> dict[str, Any]:
        """All members of the assistant message but its calls."""
        ...

    @property
    def finish(self) -> str: ...


class Answer(Said, Protocol):
    """One answer on its way to the client. What of it may be seen comes out as soon as it is known to be. Where it has
    several choices it is `Said` of the first."""

    is_whole: bool  # it ended as an answer ends, and not in an error

    @property
    def is_open(self) -> bool:
        """It has no more than one choice, of which no end was shown: only then can something be read for it."""
        ...

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
    return _is_read(answer) and not answer.calls.foreign


def has_siblings(answer: Answer) -> bool:
    """Calls of ours stand beside the client's own."""
    return _is_read(answer) and bool(answer.calls.foreign)


def _is_read(answer: Answer) -> bool:
    return answer.is_whole and answer.is_open and answer.finish not in CUT_SHORT and bool(answer.calls.mine)


def shown_finish(said: Said) -> bytes | None:
    """The finish reason to show where the upstream's would promise calls that nobody sees."""
    if said.calls.mine and not said.calls.foreign and said.finish in CALLING:
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
        return "".join([string(part.get("text")) for part in content if isinstance(part, dict)])
    return string(content)


def calls_of(holder: dict[str, Any]) -> list[dict[str, Any]]:
    """The calls of a message, or what a delta holds of them."""
    calls = holder.get("tool_calls")
    return calls if isinstance(calls, list) and all(isinstance(call, dict) for call in calls) else []


def string(value: object) -> str:
    return value if isinstance(value, str) else ""


def head_of(document: bytes) -> dict[str, bytes]:
    """The members that name an answer, with their bytes."""
    opened = RawObject.parse(document).values()
    return {name: opened[name] for name in HEAD if name in opened}
