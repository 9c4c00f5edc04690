"""Read-only views of messages: what the grammar, the counter and the steps need to know of one.

A view never raises on odd shapes that a client may send; what it cannot name it keeps as text, so that it is counted.
"""

from typing import Any, Literal

import msgspec

from policies.jsonraw import RawObject, array, dumps, elements, loads

Content = Literal["absent", "null", "text", "parts", "other"]
Kind = Literal["text", "image", "audio", "file", "refusal", "other"]

KIND_OF: dict[str, Kind] = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "image_url": "image",
    "input_image": "image",
    "input_audio": "audio",
    "file": "file",
    "input_file": "file",
    "document_url": "file",
    "refusal": "refusal",
}


class Part(msgspec.Struct, frozen=True, gc=False):
    """One content part. `text` for text and refusals (and the JSON of parts of unknown kind), `source` is the URL or
    data URL of an image; `detail` is its resolution hint."""

    kind: Kind
    text: str = ""
    source: str = ""
    detail: str = ""


class Call(msgspec.Struct, frozen=True, gc=False):
    """A tool call of an assistant message; `id` is "" for the legacy `function_call`."""

    id: str
    name: str
    arguments: str
    custom: bool = False


class Message(msgspec.Struct, frozen=True):
    """One message, opened. `text` joins its text parts with no separator, as the API counts them."""

    role: str
    content: Content
    parts: tuple[Part, ...] = ()
    calls: tuple[Call, ...] = ()
    call_id: str = ""
    name: str = ""
    refusal: str = ""
    reasoning: str = ""

    @property
    def text(self) -> str:
        return "".join([part.text for part in self.parts if part.kind == "text"])

    @classmethod
    def of(cls, raw: bytes) -> "Message":
        """Raises NotJSON or TooDeep, nothing else."""
        value: dict[str, Any] = loads(raw)
        content, parts = _content(value)
        reasoning = value.get("reasoning_content", value.get("reasoning"))
        return cls(
            role=_text(value.get("role")),
            content=content,
            parts=parts,
            calls=_calls(value),
            call_id=_text(value.get("tool_call_id")),
            name=_text(value.get("name")),
            refusal=_text(value.get("refusal")),
            reasoning=_text(reasoning),
        )


def with_text(raw: bytes, text: str) -> bytes:
    """The message with its content replaced by one string; every other member keeps its bytes."""
    return RawObject.parse(raw).splice({"content": dumps(text)})


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else dumps(value).decode("utf-8", "replace")


def _content(value: dict[str, Any]) -> tuple[Content, tuple[Part, ...]]:
    if "content" not in value:
        return "absent", ()
    content = value["content"]
    if content is None:
        return "null", ()
    if isinstance(content, str):
        return "text", (Part("text", content),)
    if isinstance(content, list):
        return "parts", tuple(_part(part) for part in content)
    return "other", (Part("text", _text(content)),)


def _part(value: object) -> Part:
    if not isinstance(value, dict):
        return Part("text", _text(value))
    kind = KIND_OF.get(_text(value.get("type")), "other")
    if kind in ("text", "refusal"):
        return Part(kind, _text(value.get(kind, value.get("text"))))
    if kind == "image":
        image = value.get("image_url")
        holder = image if isinstance(image, dict) else value
        source = image.get("url") if isinstance(image, dict) else image
        return Part("image", source=_text(source), detail=_text(holder.get("detail")))
    if kind == "other":
        return Part("other", _text(value))
    return Part(kind)


def _calls(value: dict[str, Any]) -> tuple[Call, ...]:
    calls = value.get("tool_calls")
    found = [_call(call) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    legacy = value.get("function_call")
    if isinstance(legacy, dict):
        found.append(Call("", _text(legacy.get("name")), _text(legacy.get("arguments"))))
    return tuple(found)


def _call(value: dict[str, Any]) -> Call:
    custom = value.get("custom")
    if isinstance(custom, dict):
        return Call(_text(value.get("id")), _text(custom.get("name")), _text(custom.get("input")), custom=True)
    function = value.get("function")
    function = function if isinstance(function, dict) else {}
    return Call(_text(value.get("id")), _text(function.get("name")), _text(function.get("arguments")))


def merged(raw: bytes, text: str, *, at_end: bool) -> bytes:
    """The message with `text` put before or after its content; the bytes of what was there stay as they are.

    A string grows inside its quotes, an array of parts by one text part; a message without content gets the text.
    """
    message = RawObject.parse(raw)
    content = message.get("content")
    return message.splice({"content": _grown(content, text, at_end=at_end)})


def with_part(raw: bytes, text: str) -> bytes:
    """The message with `text` as a content part of its own behind what was there."""
    message = RawObject.parse(raw)
    return message.splice({"content": array([*_parts(message.get("content")), _text_part(dumps(text))])})


def _grown(content: bytes | None, text: str, *, at_end: bool) -> bytes:
    if content is None or content in (b"null", b'""'):
        return dumps(text)
    if content[:1] == b'"':
        added = dumps("\n\n" + text if at_end else text + "\n\n")[1:-1]
        return content[:-1] + added + b'"' if at_end else b'"' + added + content[1:]
    old, new = _parts(content), _text_part(dumps(text))
    return array([*old, new] if at_end else [new, *old])


def _parts(content: bytes | None) -> tuple[bytes, ...]:
    """Content as parts; what is neither text nor an array is said as the JSON that it is."""
    if content is None or content == b"null":
        return ()
    if content[:1] == b"[":
        return elements(content)
    return (_text_part(content if content[:1] == b'"' else dumps(content.decode("utf-8", "replace"))),)


def _text_part(text: bytes) -> bytes:
    return b'{"type":"text","text":' + text + b"}"
