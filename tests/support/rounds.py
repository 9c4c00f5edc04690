"""Scripted answers of an upstream in the dialects of many servers, and a client that reads what reaches it.

Both are written without the product: what the client should have seen is known from the script alone.
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

TOOL = "read_tool_result"
REF = "tr_0123456789abcdef"
NAMES = ("read", "read_tool", "read_tool_results", "get_weather", "r", "Read_tool_result", "bash")
WORDS = ("Let me look. ", "It is ", "价格 ", "😀", '"quoted" ', "\n\n", "read_tool", " 42.", "data: x ", "\u2028")
FINISHES = ("tool_calls", "stop", "function_call", "tool_use")


@dataclass
class Said:
    """One answer: its text and reasoning in pieces, its calls, and why it ends."""

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: list[tuple[str, str, str]] = field(default_factory=list)  # id, name, arguments
    finish: str = "stop"
    usage: dict[str, Any] | None = None

    @property
    def foreign(self) -> list[tuple[str, str, str]]:
        return [call for call in self.calls if call[1] != TOOL]


@dataclass
class Dialect:
    """How a server says it."""

    end: str = "\n"
    space: str = " "
    role: str = "own"  # "own" event, "first" delta, "none"
    name_pieces: int = 1
    argument_pieces: int = 3
    whole: str = ""  # "calls": each in one chunk; "all": all in one; "answer": text, calls and finish in one
    index: bool = True
    ids: str = "once"  # "once", "always"
    comments: bool = False
    done: bool = True
    usage: str = "chunk"  # "chunk" behind the finish, "finish", "none"
    empty: Any = ""  # content of a role's event
    nulls: bool = False
    spaced: bool = False


@dataclass
class Event:
    """Bytes, and what a client can read of it that does not wait for anything."""

    raw: bytes
    text: str = ""


def dialect(chance: random.Random) -> Dialect:
    return Dialect(
        end=chance.choice(["\n", "\r\n"]),
        space=chance.choice([" ", ""]),
        role=chance.choice(["own", "own", "first", "none"]),
        name_pieces=chance.choice([1, 1, 2, 3, 16]),
        argument_pieces=chance.choice([1, 2, 5]),
        whole=chance.choice(["", "", "", "calls", "all", "answer"]),
        index=chance.random() < 0.85,
        ids=chance.choice(["once", "always"]),
        comments=chance.random() < 0.3,
        done=chance.random() < 0.9,
        usage=chance.choice(["chunk", "finish", "none"]),
        empty=chance.choice(["", None]),
        nulls=chance.random() < 0.3,
        spaced=chance.random() < 0.3,
    )


def events(said: Said, how: Dialect, number: int) -> list[Event]:
    """One answer, the `number`-th of its request."""
    head = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 1_700_000_000 + number}
    head |= {"model": "gpt-4o"}
    made: list[Event] = []
    for at, (choice, text) in enumerate(_framed(said, how)):
        made.append(Event(_event({**head, **_beside(said, how, choice)}, how), text))
        if how.comments and at % 2 == 0:
            made.append(Event(f": keep-alive{how.end}{how.end}".encode()))
    if how.usage == "chunk" and said.usage:
        made.append(Event(_event({**head, "choices": [], "usage": said.usage}, how)))
    if how.done:
        made.append(Event(f"data:{how.space}[DONE]{how.end}{how.end}".encode()))
    return made


def _framed(said: Said, how: Dialect) -> list[tuple[dict[str, Any], str]]:
    """The choices with a role in front and a finish at the end."""
    found: list[tuple[dict[str, Any], str]] = [({"delta": delta}, text) for delta, text in _deltas(said, how)]
    if how.role == "first" and found:
        found[0][0]["delta"] = {"role": "assistant", **found[0][0]["delta"]}
    elif how.role == "own":
        found.insert(0, ({"delta": {"role": "assistant", "content": how.empty}}, ""))
    if how.whole != "answer":
        found.append(({"delta": {}}, ""))
    found[-1][0]["finish_reason"] = said.finish
    return found


def _beside(said: Said, how: Dialect, choice: dict[str, Any]) -> dict[str, Any]:
    chunk: dict[str, Any] = {"choices": [{"index": 0, "finish_reason": None, **choice}]}
    if how.nulls:
        chunk["usage"] = chunk["choices"][0]["logprobs"] = None
    if how.usage == "finish" and choice.get("finish_reason") and said.usage:
        chunk["usage"] = said.usage
    return chunk


def _event(chunk: dict[str, Any], how: Dialect) -> bytes:
    separators = None if how.spaced else (",", ":")
    said = json.dumps(chunk, ensure_ascii=how.spaced, separators=separators)
    kind = f"event: message{how.end}" if how.comments else ""
    return f"{kind}data:{how.space}{said}{how.end}{how.end}".encode()


def _deltas(said: Said, how: Dialect) -> Iterator[tuple[dict[str, Any], str]]:
    if how.whole == "answer":
        yield _in_one(said, how), "".join(said.text)
        return
    for piece in said.reasoning:
        yield {"reasoning_content": piece}, ""
    for piece in said.text:
        yield {"content": piece}, piece
    yield from (({"tool_calls": pieces}, "") for pieces in _calls(said, how))


def _in_one(said: Said, how: Dialect) -> dict[str, Any]:
    delta: dict[str, Any] = {"content": "".join(said.text) or None}
    if said.reasoning:
        delta["reasoning_content"] = "".join(said.reasoning)
    return {**delta, "tool_calls": _all(said, how)} if said.calls else delta


def _calls(said: Said, how: Dialect) -> Iterator[list[dict[str, Any]]]:
    if how.whole == "all" and said.calls:
        yield _all(said, how)
        return
    for at, call in enumerate(said.calls):
        yield from ([piece] for piece in ([_whole(call, at, how)] if how.whole else _pieces(call, at, how)))


def _all(said: Said, how: Dialect) -> list[dict[str, Any]]:
    return [_whole(call, at, how) for at, call in enumerate(said.calls)]


def _whole(call: tuple[str, str, str], at: int, how: Dialect) -> dict[str, Any]:
    identity, name, arguments = call
    index = {"index": at} if how.index else {}
    return {**index, "id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def _pieces(call: tuple[str, str, str], at: int, how: Dialect) -> Iterator[dict[str, Any]]:
    identity, name, arguments = call
    index = {"index": at} if how.index else {}
    names = _cut(name, how.name_pieces)
    first = {**index, "id": identity, "type": "function", "function": {"name": names[0], "arguments": ""}}
    yield first
    again = {"id": identity} if how.ids == "always" else {}
    for piece in names[1:]:
        yield {**index, **again, "function": {"name": piece}}
    for piece in _cut(arguments, how.argument_pieces):
        yield {**index, **again, "function": {"arguments": piece}}


def _cut(text: str, pieces: int) -> list[str]:
    size = max(1, -(-len(text) // pieces))
    return [text[at : at + size] for at in range(0, len(text), size)] or [""]


def story(chance: random.Random) -> list[Said]:
    """The answers of one request: some in which only our tool is called, and one that the client sees."""
    hidden = chance.choice([0, 0, 1, 1, 2, 3])
    said = [answered(chance, number, mine=chance.choice([1, 1, 2]), foreign=0) for number in range(hidden)]
    foreign = chance.choice([0, 0, 1, 2])
    mine = chance.choice([0, 1, 2]) if foreign else 0
    return [*said, answered(chance, hidden, mine=mine, foreign=foreign)]


def answered(chance: random.Random, number: int, *, mine: int, foreign: int) -> Said:
    names = [TOOL] * mine + [chance.choice(NAMES) for _ in range(foreign)]
    chance.shuffle(names)
    arguments = {True: json.dumps({"ref": REF, "offset": number}), False: '{"path": "价.txt", "n": 1e5}'}
    calls = [(f"call_{number}_{at}", name, arguments[name == TOOL]) for at, name in enumerate(names)]
    text = [chance.choice(WORDS) for _ in range(chance.choice([0, 0, 1, 3]))]
    if not calls and not text:
        text = ["Done."]
    reasoning = [chance.choice(WORDS) for _ in range(chance.choice([0, 0, 2]))]
    usage = {"prompt_tokens": 100 * (number + 1), "completion_tokens": 7 + number, "total_tokens": 107 + 101 * number}
    return Said(text, reasoning, calls, chance.choice(FINISHES) if calls else "stop", usage)


@dataclass
class Seen:
    """What a client makes of a stream."""

    roles: list[str] = field(default_factory=list)
    text: str = ""
    reasoning: str = ""
    calls: dict[int, dict[str, str]] = field(default_factory=dict)
    finishes: list[str] = field(default_factory=list)
    heads: set[tuple[Any, Any, Any]] = field(default_factory=set)
    usage: list[dict[str, Any]] = field(default_factory=list)
    errors: list[Any] = field(default_factory=list)
    done: int = 0

    @property
    def called(self) -> list[tuple[str, str, str]]:
        return [(call["id"], call["name"], call["arguments"]) for _, call in sorted(self.calls.items())]


def read(stream: bytes) -> Seen:
    """A client that follows the rules: events end at blank lines, pieces of calls go by their index, and where there is
    none a new id or name begins a new call."""
    seen = Seen()
    for block in stream.replace(b"\r\n", b"\n").split(b"\n\n"):
        data = b"\n".join(line[5:].removeprefix(b" ") for line in block.split(b"\n") if line.startswith(b"data:"))
        if data == b"[DONE]":
            seen.done += 1
        elif data:
            _read_chunk(json.loads(data), seen)
    return seen


def _read_chunk(chunk: dict[str, Any], seen: Seen) -> None:
    if chunk.get("error"):
        seen.errors.append(chunk["error"])
        return
    seen.heads.add((chunk["id"], chunk["created"], chunk["model"]))
    if chunk.get("usage"):
        seen.usage.append(chunk["usage"])
    for choice in chunk["choices"]:
        delta = choice["delta"]
        seen.roles += [delta["role"]] if "role" in delta else []
        seen.text += delta.get("content") or ""
        seen.reasoning += delta.get("reasoning_content") or ""
        for piece in delta.get("tool_calls") or []:
            _read_call(piece, seen)
        if choice.get("finish_reason"):
            seen.finishes.append(choice["finish_reason"])


def _read_call(piece: dict[str, Any], seen: Seen) -> None:
    index = piece.get("index", -1)
    if index < 0:
        last = len(seen.calls) - 1
        is_new = last < 0 or ("id" in piece and piece["id"] != seen.calls[last]["id"])
        index = last + is_new
    call = seen.calls.setdefault(index, {"id": "", "name": "", "arguments": ""})
    call["id"] = piece.get("id", call["id"])
    call["name"] += piece["function"].get("name", "")
    call["arguments"] += piece["function"].get("arguments", "")


def joined(parts: Sequence[Event]) -> bytes:
    return b"".join(part.raw for part in parts)
