"""Whole-request counts by the server's own template and tokenizer (DESIGN 4.2).

vLLM counts messages and tools at `POST /tokenize`; llama.cpp renders them at `POST /apply-template` and counts the text
at `POST /tokenize`. A count costs one or two round trips on the control plane, once for each distinct prompt; it is
never waited for longer than the deadline, and a server that does not answer is left alone for a while.
"""

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeVar

import httpx2
import msgspec

from policies.counting.memo import Memo
from policies.jsonraw import RawObject, array, dumps
from policies.request import Prompt
from proxy.discovery import Counting, Discovery

DEADLINE = 2.0  # seconds for a count
REMEMBERED = 4_096  # prompts: 40 bytes each
PATIENCE = 3  # failures in a row before the server is left alone
PAUSE = 30.0  # seconds that it is; doubled by each failure after that
LONGEST_PAUSE = 600.0  # seconds
REFUSALS = {400, 401, 403, 413, 422}  # say something about this prompt or this caller, not about the server

T = TypeVar("T")


class _Counted(msgspec.Struct):
    count: int


class _Rendered(msgspec.Struct):
    prompt: str


class _Tokens(msgspec.Struct):
    tokens: list[int]


class Refused(Exception):
    """The server answered, but not with a count: its template cannot render this prompt, or it takes another key."""


class ServerCount:
    """Counts at one upstream. `outcomes` counts memo, answered, refused, failed, skipped."""

    def __init__(
        self,
        upstream: Discovery,
        client: httpx2.AsyncClient,
        *,
        deadline: float = DEADLINE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.outcomes: Counter[str] = Counter()
        self._upstream = upstream
        self._client = client
        self._deadline = deadline
        self._clock = clock
        self._memo: Memo[bytes, int] = Memo(REMEMBERED)
        self._failures = 0
        self._closed_until = 0.0

    async def count(self, prompt: Prompt, headers: Mapping[str, str] | None = None) -> int | None:
        """Tokens of the whole prompt; None when the server has no counting endpoint, refuses, fails or is too slow.

        `headers` go along (an API key, say). Raises nothing but cancellation.
        """
        key = digest(prompt)
        if (known := self._memo.get(key)) is not None:
            self.outcomes["memo"] += 1
            return known
        counting = (await self._upstream.found(lambda: headers or {})).counting
        if counting is None or self._clock() < self._closed_until:
            self.outcomes["skipped"] += 1
            return None
        try:
            async with asyncio.timeout(self._deadline):
                tokens = await self._ask(counting, prompt, dict(headers or {}))
        except Refused:
            self.outcomes["refused"] += 1
            return None
        except (httpx2.HTTPError, TimeoutError, msgspec.MsgspecError, UnicodeDecodeError):
            self._fail()
            return None
        self._failures = 0
        self.outcomes["answered"] += 1
        return self._memo.set(key, tokens)

    def _fail(self) -> None:
        self.outcomes["failed"] += 1
        self._failures += 1
        if self._failures >= PATIENCE:
            pause = PAUSE * 2.0 ** (self._failures - PATIENCE)
            self._closed_until = self._clock() + min(LONGEST_PAUSE, pause)

    async def _ask(self, counting: Counting, prompt: Prompt, headers: dict[str, str]) -> int:
        body = request_of(prompt)
        if counting == "vllm":
            return (await self._post("tokenize", body, headers, _Counted)).count
        rendered = await self._post("apply-template", body, headers, _Rendered)
        text = {"content": rendered.prompt, "add_special": True, "parse_special": True}  # as its completions do
        return len((await self._post("tokenize", dumps(text), headers, _Tokens)).tokens)

    async def _post(self, path: str, body: bytes, headers: dict[str, str], kind: type[T]) -> T:
        headers = {**headers, "content-type": "application/json"}
        answer = await self._client.post(f"{self._upstream.root}/{path}", content=body, headers=headers)
        if answer.status_code in REFUSALS:
            raise Refused
        answer.raise_for_status()
        return msgspec.json.decode(answer.content, type=kind)


def digest(prompt: Prompt) -> bytes:
    """16 bytes that name everything of `prompt` that a template sees."""
    fields = [prompt.model.encode(errors="surrogatepass"), prompt.tool_choice or b"", prompt.response_format or b""]
    parts = [b"%d:%d:" % (len(prompt.messages), len(prompt.tools))]
    parts += [item.key for item in (*prompt.messages, *prompt.tools)]
    parts += [b"%d:" % len(field) + field for field in fields]
    return hashlib.blake2b(b"".join(parts), digest_size=16).digest()


def request_of(prompt: Prompt) -> bytes:
    """The body that the counting endpoints read: the fields of a chat request that its template sees."""
    fields = {
        "model": dumps(prompt.model),
        "messages": array([item.raw for item in prompt.messages]),
        "tools": array([item.raw for item in prompt.tools]) if prompt.tools else None,
        "tool_choice": prompt.tool_choice if prompt.tools else None,
        "response_format": prompt.response_format,
    }
    return RawObject.parse(b"{}").splice(fields)
