"""What an upstream says about itself: its windows, and the endpoints at which it counts prompts.

`Discovery` asks local and unknown upstreams in the background and remembers for a while; hosted APIs, whose windows the
shipped table has, are not asked. Every upstream teaches its window through its own context-length errors.
"""

import asyncio
import lzma
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx2
import msgspec

from policies.counting.memo import Memo
from policies.counting.windows import Table, Window, overridden, table_of, window_of

Counting = Literal["vllm", "llamacpp"]  # who counts: POST /tokenize with messages, or /apply-template + /tokenize

FIRST_WAIT = 1.0  # seconds that the first chat requests of an upstream wait for its answer, together
TIMEOUT = 2.0  # seconds for each question
FRESH = 600.0  # seconds until an answer is asked for again
RETRY = 30.0  # seconds until an upstream that told nothing is asked again: a model may still be loading; then doubled
LEARNED = 1_000  # models whose window an error told, or that were looked up in the table
LEARNED_FRESH = 6 * 3600.0  # seconds until what an error told is forgotten: a server may restart with more
SANE = range(256, 100_000_000)  # tokens: what can be a window at all
ERROR_BYTES = 65_536  # of an error body are read
ERROR_CHARS = 400  # of its message are: what follows may be the client's own text

HOSTED = (
    "openai.com",
    "openai.azure.com",
    "anthropic.com",
    "googleapis.com",
    "mistral.ai",
    "x.ai",
    "deepseek.com",
    "groq.com",
    "together.xyz",
    "fireworks.ai",
    "openrouter.ai",
    "amazonaws.com",
    "azure.com",
    "cohere.com",
    "cohere.ai",
    "perplexity.ai",
    "cerebras.ai",
    "moonshot.ai",
    "moonshot.cn",
    "z.ai",
    "bigmodel.cn",
    "aliyuncs.com",
    "nvidia.com",
    "githubcopilot.com",
    "huggingface.co",
    "deepinfra.com",
    "sambanova.ai",
)

_WINDOW_FIELDS = ("max_model_len", "context_length", "context_window", "max_context_length", "n_ctx")
_LIMITS = (
    re.compile(r"maximum context length is (\d+)"),  # OpenAI, vLLM
    re.compile(r"available context size \((\d+) tokens\)"),  # llama.cpp
    re.compile(r"prompt is too long: \d+ tokens > (\d+) maximum"),  # Anthropic
    re.compile(r"maximum number of tokens allowed \((\d+)\)"),  # Gemini
    re.compile(r"exceed the configured limit of (\d+) tokens"),  # OpenAI, Responses
)
_PROBE = " ".join(f"word{n}" for n in range(64))  # at least 64 tokens in any tokenizer: a made-up count is found out


class Found(msgspec.Struct, frozen=True):
    """What an upstream told. `windows` by model id, in tokens; `default` holds for whatever name it is asked for."""

    windows: Mapping[str, int] = {}
    default: int | None = None
    counting: Counting | None = None

    def window(self, model: str) -> int | None:
        """Where a server says both, the smaller counts: llama.cpp shares its context between slots."""
        told = [tokens for tokens in (self.windows.get(model), self.default) if tokens is not None]
        return min(told, default=None)


class Discovery:
    """One upstream. `base` is its base URL as clients would use it, with or without `/v1`.

    `probe` None asks every upstream but the known hosted APIs; `outcomes` counts what the questions came to.
    """

    def __init__(
        self,
        base: str,
        client: httpx2.AsyncClient,
        *,
        probe: bool | None = None,
        first_wait: float = FIRST_WAIT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.base = base.rstrip("/")
        self.root = self.base.removesuffix("/v1")
        self.outcomes: Counter[str] = Counter()
        self._client = client
        self._probe = not hosted(base) if probe is None else probe
        self._first_wait = first_wait
        self._clock = clock
        self._found = Found()
        self._learned: Memo[str, tuple[int, float]] = Memo(LEARNED)
        self._asking: asyncio.Task[None] | None = None
        self._asked_first: float | None = None
        self._ask_again = 0.0
        self._retry = RETRY

    async def found(self, headers: Callable[[], Mapping[str, str]] = dict) -> Found:
        """What is known, at once, or `first_wait` seconds after the first call at the latest. Never raises.

        Questions are asked in the background, one round at a time; what `headers` returns goes with them (an API key,
        say).
        """
        now = self._clock()
        if self._probe and self._asking is None and now >= self._ask_again:
            self._asked_first = now if self._asked_first is None else self._asked_first
            self._ask_again = now + RETRY
            self._asking = asyncio.create_task(self._ask(dict(headers())))
        if self._asking is not None and self._asked_first is not None:
            left = self._asked_first + self._first_wait - now
            if left > 0:
                await asyncio.wait([self._asking], timeout=left)
        return self._found

    def window(self, model: str, found: Found) -> Window | None:
        """The window that this upstream told for `model`: in an error, else when it was asked."""
        learned, until = self._learned.get(model) or (0, 0.0)
        if self._clock() < until:
            return Window(learned, "error")
        tokens = found.window(model)
        return None if tokens is None else Window(tokens, "server")

    def learn(self, model: str, body: bytes) -> int | None:
        """Take in the body of a 4xx; returns the window if it tells one."""
        tokens = told_limit(body)
        if tokens is not None:
            self.outcomes["learned"] += 1
            self._learned.set(model, (tokens, self._clock() + LEARNED_FRESH))
        return tokens

    async def aclose(self) -> None:
        """Stop asking. The client is the caller's to close."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])
            self._asking = None

    async def _ask(self, headers: dict[str, str]) -> None:
        try:
            models, props = await asyncio.gather(
                self._json("GET", f"{self.base}/models", headers), self._json("GET", f"{self.root}/props", headers)
            )
            windows, only = _windows_of(models)
            default = _props_window(props) or only
            counting = await self._counting(next(iter(windows), ""), headers)
            told = bool(windows or default or counting)
            if told:
                self._found = Found(windows, default, counting)
            self.outcomes["told" if told else "silent"] += 1
            self._ask_again = self._clock() + (FRESH if told else self._retry)
            self._retry = RETRY if told else min(FRESH, self._retry * 2)
        finally:
            self._asking = None

    async def _counting(self, model: str, headers: dict[str, str]) -> Counting | None:
        messages = [{"role": "user", "content": _PROBE}]
        whole = await self._json("POST", f"{self.root}/tokenize", headers, {"model": model, "messages": messages})
        count = whole.get("count")
        if isinstance(count, int) and count >= _PROBE.count(" "):
            return "vllm"
        templated = await self._json("POST", f"{self.root}/apply-template", headers, {"messages": messages})
        prompt = templated.get("prompt")
        return "llamacpp" if isinstance(prompt, str) and _PROBE in prompt else None

    async def _json(self, method: str, url: str, headers: dict[str, str], body: object = None) -> dict[str, Any]:
        """The JSON object at `url`; empty, and counted, when there is none."""
        try:
            async with asyncio.timeout(TIMEOUT):
                answer = await self._client.request(method, url, headers=headers, json=body)
            value = msgspec.json.decode(answer.content) if answer.status_code == 200 else None
        except (httpx2.HTTPError, TimeoutError, msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            self.outcomes["unanswered"] += 1
            return {}
        return value if isinstance(value, dict) else {}


class Windows:
    """Who is believed about a model's window: the operator, then the upstream itself, then the shipped table."""

    def __init__(self, overrides: Mapping[str, int], table: Table) -> None:
        self._overrides = overrides
        self._table = table
        self._looked_up: Memo[str, tuple[Window | None]] = Memo(LEARNED)

    def of(self, model: str, told: Window | None = None) -> Window | None:
        """The window, or None: it is never guessed. `told` is the upstream's word for it."""
        if self._overrides and (tokens := overridden(model, self._overrides)) is not None:
            return Window(tokens, "override")
        return told or self._shipped(model)

    def _shipped(self, model: str) -> Window | None:
        known = self._looked_up.get(model) or self._looked_up.set(model, (window_of(model, {}, self._table),))
        return known[0]


def shipped_table() -> Table:
    """The table of windows in the wheel (made by tools/build_windows.py)."""
    return table_of(lzma.decompress(resources.files("proxy").joinpath("data/windows.json.xz").read_bytes()))


def hosted(base: str) -> bool:
    """Whether `base` is a known hosted API, which is not asked: its windows are published."""
    host = urlsplit(base).hostname or ""
    return any(host == name or host.endswith("." + name) for name in HOSTED)


def told_limit(body: bytes) -> int | None:
    """The window in tokens that a context-length error names (OpenAI, vLLM, llama.cpp, Anthropic, Gemini), or None."""
    try:
        value = msgspec.json.decode(body) if len(body) <= ERROR_BYTES else None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    error = value.get("error", value) if isinstance(value, dict) else None
    if not isinstance(error, dict):
        return None
    if error.get("type") == "exceed_context_size_error" and (tokens := _tokens(error.get("n_ctx"))):
        return tokens
    message = str(error.get("message"))[:ERROR_CHARS]
    found = next((match for limit in _LIMITS if (match := limit.search(message))), None)
    return _tokens(int(found.group(1))) if found else None


def _windows_of(models: Mapping[str, Any]) -> tuple[dict[str, int], int | None]:
    """Windows by model id; and the only model's, which is often asked for by another name."""
    listed = models.get("data")
    rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
    found = {str(row.get("id")): tokens for row in rows if (tokens := _row_window(row)) is not None}
    return found, next(iter(found.values()), None) if len(rows) == 1 else None


def _row_window(row: Mapping[str, Any]) -> int | None:
    meta = row.get("meta")
    places = [row, meta] if isinstance(meta, dict) else [row]
    told = (_tokens(place.get(name)) for place in places for name in _WINDOW_FIELDS)
    return next((tokens for tokens in told if tokens is not None), None)


def _props_window(props: Mapping[str, Any]) -> int | None:
    settings = props.get("default_generation_settings")
    return _tokens(settings.get("n_ctx")) if isinstance(settings, dict) else None


def _tokens(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value in SANE else None
