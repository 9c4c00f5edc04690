"""Whether a request is the client's own compaction: agents ask their model for a summary of the conversation to go on
with. Such a request passes untouched, since what it is about is the whole history.

Instructions of this kind have three marks: a sentence begins by asking for a summary; it is one of the conversation;
and the text says what it is for (to go on from it, to free the window) or lists what it has to hold. A person who asks
for a summary of the chat gives the first two; a system prompt that explains compaction does not begin by asking.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from policies.jsonraw import NotJSON
from policies.messages import Message
from policies.request import Item, Prompt
from policies.split import INSTRUCTING

EDGE = 2_000  # characters at each end of a text: transcripts stand between or beside instructions
PARTS = 8  # of a message that are looked at, from its end: a client may send thousands
SHORTEST = 100  # characters: below that a person wrote it
ENOUGH = 4  # of DETAILS, in a list of at least LINES lines, stand for a purpose
LINES = 3

_HINT = re.compile("summar|compact|compress|condens|distil|handoff|hand-off|snapshot|continu|extract", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?:])\s+|\n+")
_MARKUP = " \t#*>_-<(0123456789.)"  # no quotes: what is quoted is not asked
_CODE = re.compile(r"`|\w\.(?:py|ts|tsx|js|rs|go|java|rb|c|cpp|cs|md|txt|json|toml|ya?ml)\b")

_TALK = (
    r"(?:conversations?|chats?|dialogues?|sessions?|threads?|history|histories|transcripts?|messages|interactions?"
    r"|context|events)"
)
_SUMMARY = r"(?:summar(?:y|ies)|hand-?off|snapshot|checkpoint|prompt (?:for|to) continu\w+)"
_THING = r"(?:function|class|method|test|endpoint|script|feature|component|module|tool|button|page|table|command|api)"
_MAKE = r"(?:creat|writ|generat|produc|provid|giv|draft|prepar|mak|output|updat|extend|return|maintain)"
_MADE = rf"(?:\W+(?!(?:{_THING}|that|which|to|how|why)\b)\w+){{0,8}}?\W+{_SUMMARY}\b(?!\s+{_THING})"
_DOES = (
    r"(?:summari[sz](?:e|es|ers?|ing|ation)|compact(?:s|ing|ion|or)?|compress(?:es|ing|ion|or)?|condens(?:e|es|ing|er)"
    rf"|distill?(?:s|ing)?|{_MAKE}(?:e|es|s|ing)?{_MADE})\b"
)
_LEAD = r"(?:(?:please|now|first|then|next)\W+)?(?:\w+ly\W+)?"

ASKS = (
    rf"{_LEAD}(?:summari[sz]e|compact|condense|compress|distill?)\b",
    rf"{_LEAD}{_MAKE}e?\b{_MADE}",
    rf"you (?:are|will|must|have to|should|update|maintain|summari[sz]e)\b.*\b{_DOES}|you (?:update|maintain)\b{_MADE}",
    rf"{_LEAD}your (?:\w+ ){{0,3}}?(?:task|job|goal|role|objective|mission|purpose)\b.*\b(?:{_DOES}|extract\b)",
)
"""How a sentence begins that asks for a summary. It also says of what: see _TALK."""

PURPOSES = (
    rf"\b(?:for|to|can|will|could|seamlessly|helpful for|essential for)\s+continu(?:e|ing)\b.{{0,40}}\b"
    rf"(?:work\w*|task|development|reasoning|progress|{_TALK})\b",
    r"\bresum(?:e|es|ing)\b.{0,40}\b(?:work|task|conversation|session)\b|\bconversation (?:resumes|can continue)\b",
    r"\b(?:another|next|new|different|future|successor)\s+(?:\w+\s+)?(?:LLM|model|agent|assistant|AI|prompt)\b",
    r"\bcontext (?:window|limit|length|budget)\b|\b(?:out of|free up|save|losing|loss of)\s+(?:\w+\s+)?context\b",
    r"\b(?:token limit|number of input tokens|(?:memory|context) constraints)\b",
    rf"\b(?:replace|overwrite|stand in for)s?\b.{{0,40}}\b{_TALK}\b",
    r"\bonly\W{1,3}(?:memory|context|record)\b",
    r"\b(?:previous|existing|prior|running|rolling|anchored)[ _-]summary\b|\bextend the summary\b",
    r"\bpart of a (?:longer|larger) conversation\b",
    r"\b(?:conversation|history|dialogue|chat) between (?:a|the) (?:user|human) and (?:an?|the) (?:AI|assistant)\b",
    r"</?(?:summary|analysis|state_snapshot)>|\bonly (?:with )?(?:the|your|a) (?:\w+ )?summary\b",
)
"""What such a summary is for, or that a program reads it; one is enough."""

DETAILS = (
    r"\bnext steps?\b|\bremain(?:s|ing)\b|\bto-?dos?\b|\b(?:pending|open) \w+|\baction items\b",
    r"\b(?:key|important|technical) (?:\w+ )?(?:concepts|facts|points|details|information)\b|\bdecisions\b",
    r"\bfiles?\b|\bcode snippets\b|\bfunction (?:names|signatures)\b|\bcode changes\b",
    r"\buser'?s?(?: \w+){0,2} (?:requests?|goals?|intents?|preferences|requirements|messages)\b|\bconstraints\b",
    r"\berrors?\b|\bproblems? solv",
    r"\bcurrent (?:state|work|task|progress)\b|\bin progress\b|\bcompleted\b|\boverview\b",
    r"\boutcomes?\b|\btool (?:calls|results)\b",
    rf"\b{_TALK} (?:so far|to date)\b|\btopics\b|\bdiscussed\b",
    r"\b(?:sections|template|format|headings|bullet points)\b",
)
"""What such a summary has to hold."""


def _compiled(patterns: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE | re.DOTALL) for pattern in patterns)


_ASKS, _PURPOSES, _DETAILS = _compiled(ASKS), _compiled(PURPOSES), _compiled(DETAILS)
_OF = re.compile(rf"\b{_TALK}\b", re.IGNORECASE)
_LIST = re.compile(r"^[ \t]*(?:\d+[.)]|[-*#])", re.MULTILINE)


@dataclass(frozen=True)
class Compaction:
    """Recognises the client's own compaction. `also`: further patterns; one found in the newest message of a user or
    the system, or in the first message of a request that cannot call tools, is enough."""

    also: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def of(cls, patterns: Iterable[str] = ()) -> "Compaction":
        """With further regular expressions, which are searched for without regard to case. Raises ValueError."""
        also = []
        for index, pattern in enumerate(patterns):
            try:
                also.append(re.compile(pattern, re.IGNORECASE))
            except re.error as error:
                raise ValueError(f"compaction[{index}] '{pattern}': no regular expression: {error}") from None
        return cls(tuple(also))

    def asked_in(self, prompt: Prompt) -> bool:
        """Whether the newest message, or the first one of a request that cannot call tools, asks for a compaction."""
        if not prompt.messages:
            return False
        if any(self._asks(text, detailed=True) for text in _texts(prompt.messages[-1], "user", *INSTRUCTING)):
            return True
        if _callable(prompt):
            return False
        return any(self._asks(text, detailed=False) for text in _texts(prompt.messages[0], *INSTRUCTING))

    def _asks(self, text: str, *, detailed: bool) -> bool:
        edges = _edges(text)
        if any(pattern.search(edges) for pattern in self.also):
            return True
        if len(text) < SHORTEST or not _HINT.search(edges) or not any(map(_requests, _SENTENCE.split(edges))):
            return False
        return any(pattern.search(edges) for pattern in _PURPOSES) or (detailed and _specified(edges))


def _requests(sentence: str) -> bool:
    sentence = sentence.lstrip(_MARKUP)
    if not _OF.search(sentence) or _CODE.search(sentence):
        return False
    return any(ask.match(sentence) for ask in _ASKS)


def _specified(text: str) -> bool:
    return len(_LIST.findall(text)) >= LINES and sum(bool(detail.search(text)) for detail in _DETAILS) >= ENOUGH


def _edges(text: str) -> str:
    return text if len(text) <= 2 * EDGE else f"{text[:EDGE]}\n{text[-EDGE:]}"


def _callable(prompt: Prompt) -> bool:
    offered = prompt.tools or prompt.functions not in (None, b"null", b"[]")
    return bool(offered) and prompt.tool_choice != b'"none"'


def _texts(item: Item, *roles: str) -> Iterator[str]:
    """The last text parts of a message in one of the roles; none of a message that cannot be opened."""
    try:
        message = Message.of(item.raw)
    except NotJSON:
        return
    if message.role in roles:
        yield from [part.text for part in message.parts if part.kind == "text"][-PARTS:]
