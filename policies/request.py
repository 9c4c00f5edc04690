"""The client's own bytes, opened one level.

`ChatRequest` is what came in. `Prompt` is the part of it that costs tokens: the pipeline works on prompts, and
`ChatRequest.forward` turns the last one into bytes again.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256

import msgspec

from policies.annotations import Annotation
from policies.jsonraw import NotJSON, RawObject, array, elements, loads, whole

JUDGED = ("model", "messages", "tools", "stream")  # repeated, they could be judged in one form and served in another

ALONE = ("tool_choice", "parallel_tool_calls")  # refused upstream where no tools are offered


class BadRequest(ValueError):
    """The client's fault; the message names the field and what is wrong with it. Suggested status: 400."""

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class Item(msgspec.Struct, frozen=True, gc=False):
    """A message or a tool: its bytes, and a 16-byte digest of them that keys every memo."""

    raw: bytes
    key: bytes

    @classmethod
    def of(cls, raw: bytes) -> "Item":
        return cls.all((raw,))[0]

    @classmethod
    def all(cls, raws: Sequence[bytes]) -> "tuple[Item, ...]":
        # current processors have instructions for SHA-256, so that it takes half the time of blake2b
        return tuple([cls(raw, sha256(raw).digest()[:16]) for raw in raws])


class Prompt(msgspec.Struct, frozen=True):
    """What is counted: messages and tools in order, and the fields that change the template."""

    model: str
    messages: tuple[Item, ...]
    tools: tuple[Item, ...] = ()
    tool_choice: bytes | None = None
    response_format: bytes | None = None
    functions: bytes | None = None  # the array that `tools` replaced


class ChatRequest(msgspec.Struct, frozen=True):
    """A chat completion request. `body` is the received bytes; nothing here is a copy that could differ from them.

    `notes` are the client's annotations by id of the span; where they were taken out (`policies.annotated`), `body` is
    the received bytes without them, and all else that can be asked here is so too.
    """

    body: bytes
    object: RawObject
    model: str
    stream: bool
    prompt: Prompt
    notes: Mapping[str, Annotation] = {}

    @classmethod
    def parse(cls, body: bytes) -> "ChatRequest":
        """Raises BadRequest when the body is not a JSON object with a `messages` array, or repeats a judged field."""
        try:
            fields = RawObject.parse(body)
            if repeated := fields.repeated(JUDGED):
                raise BadRequest(f"'{repeated}' stands twice in the request body", repeated)
            values = fields.values()
            messages = _items(values.get("messages"), "messages")
        except NotJSON as error:
            raise BadRequest(str(error)) from None
        if messages is None:
            raise BadRequest("'messages' is missing: it must be an array of messages", "messages")
        return cls.of(fields, values, messages)

    @classmethod
    def of(cls, fields: RawObject, values: Mapping[str, bytes], messages: tuple[Item, ...]) -> "ChatRequest":
        """The request whose body is opened already; `values` are those of its fields. Raises BadRequest."""
        try:
            tools = _items(values.get("tools"), "tools")
            model, stream = _small(values.get("model")), _small(values.get("stream"))
        except NotJSON as error:
            raise BadRequest(str(error)) from None
        model = whole(model) if isinstance(model, str) else ""
        template = [values.get(name) for name in ("tool_choice", "response_format", "functions")]
        prompt = Prompt(model, messages, tools or (), *template)
        return cls(fields.source, fields, model, stream is True, prompt)

    def number(self, *names: str) -> int | None:
        """The first of the named fields that holds a positive whole number."""
        for name in names:
            try:
                value = _small(self.object.get(name))
            except NotJSON:  # nested without end: no number
                continue
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
        return None

    def forward(self, prompt: Prompt, beside: Mapping[str, bytes] = {}) -> bytes:
        """The body that carries `prompt`: the received bytes themselves when nothing changed, else spliced, with the
        fields of `beside` put in too."""
        if prompt is self.prompt:
            return self.body
        changes: dict[str, bytes | None] = {}
        if not _same(prompt.messages, self.prompt.messages):
            changes["messages"] = array([item.raw for item in prompt.messages])
        if not _same(prompt.tools, self.prompt.tools):
            changes.update(_tool_fields(prompt))
            if prompt.tools and prompt.tool_choice != self.prompt.tool_choice:
                changes["tool_choice"] = prompt.tool_choice
        elif changes and not prompt.tools:
            changes.update(self._without_tools())
        return self.object.splice({**changes, **beside}) if changes else self.body

    def _without_tools(self) -> dict[str, bytes | None]:
        """Fields that no request may carry which offers no tools: repaired in what leaves edited (DESIGN 1.3)."""
        empty = self.object.get("tools") not in (None, b"null")
        return dict.fromkeys((*ALONE, "tools") if empty else ALONE)


def _tool_fields(prompt: Prompt) -> dict[str, bytes | None]:
    if prompt.tools:
        return {"tools": array([item.raw for item in prompt.tools])}
    return dict.fromkeys(("tools", *ALONE))  # an empty array is refused upstream


def _same(ours: Sequence[Item], theirs: Sequence[Item]) -> bool:
    return len(ours) == len(theirs) and all(a is b for a, b in zip(ours, theirs, strict=True))


def _items(raw: bytes | None, name: str) -> tuple[Item, ...] | None:
    if raw is None or raw == b"null":
        return None
    if raw[:1] != b"[":
        raise BadRequest(f"'{name}' must be an array", name)
    found = elements(raw)
    index = next((index for index, one in enumerate(found) if one[:1] != b"{"), None)
    if index is not None:
        raise BadRequest(f"'{name}[{index}]' must be an object", f"{name}[{index}]")
    return Item.all(found)


def _small(raw: bytes | None) -> object:
    return None if raw is None or len(raw) > 4096 else loads(raw)
