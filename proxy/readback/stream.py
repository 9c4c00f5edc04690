"""A streamed answer in which the proxy's own tool may be called: the client's stream comes out of it, without us.

Sans-io. Text and reasoning pass at once; what is undecided of a call waits (`choice`). Where nothing was
hidden the bytes out are the bytes in; else the end of the stream waits for `closing`. Each of several choices is freed
of our calls by itself; nothing can be read back into them.
"""

from collections.abc import Sequence
from typing import Any

from proxy.readback.answer import Story, head_of
from proxy.readback.calls import Calls
from proxy.readback.choice import Choice
from proxy.readback.events import DONE, Chunk
from proxy.sse import MAX_BUFFER, Splitter, data_of

MOST_EVENT = 4 * 1024 * 1024  # bytes of an event that is read whole: some servers send an answer as one


class Stream:
    """See `answer.Answer`. Its calls, message and finish are those of the choice that came first."""

    def __init__(self, story: Story) -> None:
        self.is_whole = False
        self._story, self._first = story, Choice(story)
        self._choices: dict[int, Choice] = {}  # by index
        self._splitter = Splitter(MOST_EVENT)
        self._out: list[bytes] = []
        self._apart = _Apart()
        self._end: list[Chunk | bytes] = []  # behind the end of all choices, where that depends on what comes next
        self._has_ended = self._is_broken = False

    @property
    def calls(self) -> Calls:
        return self._first.calls

    @property
    def message(self) -> dict[str, Any]:
        return self._first.message

    @property
    def finish(self) -> str:
        return self._first.finish

    @property
    def is_open(self) -> bool:
        return len(self._choices) <= 1 and not self._first.is_over

    @property
    def is_done(self) -> bool:
        return self._has_ended and self._hides

    def feed(self, chunk: bytes) -> bytes:
        for event in self._splitter.feed(chunk):
            self._take(event)
        return self._shown()

    def end(self) -> bytes:
        rest = self._splitter.rest()
        # half an event, where a stream was cut, may name what nobody is to see
        if Chunk.of(rest, data_of(rest)) is not None or b'"tool_calls"' not in rest:
            self._take(rest)
        self._out += self._apart.told()
        self.is_whole = bool(self.finish or self._has_ended) and not self._is_broken
        return self._shown()

    def closing(self) -> bytes:
        ends = [end for choice in self._all for end in choice.closing()]
        last = [it if isinstance(it, bytes) else self._first.teller.last(it, None) for it in self._end]
        return b"".join([*ends, *last])

    @property
    def _all(self) -> list[Choice]:
        return [*self._choices.values()] or [self._first]

    @property
    def _hides(self) -> bool:
        return any(choice.hides for choice in self._all)

    def _shown(self) -> bytes:
        out, self._out = b"".join(self._out), []
        return out

    def _take(self, event: bytes) -> None:
        data = data_of(event).strip()
        chunk = Chunk.of(event, data)
        if data == DONE:
            self._has_ended = True
            self._close()
            self._finally(event)
        elif chunk is None:
            self._out.append(event)
        elif chunk.is_error:
            self._is_broken = True
            self._out += [*self._apart.told(), event]
        else:
            self._read(chunk)

    def _close(self) -> None:
        told = [event for choice in self._all for event in choice.close()]
        self._out += self._apart.told(told) if self._apart else told

    def _read(self, chunk: Chunk) -> None:
        if not self._story.head:
            self._story.head = head_of(chunk.data)
        self._story.count(chunk.usage)
        if chunk.choice is None:
            self._take_usage(chunk)
            return
        each = chunk.each()
        if len(each) > 1 and not self._apart:
            self._apart.add([event for choice in self._all for event in choice.held])
        told = [event for place, one in enumerate(each) for event in self._choice(one, place).take(one)]
        if len(each) == 1 and not self._apart:
            self._out += told
            return
        self._apart.add([chunk.raw], [one.raw for one in each], told)
        if self._apart.is_full or not any(choice.held for choice in self._all):
            self._out += self._apart.told()

    def _choice(self, chunk: Chunk, place: int) -> Choice:
        """By index; servers that leave out what is 0 leave it out too."""
        index = chunk.choice.get("index") if chunk.choice is not None else None
        index = index if isinstance(index, int) else place
        if index not in self._choices:
            self._choices[index] = Choice(self._story.beside()) if self._choices else self._first
        return self._choices[index]

    def _take_usage(self, chunk: Chunk) -> None:
        """A chunk without choices: usage, or what some servers say of the prompt, which is said once."""
        if chunk.usage is not None:
            if not self._story.hides_usage:
                self._finally(chunk)
        elif not self._story.rounds:
            self._out.append(chunk.raw)

    def _finally(self, item: Chunk | bytes) -> None:
        if self._hides:
            self._end.append(item)
        else:
            self._out.append(item if isinstance(item, bytes) else item.raw)


class _Apart:
    """Events of several choices each, and what came behind them, until it is known whether anything in them is ours.
    If not they go out as they came, else one choice at a time."""

    def __init__(self) -> None:
        self._raws, self._fed, self._told = list[bytes](), list[bytes](), list[bytes]()

    def __bool__(self) -> bool:
        return bool(self._raws)

    @property
    def is_full(self) -> bool:
        return sum(map(len, self._raws)) > MAX_BUFFER

    def add(self, raws: list[bytes], fed: list[bytes] | None = None, told: Sequence[bytes] = ()) -> None:
        """Events as they came, one choice at a time, and what is told of them so far."""
        self._raws += raws
        self._fed += raws if fed is None else fed
        self._told += told

    def told(self, more: list[bytes] | None = None) -> list[bytes]:
        """All of it, and `more` that was held in them."""
        told = self._told + (more or [])
        told = self._raws if sorted(self._fed) == sorted(told) else told
        self._raws, self._fed, self._told = [], [], []
        return told
