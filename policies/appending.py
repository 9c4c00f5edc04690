"""Messages put behind those of a request that left already; every other byte of it stays where it is, so that the
provider's prompt cache holds up to there."""

from collections.abc import Sequence

from policies.jsonraw import RawObject, array


def appended(body: bytes, messages: Sequence[bytes], *, calls: bool = True) -> bytes:
    """The request with `messages` at its end; without `calls` its `tool_choice` is none.

    `body` must have been opened as a ChatRequest before: an object with an array of messages."""
    request = RawObject.parse(body)
    field = next(member for member in reversed(request.members) if member.name == "messages")
    end = field.end - 1
    is_empty = not body[field.start + 1 : end].strip()
    changes = [(end, end, (b"" if is_empty else b",") + array(messages)[1:-1])]
    if not calls:
        changes += _without_calls(request)
    for start, stop, put in sorted(changes, reverse=True):
        body = body[:start] + put + body[stop:]
    return body


def _without_calls(request: RawObject) -> list[tuple[int, int, bytes]]:
    found = [(one.start, one.end, b'"none"') for one in request.members if one.name == "tool_choice"]
    end = request.source.rindex(b"}")
    return found or [(end, end, b',"tool_choice":"none"')]
