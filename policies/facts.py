"""What the grammar, the split and the steps ask of a message again and again, without opening it again."""

from collections.abc import Sequence

import msgspec

from policies.messages import Content, Message

MEDIA = frozenset(["image", "audio", "file"])  # kinds of parts
RESULTS = frozenset(["tool", "function"])  # roles


class Facts(msgspec.Struct, frozen=True, gc=False):
    """A message in figures and names; none of its text.

    `tokens` is the message by itself: text, calls, media and what the template adds. Only a tool result is short of
    one thing there, the name of its function, which stands in the call (`Bill` has it). `chars` is the length of its
    text. `newline` is what one more newline at the end of a system text costs. `sealed` is what of `tokens` was taken
    for thoughts that are sent back encrypted, which some servers bill and some do not.
    """

    role: str
    content: Content
    call_ids: tuple[str, ...]
    call_names: tuple[str, ...]
    call_id: str
    name: str
    chars: int
    tokens: int
    exact: bool
    media: bool
    newline: int = 0
    sealed: int = 0

    @classmethod
    def of(cls, message: Message, tokens: int, *, exact: bool, newline: int = 0) -> "Facts":
        """The facts of an opened message whose tokens are known."""
        return cls(
            role=message.role,
            content=message.content,
            call_ids=tuple([call.id for call in message.calls]),
            call_names=tuple([call.name for call in message.calls]),
            call_id=message.call_id,
            name=message.name,
            chars=len(message.text),
            tokens=tokens,
            exact=exact,
            media=any([part.kind in MEDIA for part in message.parts]),
            newline=newline,
        )


def closed(known: Sequence[Facts]) -> int:
    """How many messages, from the first, nothing can change that comes behind them: all but a newest round that may
    still get results. A result may make calls itself; then it belongs to two rounds."""
    first = len(known)
    for at in range(len(known) - 1, -1, -1):
        if known[at].call_names:
            first = at
        if known[at].role not in RESULTS:
            break
    return first
