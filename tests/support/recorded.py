"""Recorded requests with the tokens that the real API billed, as prompts. Media bytes were replaced by their sizes."""

import base64
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
from support.shared import rows, shared

from policies.request import ChatRequest, Prompt


class Recorded(NamedTuple):
    """`model` is the one that served; `billed` its prompt tokens; `request` as the client sent it."""

    api: str
    host: str
    model: str
    billed: int
    request: dict[str, Any]

    @property
    def prompt(self) -> Prompt:
        return prompt_of(self.request)


def recorded() -> Iterator[Recorded]:
    """All rows. Skips the calling test where the data is absent."""
    for row in rows(shared("data/usage_recorded.jsonl")):
        yield Recorded(row["api"], row["host"], row["model"], row["prompt_tokens"], _with_headers(row["request"]))


def openai_chat() -> Iterator[Recorded]:
    """Chat rows of OpenAI's API without audio, files, images of unknown size and search-preview models."""
    for row in recorded():
        openai = row.api == "chat" and row.host == "api.openai.com" and "search-preview" not in row.model
        if openai and all(map(_measurable, _parts(row.request))):
            yield row


def prompt_of(request: dict[str, Any]) -> Prompt:
    """The prompt of a request given as Python objects."""
    return ChatRequest.parse(msgspec.json.encode(request)).prompt


def png(width: int, height: int) -> str:
    """A data URL that holds no more of an image than its header."""
    header = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", width, height)
    return "data:image/png;base64," + base64.b64encode(header).decode()


def _measurable(part: dict[str, Any]) -> bool:
    if part.get("type") == "image_url":
        return str(part["image_url"]["url"]).startswith("data:")
    return part.get("type") not in ("input_audio", "file")


def _parts(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for message in request["messages"]:
        content = message.get("content")
        if isinstance(content, list):
            yield from (part for part in content if isinstance(part, dict))


def _with_headers(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_headers(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.get("_dims"):
        return {**value, "url": png(*value["_dims"])}
    return {key: _with_headers(inner) for key, inner in value.items()}
