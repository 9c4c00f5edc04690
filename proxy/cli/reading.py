"""Chat requests from a file: one as JSON, or many as JSONL."""

from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from policies.annotated import NoteReader
from policies.jsonraw import NotJSON, RawObject
from policies.request import BadRequest, ChatRequest

BOM = b"\xef\xbb\xbf"
WRAPPERS = ("body", "request")  # where lines of batch files and of request logs hold the request


class Read(msgspec.Struct, frozen=True):
    """One request of a file, or why it is none. `place` is the file and, of several, the line."""

    place: str
    request: ChatRequest | None
    fault: str = ""


def requests(source: BinaryIO, name: str) -> Iterator[Read]:
    """The requests of `source`, one at a time; a JSONL file of any size is never held whole. Raises OSError.

    A first line that is a whole JSON object means JSONL; otherwise the whole source is one request.
    """
    first = source.readline().removeprefix(BOM)
    number = 1
    while first and not first.strip():
        first, number = source.readline(), number + 1
    if not _is_object(first):
        yield _read(first + source.read(), name)
        return
    yield _read(first, name if _is_at_end(source) else f"{name}:{number}")
    for place, line in enumerate(source, number + 1):
        if line.strip():
            yield _read(line, f"{name}:{place}")


def _is_at_end(source: BinaryIO) -> bool:
    """Not asked of a pipe, whose other end may wait for the first answer."""
    if not source.seekable():
        return False
    at = source.tell()
    rest = source.readline()
    source.seek(at)
    return not rest


def _is_object(line: bytes) -> bool:
    try:
        RawObject.parse(line)
    except NotJSON:
        return False
    return True


def _read(body: bytes, place: str) -> Read:
    try:
        return Read(place, NoteReader().bare(ChatRequest.parse(_unwrapped(body.strip()))))
    except BadRequest as error:
        return Read(place, None, str(error))
    except NotJSON as error:
        return Read(place, None, str(error).replace("the body", "this"))


def _unwrapped(body: bytes) -> bytes:
    if not body:
        raise NotJSON("it is empty; give a chat completion request as JSON")
    if body[:1] == b"[":
        raise NotJSON("it is a JSON array; give one request, or one request a line")
    fields = RawObject.parse(body)
    if fields.get("messages") is None:
        for wrapper in WRAPPERS:
            inner = fields.get(wrapper)
            if inner is not None and inner[:1] == b"{":
                return inner
    return body
