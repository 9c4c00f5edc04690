"""The cheap lane: questions of the core, answered by a model of its own (DESIGN 3, Needs).

An answer is a gift: nothing fails for want of one. What is asked and answered reaches no log, metric or error, and no
tenant's answer is given to another. The client's own credentials are never sent here.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import httpx2
import msgspec
from prometheus_client import Metric
from prometheus_client.registry import Collector

from policies.counting.memo import Memo
from policies.jsonraw import dumps
from policies.needs import Ask, Reply
from policies.texts.clipping import clip
from proxy.breaker import Breaker
from proxy.metrics import UPSTREAM, Counts, Values
from proxy.promptfiles import Prompt

Outcome = Literal["answered", "memo", "skipped", "unknown", "too_long", "busy", "late", "failed", "refused", "empty"]
Measure = Callable[[str], int]  # tokens of a text

MOST_BYTES = 1024 * 1024  # of a response
REFUSALS = (400, 413, 422)  # say something about this question, not about the server
LAST = ("busy", "late", "failed")  # a request that had to wait for nothing asks nothing more
TENANTS, ANSWERS, REMEMBERED = (
    64,
    16,
    16_384,
)  # remembered: tenants, answers of each (twice, see Memo), characters of one
SMALL = 16_000  # characters: what is longer is measured and cut in a thread
LEAST_TOKENS = 200  # of a text that was cut: with less the model would only guess
MOST_CHARS = 32  # of a token: a text with more of them was not held to its limit, and is not worth measuring
FRAME_TOKENS = 16  # what a chat template adds to two messages


class Lane(msgspec.Struct, frozen=True):
    """Where the side model is and what it may take. Times are seconds, `window` is tokens of a question."""

    base: str
    model: str
    api_key: str | None = None
    timeout: float = 10.0  # for one question
    total: float = 30.0  # for all questions of one request
    concurrency: int = 4
    window: int = 8_000


class SideMetrics(Collector):
    """Labels are names of prompts and outcomes, nothing else."""

    def __init__(self) -> None:
        self.requests = Counts("side_model_requests", "Questions to the side model, by outcome.", ("prompt", "outcome"))
        self.tokens = Counts("side_model_tokens", "Tokens that the side model cost.", ("kind",))
        self.seconds = Values("side_model_seconds", "Time that a question was waited for.", "prompt", UPSTREAM)

    def collect(self) -> Iterator[Metric]:
        yield self.requests.family()
        yield self.tokens.family()
        yield self.seconds.family()


class _Unanswered(Exception):
    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome)
        self.outcome: Outcome = outcome


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: _Usage | None = None


class SideModel:
    """Asks at one upstream. `measure` counts a bare text as that model does, about."""

    def __init__(
        self,
        lane: Lane,
        prompts: Mapping[str, Prompt],
        client: httpx2.AsyncClient,
        measure: Measure,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.lane, self.metrics, self.clock = lane, SideMetrics(), clock
        self._prompts, self._client, self._measure = prompts, client, measure
        self._breaker = Breaker(clock)
        self._free = asyncio.Semaphore(lane.concurrency)
        self._memos: Memo[str, Memo[bytes, str]] = Memo(TENANTS)

    def use(self, prompts: Mapping[str, Prompt]) -> None:
        """Ask with these from now on; what was answered to others is forgotten."""
        self._prompts, self._memos = prompts, Memo(TENANTS)

    async def ask(self, ask: Ask, tenant: str, seconds: float) -> tuple[Outcome, Reply]:
        """The outcome, and what it cost; the text of the reply is empty unless `answered` or `memo`.

        Takes at most `seconds`. Raises nothing but cancellation.
        """
        started = self.clock()
        try:
            outcome, reply = await self._remembered(ask, tenant, seconds)
        except _Unanswered as why:
            outcome, reply = why.outcome, Reply("", 0)
        name = ask.prompt if ask.prompt in self._prompts else "other"
        self.metrics.requests.add(name, outcome)
        self.metrics.seconds.see(name, self.clock() - started)
        return outcome, reply

    async def _remembered(self, ask: Ask, tenant: str, seconds: float) -> tuple[Outcome, Reply]:
        key = _digest(ask)
        memo = self._memos.get(tenant) or self._memos.set(tenant, Memo(ANSWERS))
        if (known := memo.get(key)) is not None:
            return "memo", Reply(known, 0)
        outcome, reply = await self._within(ask, seconds)
        if outcome == "answered" and len(reply.text) <= REMEMBERED:
            memo.set(key, reply.text)
        return outcome, reply

    async def _within(self, ask: Ask, seconds: float) -> tuple[Outcome, Reply]:
        late: Outcome = "busy"
        try:
            async with asyncio.timeout(seconds):
                question = await self._composed(ask)
                async with self._free:
                    if not self._breaker.admits(seconds):
                        raise _Unanswered("skipped")
                    late = "late"
                    said = await self._post(question, ask.max_tokens)
        except TimeoutError:
            if late == "late":
                self._breaker.failed()
            raise _Unanswered(late) from None
        except (httpx2.HTTPError, httpx2.StreamError, msgspec.MsgspecError, UnicodeDecodeError):
            self._breaker.failed()
            raise _Unanswered("failed") from None
        self._breaker.succeeded()
        return self._read(said, question, ask.max_tokens)

    async def _composed(self, ask: Ask) -> tuple[str, str]:
        if sum(map(len, ask.values.values())) <= SMALL:
            return self._compose(ask)
        return await asyncio.to_thread(self._compose, ask)

    def _compose(self, ask: Ask) -> tuple[str, str]:
        """Instructions and message, within the window: values that may be cut are clipped."""
        prompt = self._prompts.get(ask.prompt)
        if prompt is None or any(name not in ask.values for name in prompt.values):
            raise _Unanswered("unknown")
        values = dict(ask.values)
        room = self.lane.window - sum(self._measure(values[name]) for name in prompt.values)
        for name, kind in prompt.values.items():
            if room < 0 and kind == "cut":
                size = self._measure(values[name])
                values[name] = clip(values[name], keep_tokens=max(LEAST_TOKENS, size + room), measure=self._measure)
                room += size - self._measure(values[name])
        if room < 0:
            raise _Unanswered("too_long")
        return prompt.filled(values)

    async def _post(self, question: tuple[str, str], max_tokens: int) -> _Completion:
        instructions, message = question
        body = {
            "model": self.lane.model,
            "messages": [{"role": "system", "content": instructions}, {"role": "user", "content": message}],
            "temperature": 0,
            "max_tokens": max_tokens,
            "stream": False,
        }
        headers = {"content-type": "application/json"}
        if self.lane.api_key is not None:
            headers["authorization"] = f"Bearer {self.lane.api_key}"
        url = f"{self.lane.base}/chat/completions"
        sent = self._client.build_request("POST", url, content=dumps(body), headers=headers, timeout=None)
        return msgspec.json.decode(await self._sent(sent), type=_Completion)

    async def _sent(self, request: httpx2.Request) -> bytes:
        """The body of a 2xx. Redirects are not followed; the time is the caller's to limit."""
        reply = await self._client.send(request, stream=True, follow_redirects=False)
        try:
            if reply.status_code in REFUSALS:
                self._breaker.succeeded()
                raise _Unanswered("refused")
            reply.raise_for_status()
            read = bytearray()
            async for piece in reply.aiter_bytes():
                read += piece
                if len(read) > MOST_BYTES:
                    raise _Unanswered("too_long")
            return bytes(read)
        finally:
            await reply.aclose()

    def _read(self, said: _Completion, question: tuple[str, str], max_tokens: int) -> tuple[Outcome, Reply]:
        text = ((said.choices[0].message.content if said.choices else None) or "").strip()
        endless = len(text) > MOST_CHARS * max_tokens
        measured = len(text) // 4 if endless else self._measure(text)
        usage = said.usage or _Usage()
        asked = usage.prompt_tokens or sum(map(self._measure, question)) + FRAME_TOKENS
        answered = usage.completion_tokens or measured
        self.metrics.tokens.add("prompt", amount=max(0, asked))
        self.metrics.tokens.add("completion", amount=max(0, answered))
        cost = max(0, asked) + max(0, answered)
        if not text:
            return "empty", Reply("", cost)
        cut = said.choices[0].finish_reason == "length"
        if cut or endless or measured > 2 * max_tokens:  # by our count, which need not be the model's own
            return "too_long", Reply("", cost)
        return "answered", Reply(text, cost)


class Questions:
    """Those of one request: all of them together are waited for no longer than `total`, and after one that was waited
    for in vain no other is asked. `spent` are the tokens they cost, answered well or not."""

    def __init__(self, side: SideModel, tenant: str) -> None:
        self.spent = 0
        self._side, self._tenant, self._left = side, tenant, side.lane.total

    @property
    def open(self) -> bool:
        """Whether another question would be asked."""
        return self._left > 0

    async def answer(self, ask: Ask) -> Reply | None:
        """None when nobody answered, too late, too long or nothing. Raises nothing but cancellation."""
        if not self.open:
            return None
        started = self._side.clock()
        outcome, reply = await self._side.ask(ask, self._tenant, min(self._side.lane.timeout, self._left))
        self._left -= self._side.clock() - started
        if outcome in LAST:
            self._left = 0
        self.spent += reply.tokens
        return reply if reply.text else None


def _digest(ask: Ask) -> bytes:
    """16 bytes that name the whole question."""
    told = [ask.prompt, str(ask.max_tokens), *(part for item in sorted(ask.values.items()) for part in item)]
    encoded = [part.encode("utf-8", "surrogatepass") for part in told]
    return hashlib.blake2b(b"".join(b"%d:%b" % (len(part), part) for part in encoded), digest_size=16).digest()
