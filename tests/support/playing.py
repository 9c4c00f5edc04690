"""The rounds of one request through the stream machine, without a proxy around it."""

from collections.abc import Callable, Sequence

from support.rounds import TOOL

from proxy.readback.answer import Story, asks_again
from proxy.readback.stream import Stream


def play(rounds: Sequence[bytes], pieces: Callable[[bytes], Sequence[bytes]] = lambda raw: [raw]) -> bytes:
    """All that the client gets of the rounds of one request, each read in pieces."""
    told, out = Story(), list[bytes]()
    for raw in rounds:
        answer = Stream(told)
        out += [answer.feed(piece) for piece in pieces(raw)]
        out.append(answer.end())
        if not asks_again(answer):
            out.append(answer.closing())
            break
        told.add(answer, [b"{}"])
    return b"".join(out)


def names_it(told: bytes) -> bool:
    return TOOL.encode() in told.replace(b"read_tool_results", b"")  # which is another tool's name
