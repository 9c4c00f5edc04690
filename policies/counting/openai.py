"""The exact count of a chat request to OpenAI: the rules of FACTS 1, kept per message and per tool.

All figures are tokens. What a message costs by itself is remembered under the digest of its bytes; a bill of known
messages only adds figures up.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import msgspec

from policies.counting import Bill, Costs, Encoding
from policies.counting.bodies import body, ending, opened
from policies.counting.families import Family
from policies.counting.formats import name, schema_of, section
from policies.counting.memo import REMEMBERED, Memo
from policies.counting.rounds import Results, arguments, calls_text, shares
from policies.counting.tools import Tool, count_tool, frame
from policies.facts import RESULTS, Facts, closed
from policies.grown import Grown, Run, before, leave, now
from policies.jsonraw import NotJSON, elements, loads
from policies.messages import Message
from policies.request import Item, Prompt

SYSTEM = frozenset(["system", "developer"])
V = TypeVar("V")


class _Round(msgspec.Struct, frozen=True):
    tokens: tuple[int, ...]  # of the assistant message and each result
    rest: int


class _Settled(NamedTuple):
    """Of messages whose cost nothing behind them can change: tokens of each, and of all; what belongs to none of them;
    whether all are exact."""

    messages: Run[int] = Run()
    total: int = 0
    rest: int = 0
    exact: bool = True


_NOTHING = _Settled()


class _Format(msgspec.Struct, frozen=True):
    section: int = 0
    address: int = 0  # what names the format in front of an answer


class OpenAICounter:
    """Counter of one family of OpenAI's models."""

    def __init__(self, family: Family, encoding: Encoding) -> None:
        self.name = f"openai/{encoding.name}"
        self._family, self._encoding = family, encoding
        self._facts: Memo[bytes, Facts] = Memo(REMEMBERED)
        self._tools: Memo[bytes, Tool] = Memo(REMEMBERED)
        self._rounds: Memo[tuple[bytes, ...], _Round] = Memo(REMEMBERED)
        self._results = Results(encoding, wide=family.wide)
        self._names: Memo[str, int] = Memo(REMEMBERED)
        self._formats: Memo[bytes, _Format] = Memo(1024)
        self._functions: Memo[bytes, tuple[Tool, ...]] = Memo(1024)
        self._frame = frame(encoding)

    def bill(self, prompt: Prompt) -> Bill:
        """The whole prompt. Exact unless it holds media that cannot be measured from here."""
        known = self.all_facts(prompt.messages)
        tools = self._all_tools(prompt.tools)
        legacy = self._legacy(prompt.functions)
        form = self._format(prompt.response_format)
        messages, rest, exact = self._messages(prompt.messages, known)
        overhead = self._family.priming + rest
        overhead += self._opening(known, [*tools, *legacy], form) + self._answers(known, tools, form)
        overhead += self._choice(prompt.tool_choice) + sum(tool.tokens for tool in legacy)
        exact = exact and all([tool.exact for tool in tools])
        names = tuple([tool.name for tool in tools])
        return Bill(messages, tuple([tool.tokens for tool in tools]), max(0, overhead), exact, names)

    def facts(self, item: Item) -> Facts:
        """What is known of a message; opened and counted at first sight only."""
        found = self._facts.get(item.key)
        return found if found is not None else self._facts.set(item.key, self._count(item))

    def text(self, text: str) -> int:
        """Tokens of a bare text."""
        return self._encoding.count(text)

    def new_bytes(self, prompt: Prompt) -> int:
        """Bytes of messages and tools that were not counted before."""
        known, _ = before(prompt.messages, self)
        messages = prompt.messages[known:] if known else prompt.messages
        return _fresh(messages, self._facts) + _fresh(prompt.tools, self._tools)

    def all_facts(self, items: Sequence[Item]) -> Sequence[Facts]:
        """`facts` of each."""
        if not isinstance(items, Grown):
            found = self._facts.all([item.key for item in items])
            return [facts or self.facts(item) for facts, item in zip(found, items, strict=True)]
        told: Run[Facts] | None = now(items, self)
        if told is None:
            known, left = before(items, self)
            begun: Run[Facts] = left or Run()
            told = begun.and_then(self.all_facts(items[known:]))
            leave(items, self, told)
        return told

    def _all_tools(self, items: Sequence[Item]) -> list[Tool]:
        if not items:
            return []
        found = self._tools.all([item.key for item in items])
        return [tool or self._tool(item) for tool, item in zip(found, items, strict=True)]

    def _count(self, item: Item) -> Facts:
        message = opened(item)
        count, family = self._encoding.count, self._family
        content = body(item, message, family.images, reasoning=family.reasoning, document=family.document)
        spoken = count(content.text)
        tokens = 0
        if message.role in RESULTS:
            tokens = family.call // 2 + spoken + content.media
        elif spoken or content.media or not message.calls:
            tokens = 3 + self._name_of(message.role) + spoken + content.media + self._author(message)
            tokens += family.assistant if message.role == "assistant" else 0
        for call in message.calls:
            called = self._name_of(f"functions.{call.name}")
            tokens += called + count(arguments(call)) + family.call - family.call // 2
        newline = self._newline(content.text) if message.role in SYSTEM else 0
        exact = content.exact and not any(call.custom for call in message.calls)
        return Facts.of(message, tokens, exact=exact, newline=newline)

    def _newline(self, text: str) -> int:
        """What one more newline at the end costs; only the end is counted for it."""
        end = ending(text)
        return self._encoding.count(end + "\n") - self._encoding.count(end)

    def _author(self, message: Message) -> int:
        """A name that only repeats the role costs one token less."""
        return self._encoding.count(message.name) + (message.name != message.role) if message.name else 0

    def _messages(self, items: Sequence[Item], known: Sequence[Facts]) -> tuple[Sequence[int], int, bool]:
        """Tokens of each message, what belongs to none of them, and whether all are exact."""
        if not isinstance(items, Grown):
            tokens, rest = self._settled(items, known)
            return tuple(tokens), rest, _exact(known)
        key = self, "settled"
        begun: _Settled = before(items, key)[1] or _NOTHING
        start, end = len(begun.messages), closed(known)
        tokens, rest = self._settled(items[start:end], known[start:end])
        exact = begun.exact and _exact(known[start:end])
        older, total = begun.messages.and_then(tokens), begun.total + sum(tokens)
        leave(items, key, _Settled(older, total, begun.rest + rest, exact))
        tail, further = self._settled(items[end:], known[end:])
        costs = Costs(older, tuple(tail), total + sum(tail), begun.messages)
        return costs, begun.rest + rest + further, exact and _exact(known[end:])

    def _settled(self, items: Sequence[Item], known: Sequence[Facts]) -> tuple[list[int], int]:
        """Tokens of each message with what depends on its round, and what belongs to none of them."""
        messages = [facts.tokens for facts in known]
        return messages, self._settle_rounds(items, known, messages)

    def _settle_rounds(self, items: Sequence[Item], known: Sequence[Facts], messages: list[int]) -> int:
        """Correct `messages` for what depends on a whole round; returns what belongs to no message."""
        rest = 0
        names: dict[str, int] = {}
        for at, facts in enumerate(known):
            if not facts.call_names:
                continue
            end = at + 1
            while end < len(known) and known[end].role in RESULTS:
                end += 1
            if len(facts.call_names) == 1:
                name = facts.call_names[0]
                spelt = names.get(name) or names.setdefault(name, self._name_of(name))
                for result in range(at + 1, end):
                    messages[result] += spelt
            else:
                settled = self._round(items[at:end], known[at:end])
                messages[at:end] = settled.tokens
                rest += settled.rest
        return rest

    def _name_of(self, word: str) -> int:
        """Tokens of a role or a function's name, which come again and again."""
        found = self._names.get(word)
        return found if found is not None else self._names.set(word, self._encoding.count(word))

    def _round(self, items: Sequence[Item], known: Sequence[Facts]) -> _Round:
        key = tuple(item.key for item in items)
        found = self._rounds.get(key)
        return found if found is not None else self._rounds.set(key, self._count_round(items, known))

    def _count_round(self, items: Sequence[Item], known: Sequence[Facts]) -> _Round:
        """Parallel calls as one unit; what the assistant said besides is a message of its own."""
        count, family = self._encoding.count, self._family
        message = opened(items[0])
        bodies = [body(item, opened(item), family.images, document=family.document) for item in items[1:]]
        said = known[0].tokens - sum(
            count(f"functions.{call.name}") + count(arguments(call)) + family.call - family.call // 2
            for call in message.calls
        )
        asked = said + count(calls_text(message.calls)) + family.parallel // 2
        rest = family.parallel - family.parallel // 2
        if not bodies:
            return _Round((asked,), rest)
        listed = self._results.tokens([item.key for item in items[1:]], [one.text for one in bodies])
        shared = shares(listed, [facts.tokens for facts in known[1:]])
        results = [share + one.media for share, one in zip(shared, bodies, strict=True)]
        return _Round((asked, *results), rest + listed - sum(shared))

    def _tool(self, item: Item) -> Tool:
        found = self._tools.get(item.key)
        return found if found is not None else self._tools.set(item.key, count_tool(item.raw, self._encoding))

    def _legacy(self, raw: bytes | None) -> tuple[Tool, ...]:
        """The tools of the old `functions` field, which belong to the overhead: they cannot be edited one by one."""
        if raw is None:
            return ()
        found = self._functions.get(raw)
        return found if found is not None else self._functions.set(raw, self._count_legacy(raw))

    def _count_legacy(self, raw: bytes) -> tuple[Tool, ...]:
        try:
            items = elements(raw)
        except NotJSON:
            return ()
        return tuple(count_tool(one, self._encoding) for one in items)

    def _opening(self, known: Sequence[Facts], tools: Sequence[Tool], form: _Format) -> int:
        """What tools and a format add around themselves in the system message."""
        if not tools and not form.section:
            return 0
        family = self._family
        begun = bool(known) and known[0].role in SYSTEM
        overhead = known[0].newline if begun else family.alone
        if tools:
            overhead += family.tools + self._frame + tools[0].first
        return overhead + form.section

    def _answers(self, known: Sequence[Facts], tools: Sequence[Tool], form: _Format) -> int:
        """A format is named in front of each answer; where a tool may be called instead, not of the one to come."""
        if not form.section:
            return 0
        answers = sum(facts.role == "assistant" and not facts.call_names for facts in known)
        return (2 + form.address) * answers + (1 if tools else 2 + form.address)

    def _format(self, raw: bytes | None) -> _Format:
        if raw is None:
            return _Format()
        found = self._formats.get(raw)
        return found if found is not None else self._formats.set(raw, self._count_format(raw))

    def _count_format(self, raw: bytes) -> _Format:
        schema = schema_of(raw)
        if schema is None:
            return _Format()
        count = self._encoding.count
        wide = self._family.wide is not False
        return _Format(count(section(schema, wide=wide)), count(name(schema)))

    def _choice(self, raw: bytes | None) -> int:
        if raw is None or not self._family.spells_choice:
            return 0
        if raw == b'"none"':
            return 1
        try:
            value = loads(raw)
        except NotJSON:
            return 0
        function = value.get("function") if isinstance(value, dict) else None
        forced = function.get("name") if isinstance(function, dict) else None
        return 7 + self._encoding.count(forced) if isinstance(forced, str) else 0


def _exact(known: Sequence[Facts]) -> bool:
    return all([facts.exact for facts in known])


def _fresh(items: Sequence[Item], seen: Memo[bytes, V]) -> int:
    """Bytes of what is not among `seen`."""
    found = seen.all([item.key for item in items]) if items else []
    if all(found):
        return 0
    return sum([len(item.raw) for item, value in zip(items, found, strict=True) if value is None])
