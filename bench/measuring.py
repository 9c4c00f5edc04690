"""One conversation sent through the core, and what is measured on the way. Part of `loops.py`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from json import dumps, loads

from support.grammar import introduced, mistral_introduced, unrepaired
from support.sessions import Conversation
from support.talks import Talk, forwarded_text, passed_values

from policies.counting import Counter
from policies.plan import Plan
from policies.refs import REF
from policies.request import Item, Prompt

PRICES = {"no cache": (1.0, 1.0), "0.1 x reads, 1.25 x writes": (0.1, 1.25), "0.5 x reads": (0.5, 1.0)}


@dataclass
class Figures:
    """Of one conversation. All sums are tokens."""

    name: str
    requests: int = 0
    refused: int = 0
    epochs: list[str] = field(default_factory=list)
    common: int = 0  # of each request with the one before
    before: int = 0  # of the requests before
    over: int = 0  # requests
    torn: int = 0  # requests that do not begin with the one before, and declare no epoch
    invalid: int = 0  # edited requests that break the chat grammar, by the tests' judge or by mistral-common's
    lost: int = 0  # system rules and tasks that a request misses
    uses: int = 0
    gone: list[str] = field(default_factory=list)  # values that calls passed and that were not to be seen
    unreadable: int = 0  # of these, how many stand in no original whose ref was to be seen
    results: int = 0  # of tool results received, in all requests
    results_sent: int = 0
    beyond_results: int = 0  # the same of requests that are beyond their window
    beyond_results_sent: int = 0
    last_results: int = 0  # the same of the last request alone
    last_results_sent: int = 0
    paid: list[float] = field(default_factory=lambda: [0.0] * len(PRICES))
    plain: list[float] = field(default_factory=lambda: [0.0] * len(PRICES))

    @property
    def retained(self) -> float:
        return self.common / self.before if self.before else 1.0

    @property
    def costs(self) -> list[float]:
        """By price model, against forwarding everything."""
        return [paid / plain for paid, plain in zip(self.paid, self.plain, strict=True)]


@dataclass
class Cache:
    """What a provider's cache holds: the request before."""

    tools: tuple[Item, ...] = ()
    messages: tuple[Item, ...] = ()
    total: int = 0

    def take(self, prompt: Prompt, counter: Counter) -> tuple[int, int]:
        """Tokens of the prefix that this prompt shares with the request before, and of all of it."""
        bill = counter.bill(prompt)
        shared = 0
        if self.total and [tool.raw for tool in prompt.tools] == [tool.raw for tool in self.tools]:
            shared = sum(bill.tools) + bill.overhead
            for one, before, cost in zip(prompt.messages, self.messages, bill.messages, strict=False):
                if one.raw != before.raw:
                    break
                shared += cost
        shared = min(shared, self.total)
        self.tools, self.messages, self.total = prompt.tools, prompt.messages, bill.total
        return shared, bill.total


@dataclass
class Measured:
    """A conversation under way."""

    talk: Conversation
    sender: Talk
    figures: Figures
    ours: Cache = field(default_factory=Cache)
    plain: Cache = field(default_factory=Cache)
    previous: Sequence[bytes] = ()

    def send(self, end: int, passed: Sequence[str]) -> None:
        """The request of the first `end` messages; the answer to it passes these values to its calls."""
        request, made = self.sender.send(self.talk.request(end))
        figures = self.figures
        figures.requests += 1
        if made.refusal is not None:
            figures.refused += 1
            return
        if made.opened:
            figures.epochs.append(f"{figures.requests} {made.level.value} {made.received_total} > {made.sent_total}")
        pay(figures.plain, self.plain, request.prompt, self.sender.counter)
        before = self.ours.total
        common, total = pay(figures.paid, self.ours, made.prompt, self.sender.counter)
        figures.common += common
        figures.before += before
        figures.over += made.budget.limit is not None and total > made.budget.limit
        sent = [item.raw for item in made.prompt.messages]
        figures.torn += not made.opened and sent[: len(self.previous)] != list(self.previous)
        self.previous = sent
        if made.prompt is not request.prompt:
            received, forwarded = (loads(request.forward(prompt)) for prompt in (request.prompt, made.prompt))
            faults = [*introduced(received, forwarded), *unrepaired(forwarded)]
            figures.invalid += bool(faults or mistral_introduced(received, forwarded))
        text = forwarded_text(made)
        figures.lost += sum(rule not in text for rule in rules(self.talk, end))
        figures.uses += len(passed)
        gone = [value for value in passed if value not in text]
        figures.gone += gone
        figures.unreadable += sum(not self._readable(value, text) for value in gone)
        _results(figures, made)

    def _readable(self, value: str, text: str) -> bool:
        refs = REF.findall(text.encode("utf-8", "surrogatepass"))
        stored = [self.sender.originals.get(ref.decode(), b"") for ref in refs]
        spelt = (value, dumps(value)[1:-1], dumps(value, ensure_ascii=False)[1:-1])  # whole messages are stored as JSON
        return any(one.encode("utf-8", "surrogatepass") in original for one in spelt for original in stored)


def measure(talk: Conversation, sender: Talk) -> Figures:
    """Each request of a conversation, in order."""
    uses: dict[int, list[str]] = {}
    for index, value in passed_values(talk.messages, talk.tools):
        uses.setdefault(index, []).append(value)
    measured = Measured(talk, sender, Figures(talk.name))
    for end, message in enumerate(talk.messages):
        if message["role"] == "assistant" and end:
            measured.send(end, uses.get(end, ()))
    return measured.figures


def pay(sums: list[float], cache: Cache, prompt: Prompt, counter: Counter) -> tuple[int, int]:
    """Adds what the prompt costs by each price model; the tokens read from the cache, and all of it."""
    common, total = cache.take(prompt, counter)
    for at, (read, write) in enumerate(PRICES.values()):
        sums[at] += common * read + (total - common) * write
    return common, total


def rules(talk: Conversation, end: int) -> Iterator[str]:
    """System texts and the task, the first user text."""
    tasks = 0
    for message in talk.messages[:end]:
        content = message.get("content")
        tasks += message["role"] == "user"
        if isinstance(content, str) and (message["role"] == "system" or (message["role"] == "user" and tasks == 1)):
            yield content


def _results(figures: Figures, made: Plan) -> None:
    received = sum(span.tokens for span in made.received if span.is_result)
    sent = sum(span.tokens for span in made.sent if span.is_result)
    figures.results += received
    figures.results_sent += sent
    if made.budget.limit is not None and made.received_total > made.budget.limit:
        figures.beyond_results += received
        figures.beyond_results_sent += sent
    figures.last_results, figures.last_results_sent = received, sent
