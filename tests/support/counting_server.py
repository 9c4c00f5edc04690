"""A scripted inference server, as a transport: bodies as vLLM and llama.cpp send them (recorded, shortened)."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

Answer = tuple[int, object]
Script = Mapping[str, Answer | Callable[[Any], Answer]]


def words(value: object) -> int:
    """The scripted tokenizer: a token for each word of the JSON."""
    return len(json.dumps(value, ensure_ascii=False).split())


VLLM: Script = {
    "GET /v1/models": (
        200,
        {"object": "list", "data": [{"id": "Qwen/Qwen3-8B", "owned_by": "vllm", "max_model_len": 40960}]},
    ),
    "POST /tokenize": lambda body: (
        200,
        {"count": words(body.get("messages")) + words(body.get("tools", "")), "max_model_len": 40960, "tokens": []},
    ),
}

LLAMACPP: Script = {
    "GET /v1/models": (
        200,
        {
            "models": [{"name": "coder.gguf"}],
            "object": "list",
            "data": [{"id": "coder.gguf", "owned_by": "llamacpp", "meta": {"n_ctx": 8192, "n_ctx_train": 32768}}],
        },
    ),
    "GET /props": (200, {"default_generation_settings": {"n_ctx": 4096}, "total_slots": 2}),
    "POST /tokenize": lambda body: (200, {"tokens": list(range(len(body.get("content", "").split())))}),
    "POST /apply-template": lambda body: (
        200,
        {
            "prompt": " ".join(f"<s> {m['role']} {m['content']}" for m in body["messages"])
            + " "
            + "t " * ("tools" in body)
        },
    ),
}


@dataclass
class Server:
    """Answers by its script, 404 elsewhere; `seen` are the requests in order. `delay`: seconds before each answer."""

    script: Script
    delay: float = 0.0
    seen: list[httpx2.Request] = field(default_factory=list)

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.seen.append(request)
        if self.delay:
            await asyncio.sleep(self.delay)
        found = self.script.get(f"{request.method} {request.url.path}", (404, {"error": {"message": "not found"}}))
        status, body = found(json.loads(request.content)) if callable(found) else found
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return httpx2.Response(status, content=content)

    def client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.MockTransport(self._answer))

    def paths(self) -> list[str]:
        return [f"{request.method} {request.url.path}" for request in self.seen]


def unreachable(request: httpx2.Request) -> httpx2.Response:
    """A transport's answer where nobody listens."""
    raise httpx2.ConnectError("connection refused", request=request)
