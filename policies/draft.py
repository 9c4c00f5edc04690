"""The draft: a prompt while it is being edited. Steps read it; only the pipeline changes it."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

import msgspec

from policies.budget import TOOLS_CAP_SHARE
from policies.counting import Bill, Counter
from policies.facts import Facts
from policies.messages import Message
from policies.plan import Level
from policies.readback_tool import NAME
from policies.refs import Refs
from policies.request import Item, Prompt
from policies.spans import Bucket, Span
from policies.texts.stubs import AGAIN, by_ref
from policies.tools import among


class DraftState(msgspec.Struct, frozen=True):
    """A draft at one moment, to go back to."""

    order: tuple[str, ...]
    live: dict[str, Span]
    overhead: int
    total: int
    billed: bool
    frozen: frozenset[str]


class Draft:
    """Live spans in prompt order, and the running total. All figures are tokens of the target model.

    For steps: `messages`, `tools`, `level`, `total`, `target`, `limit`, `excess`, `caps`, `message`, `facts`,
    `measure`, `back`.
    `target` is the total that the level asks for; a step stops when `excess` is no longer positive.
    """

    def __init__(self, prompt: Prompt, counter: Counter, spans: Sequence[Span], bill: Bill) -> None:
        self.prompt = prompt
        self.counter = counter
        self.level = Level.NONE
        self.limit = self.target = bill.total
        self.window: int | None = None
        self.caps: Mapping[Bucket, int] = {}  # tokens, as the policy says for this window
        self.reserved = 0  # tokens of injections that are placed last
        self.overhead = bill.overhead
        self.exact = bill.exact
        self._order = [span.id for span in spans]
        self._received = {span.id: span for span in spans}
        self._live = dict(self._received)
        self._rounds: dict[int, list[str]] = {}  # ids, in prompt order, of whatever ever stood in the round
        for span in spans:
            if span.round >= 0:
                self._rounds.setdefault(span.round, []).append(span.id)
        self._total = bill.total
        self._billed = True  # the total is the counter's, not what single edits were estimated to save
        self._listed: tuple[list[Span], list[Span]] | None = None  # live messages and tools, until one changes
        self.frozen: frozenset[str] = frozenset()  # spans that were sent before, and stand as they do until an epoch
        self.at_first_sight = False  # boundary steps look at what is new, whatever the pressure
        self.steps: frozenset[str] = frozenset()  # names of the steps that the policy has
        self.settled: set[str] = set()  # spans of which a stub was tried and would not be smaller
        self.refs: Refs | None = None  # None: no way back may be promised now
        self.read_only: tuple[str, ...] = ()  # patterns for names of tools that change nothing
        self.issued: dict[str, str] = {}  # texts by the ref that was made for them
        self._refs: dict[str, str] = {}
        self._opened: dict[bytes, Message] = {}
        self._measured: dict[str, int] = {}

    # -- what steps read

    @property
    def spans(self) -> list[Span]:
        return [*self.messages, *self.tools]

    @property
    def messages(self) -> list[Span]:
        return self._both[0]

    @property
    def tools(self) -> list[Span]:
        return self._both[1]

    @property
    def _both(self) -> tuple[list[Span], list[Span]]:
        if self._listed is None:
            live = [span for span in map(self._live.get, self._order) if span is not None]
            self._listed = [one for one in live if one.id[0] != "t"], [one for one in live if one.id[0] == "t"]
        return self._listed

    @property
    def total(self) -> int:
        """Tokens now, with what is reserved for injections."""
        return self._total + self.reserved

    @property
    def excess(self) -> int:
        """Tokens over the level's target; zero or less: enough was done."""
        return self.total - self.target

    @property
    def tools_cap(self) -> int:
        """Tokens that tools may cost under pressure."""
        return self.caps.get(Bucket.TOOLS, int(TOOLS_CAP_SHARE * self.limit))

    def measure(self, text: str) -> int:
        """Tokens of a bare text; the same text is counted once."""
        if (known := self._measured.get(text)) is not None:
            return known
        return self._measured.setdefault(text, self.counter.text(text))

    def message(self, span: Span) -> Message:
        """The span's message, opened once."""
        key = span.item.key
        return self._opened.get(key) or self._opened.setdefault(key, Message.of(span.item.raw))

    def received(self, span: Span) -> Span:
        """The span as it came, whatever was made of it since."""
        return self._received.get(span.id, span)

    def original(self, span: Span) -> str:
        """The text of the message as it came."""
        return self.message(self.received(span)).text

    def back(self, span: Span) -> str:
        """The way back to what the message said as it came, in words for whoever sees less of it; "": there is none.
        What our own tool answered can be asked of it again."""
        if span.name == NAME:
            return AGAIN
        by_name = self.by_ref(self.original(span))
        if by_name:
            return by_name
        return AGAIN if span.is_result and any(fnmatchcase(span.name, one) for one in self.read_only) else ""

    @property
    def back_tokens(self) -> int:
        """What a way back costs."""
        return self.measure(by_ref(self.refs.ref_of(""))) if self.refs is not None else 0

    def by_ref(self, text: str) -> str:
        """The way back to a text that is to be stored, "" where none may be promised."""
        if self.refs is None or not text:
            return ""
        ref = self._refs.get(text) or self._refs.setdefault(text, self.refs.ref_of(text))
        self.issued[ref] = text
        return by_ref(ref)

    def facts(self, span: Span) -> Facts:
        return self.counter.facts(span.item)

    def get(self, span_id: str) -> Span | None:
        """The span as it stands now, None when it was removed."""
        return self._live.get(span_id)

    def round(self, number: int) -> tuple[Span, ...]:
        found = self._rounds.get(number, ())
        return tuple(span for span in map(self._live.get, found) if span is not None and span.round == number)

    # -- what the pipeline does

    def cost(self, span: Span, item: Item) -> int:
        """Tokens of `item` in the place of `span`, by itself."""
        if span.kind == "tool":
            return self.counter.bill(Prompt(self.prompt.model, (), (item,))).tools[0]
        return self.counter.facts(item).tokens

    def put(self, span: Span) -> None:
        """Replace the span of that id, or bring it back to its place."""
        before = self._live.get(span.id)
        self._total += span.tokens - (before.tokens if before else 0)
        self._live[span.id] = span
        self._listed, self._billed = None, False

    def insert(self, span: Span, *, before: str | None) -> None:
        """A new message, before the span of that id or (None) behind all messages. One that was removed comes back
        there, and not where it stood."""
        if span.id in self._received or span.id in self._live:
            raise ValueError(f"{span.id} stands in the prompt already")
        if span.id in self._order:
            self._order.remove(span.id)
        ends = before or next((span_id for span_id in self._order if span_id[0] == "t"), None)
        place = self._order.index(ends) if ends else len(self._order)
        self._order.insert(place, span.id)
        if span.round >= 0:  # what stood in it before the draft went back to an earlier state may be gone
            at = {span_id: number for number, span_id in enumerate(self._order)}
            ids = {*self._rounds.get(span.round, ()), span.id}
            self._rounds[span.round] = sorted(ids & at.keys(), key=at.__getitem__)
        self._live[span.id] = span
        self._listed, self._billed = None, False
        self._total += span.tokens

    def in_order(self, spans: Sequence[Span]) -> list[Span]:
        """Spans that may have been removed, as they stood in the prompt."""
        place = {span_id: at for at, span_id in enumerate(self._order)}
        return sorted(spans, key=lambda span: place[span.id])

    def offer(self, span: Span) -> None:
        """A new tool, behind all others."""
        self._order.append(span.id)
        self._live[span.id] = span
        self._listed, self._billed = None, False
        self._total += span.tokens

    def remove(self, span_id: str) -> None:
        self._total -= self._live.pop(span_id).tokens
        self._listed, self._billed = None, False

    def placed(self) -> list[list[Span]]:
        """Live messages by the received one that they stand for or behind; first those that stand before all."""
        groups: list[list[Span]] = [[]]
        for span_id in self._order:
            if span_id[0] == "m":
                groups.append([])
            span = self._live.get(span_id)
            if span is not None and span_id[0] != "t":
                groups[-1].append(span)
        return groups

    def as_prompt(self) -> Prompt:
        """The prompt of the live spans: the received object where all items are the received ones."""
        messages = tuple(span.item for span in self.messages)
        tools = tuple(span.item for span in self.tools)
        received = self.prompt
        if messages == received.messages and tools == received.tools:
            return received
        choice = among(received.tool_choice, [item.raw for item in tools]) if tools else None
        return msgspec.structs.replace(received, messages=messages, tools=tools, tool_choice=choice)

    def rebill(self) -> None:
        """Count everything again: what single edits were estimated to save becomes what they save together."""
        if self._billed:
            return
        bill = self.counter.bill(self.as_prompt())
        costs = [*bill.messages, *bill.tools]
        for span, tokens in zip([*self.messages, *self.tools], costs, strict=True):
            if span.tokens != tokens:
                self._live[span.id] = msgspec.structs.replace(span, tokens=tokens)
        self._listed = None
        self.overhead, self.exact, self._total, self._billed = bill.overhead, bill.exact, bill.total, True

    def snapshot(self) -> DraftState:
        order, live = tuple(self._order), dict(self._live)
        return DraftState(order, live, self.overhead, self._total, self._billed, self.frozen)

    def restore(self, state: DraftState) -> None:
        self._order, self._live, self._listed = list(state.order), dict(state.live), None
        self.overhead, self._total, self._billed = state.overhead, state.total, state.billed
        self.frozen = state.frozen
