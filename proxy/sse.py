"""Reading a response beside the wire: a sans-io splitter of server-sent events, and a tap that finds `usage`.

Nothing here delays or changes a byte; both hold at most `MAX_BUFFER` bytes of a response.
"""

import json
import re
from collections import deque
from typing import Any

import msgspec

MAX_BUFFER = 256 * 1024  # FACTS 7: per stream
STREAM_TAIL = 32 * 1024  # of a stream the tap keeps no more: `usage` stands in its last events

_BLANK_LINE = re.compile(rb"\r\n\r\n|\n\n|\r\r|\n\r\n|\r\n\n")
_BLANKS = (b"\n\n", b"\n\r\n", b"\r\r")  # what every blank line holds one of
_LINE_END = re.compile(rb"\r\n|\n|\r")
_USAGE = re.compile(rb'"usage"\s*:\s*(?=\{)')  # not behind a lookbehind, which makes it 100 times slower

Usage = dict[str, Any]


class _Document(msgspec.Struct):
    usage: Any = None  # all that is read of a response: the rest is skipped


_DOCUMENT = msgspec.json.Decoder(_Document)


class Splitter:
    """Bytes in, at any cut, whole events out, each with the bytes it came with, its blank line included.

    An event that outgrows the buffer is handed out in pieces, so that memory stays bounded.
    """

    def __init__(self, max_buffer: int = MAX_BUFFER) -> None:
        self._buffer = b""
        self._max_buffer = max_buffer

    def feed(self, chunk: bytes) -> list[bytes]:
        buffer = self._buffer + chunk
        events: list[bytes] = []
        start = 0
        for match in _BLANK_LINE.finditer(buffer):
            # a CR at the very end may be half of a CRLF that is still to come
            if match.end() == len(buffer) and buffer.endswith(b"\r"):
                break
            events.append(buffer[start : match.end()])
            start = match.end()
        self._buffer = buffer[start:]
        if len(self._buffer) > self._max_buffer:
            events.append(self.rest())
        return events

    def rest(self) -> bytes:
        """What came after the last whole event."""
        rest, self._buffer = self._buffer, b""
        return rest


def data_of(event: bytes) -> bytes:
    """The event's `data:` lines joined with newlines; b"" for a comment or a block without data."""
    lines: list[bytes] = []
    for line in _LINE_END.split(event):
        if line.startswith(b"data:"):
            value = line[5:]
            lines.append(value[1:] if value.startswith(b" ") else value)
    return b"\n".join(lines)


class Tap:
    """Keeps the last `most` bytes of a response as they pass, by reference, and reads `usage` at the end.

    Nothing is parsed while bytes flow.
    """

    __slots__ = ("_chunks", "_dropped", "_most", "_size")

    def __init__(self, most: int = MAX_BUFFER) -> None:
        self._chunks: deque[bytes] = deque()
        self._most, self._size = most, 0
        self._dropped = False

    @classmethod
    def of(cls, *, stream: bool) -> "Tap":
        """That keeps as much as it takes to find `usage`."""
        return cls(STREAM_TAIL if stream else MAX_BUFFER)

    def feed(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self._size += len(chunk)
        while self._size > self._most and len(self._chunks) > 1:
            self._size -= len(self._chunks.popleft())
            self._dropped = True

    def kept(self) -> bytes:
        """The last `most` bytes that passed."""
        return b"".join(self._chunks)

    def usage(self, *, stream: bool) -> Usage | None:
        """The last `usage` object the upstream sent, or None."""
        kept = self.kept()
        found = usage_of_events(kept) if stream else None if self._dropped else _usage(kept)
        return _usage_of_tail(kept) if found is None and self._dropped else found


def usage_of_events(received: bytes) -> Usage | None:
    """The `usage` of the last event that has one, looked for from the end."""
    at = received.rfind(b'"usage"')
    while at >= 0:
        start = _start_of_event(received, at)
        blank = _BLANK_LINE.search(received, at)
        event = received[start : blank.end() if blank else len(received)]
        if (usage := _usage(data_of(event))) is not None:
            return usage
        at = received.rfind(b'"usage"', 0, start)
    return None


def _start_of_event(received: bytes, at: int) -> int:
    """Behind the last blank line before `at`."""
    start = 0
    for blank in _BLANKS:
        found = received.rfind(blank, start, at)
        start = max(start, found + len(blank)) if found >= 0 else start
    return start


def _usage(document: bytes) -> Usage | None:
    try:
        usage = _DOCUMENT.decode(document).usage
    except msgspec.ValidationError:  # JSON, but no object
        return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _usage_of_tail(document)
    return usage if isinstance(usage, dict) else None


def _usage_of_tail(tail: bytes) -> Usage | None:
    """From a document whose beginning is gone or that msgspec does not read: a quote inside a JSON string is escaped,
    so an unescaped `"usage": {` is a member."""
    text = tail.decode("latin-1")  # one character a byte: offsets agree
    for match in reversed(list(_USAGE.finditer(tail))):
        if tail.endswith(b"\\", 0, match.start()):
            continue
        try:
            value, _ = json.JSONDecoder().raw_decode(text, match.end())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    return None
