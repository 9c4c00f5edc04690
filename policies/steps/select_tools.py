"""Of a large catalogue, the tools that the conversation may need (DESIGN 5, Tools).

What is chosen depends on the prefix of the conversation alone and only grows with it: each user message adds the tools
that speak to it, none takes one away. A side model is asked about the newest question; of its earlier choices those
stay that were called or named.
"""

import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import ClassVar, Literal

import msgspec

from policies.draft import Draft
from policies.needs import Ask, Reply
from policies.plan import Drop, Edit, Leaf, Level
from policies.spans import Evict, Span, Tier
from policies.step import When
from policies.tools import Tool, first_sentence
from policies.tools_ranking import called, catalogue, named, shortened

Mode = Literal["off", "lexical", "model"]

LINE_CHARS = 160  # of a description that the side model is shown
EARLIER = 2  # user messages before the newest that the side model is shown, so that it knows what "it" is
EARLIER_CHARS = 300  # of each of them
ANSWER_TOKENS = 16  # a name and its line break
MOST_ANSWER_TOKENS = 512
NOTHING = "NONE"
ECHO = 4  # names from the head of the catalogue, in its order: nobody chose them
SPEAKING = ("system", "developer", "user", "assistant")  # results are left out: whoever wrote them could hide tools

_MARK = re.compile(r"^(?:[-*•]|\d+[.)])\s+")
_QUOTES = " \t`'\"*,;.。，；"


@dataclass(frozen=True)
class SelectTools:
    """Acts on catalogues of `min_tools` and more. Always kept: what `tool_choice` names, what was called, what a
    message names, tools whose names match one of `always` (`*` and `?` stand for any characters).

    `model`: what the side model names, filled up by words to `at_least`; all tools when there is none, when it fails,
    or when its answer cannot be trusted. `lexical`: for each user message the `keep` tools that share most words with
    it; users seldom use the words of a tool, and 10 of 18 recorded conversations found every tool that they needed.
    """

    mode: Mode = "model"
    when: When = "pressure"
    keep: int = 20
    at_least: int = 6
    min_tools: int = 15
    always: tuple[str, ...] = ()
    level: Level = Level.TOOL_RESULTS
    name: str = "select-tools"
    leaf: Leaf = Leaf.NONE
    eases: ClassVar[Tier] = Tier.L2

    def __post_init__(self) -> None:
        if self.keep < 1:
            raise ValueError("'keep' must be at least 1; to keep every tool, leave the step out")

    def edits(self, draft: Draft) -> Iterator[Edit | Ask]:
        now = Level.NONE if self.when == "always" else self.level
        if self.mode == "off" or draft.level is not now or len(draft.tools) < self.min_tools:
            return
        chosen = (yield from self._asked(draft)) if self.mode == "model" else self._matching(draft)
        if chosen is None:
            return
        chosen |= called(draft) | named(draft, [span for span in draft.messages if span.role in SPEAKING])
        going = tuple(span.id for span in draft.tools if not self._stays(span, chosen))
        if going:
            kept = len(draft.tools) - len(going)
            yield Drop(going, f"{kept} of {len(draft.tools)} tools kept, chosen by {_CHOOSER[self.mode]}")

    def _stays(self, span: Span, chosen: set[str]) -> bool:
        """A tool without a name is run by the provider, and nobody can say when it is needed."""
        wanted = not span.name or span.name in chosen or any(fnmatchcase(span.name, glob) for glob in self.always)
        return wanted or span.evict is Evict.PINNED

    def _matching(self, draft: Draft) -> set[str] | None:
        """What the words of the user messages speak for; None, all tools, where they speak for none."""
        offered = catalogue(tuple(span.item for span in draft.tools))
        texts = [draft.original(span) for span in draft.messages if span.is_user]
        return {name for text in texts for name in offered.best(text, self.keep)} or None

    def _asked(self, draft: Draft) -> Generator[Edit | Ask, Reply | None, set[str] | None]:
        texts = [draft.original(span) for span in draft.messages if span.is_user]
        tools = {span.name: _line(span) for span in draft.tools if span.name}
        if not texts:
            return None
        room = min(MOST_ANSWER_TOKENS, ANSWER_TOKENS * len(tools))
        reply = yield Ask("select_tools", {"question": question(texts), "tools": "\n".join(tools.values())}, room)
        answer = parse(reply.text, tuple(tools)) if reply is not None else None
        if answer is None or (not answer.names and draft.prompt.tool_choice == b'"required"'):
            return None
        return answer.names | self._filling(draft, answer, texts[-1]) if answer.names else set()

    def _filling(self, draft: Draft, answer: "Named", text: str) -> set[str]:
        """The side model says the question in words of its own, which may be nearer to those of the catalogue."""
        offered = catalogue(tuple(span.item for span in draft.tools))
        ranked = offered.best(f"{text}\n{answer.said}", self.at_least + len(answer.names))
        return set([name for name in ranked if name not in answer.names][: max(0, self.at_least - len(answer.names))])


_CHOOSER = {"lexical": "the words that they share with user messages", "model": "the side model"}


def question(texts: list[str]) -> str:
    """The newest user message, with the heads of those before it in front."""
    earlier = [text[:EARLIER_CHARS] for text in texts[-1 - EARLIER : -1]]
    return "\n\n".join([*earlier, shortened(texts[-1])])


class Named(msgspec.Struct, frozen=True):
    """What stands in an answer of the side model: names of tools, and lines that are none."""

    names: set[str]
    said: str = ""


def parse(answer: str, tools: Sequence[str]) -> Named | None:
    """An answer that holds one name a line; no names for the one word NONE, at most behind one other line.

    None, which is all tools, for an answer that is empty or talk (most of its lines are no name in the catalogue), or
    that only tells the catalogue from its beginning.
    """
    lines = [line for line in answer.splitlines() if line.strip()]
    bare = [_bare(line) for line in lines]
    known = [line for line in bare if line in tools]
    said = "\n".join(line for line, name in zip(lines, bare, strict=True) if name not in tools)
    if not known and bare and bare[-1].upper() == NOTHING and len(bare) <= 2:
        return Named(set(), said)
    told = len(known) >= ECHO and known == list(tools[: len(known)])
    return Named(set(known), said) if known and 2 * len(known) >= len(lines) and not told else None


def _bare(line: str) -> str:
    """The name in a line, without list marks, quotes, and a description behind a colon."""
    return _MARK.sub("", line.strip()).split(": ")[0].strip(_QUOTES).removesuffix(":")


def _line(span: Span) -> str:
    said = first_sentence(Tool.of(span.item.raw).description)[:LINE_CHARS]
    return f"{span.name}: {said}" if said else span.name
