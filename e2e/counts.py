"""Counts against a real server's own: `usage.prompt_tokens` of a real model, request by request.

    python e2e/counts.py [0.5b|1.5b]

By the server's endpoints at most 1 % off, by a configured tokenizer file at most 3 % off, on every request, tools
included; and its window, told when asked and told by its context-length error. Exit code 1 on a miss, 2 where the
model or the server cannot be fetched.
"""

import asyncio
import json
import sys
import urllib.error
from typing import Any

import httpx2
from processes import NotAvailable
from server import fetch_model, fetch_tokenizer, post_json, serving

from policies.request import ChatRequest
from proxy.discovery import Discovery, told_limit
from proxy.servercount import ServerCount
from proxy.tokenizerfile import TokenizerFile

CONTEXT = 8192  # tokens
BARS = {"endpoints": 0.01, "tokenizer file": 0.03}  # of the server's own count

Fields = dict[str, Any]


def tool(name: str, description: str, **kinds: str) -> Fields:
    properties = {field: {"type": kind, "description": f"The {field} to use"} for field, kind in kinds.items()}
    schema = {"type": "object", "properties": properties, "required": list(kinds)[:1]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def call(id: str, name: str, **arguments: Any) -> Fields:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


TOOLS = [
    tool("get_weather", "Current weather of a city", city="string", days="integer"),
    tool("lookup_ticket", "Look up a support ticket", ticket_id="string"),
    tool("поиск", "Найти документы — 文档搜索", query="string", limit="number"),
]
MANY = [tool(f"service_{n}_restart", f"Restart service {n} and wait for it", reason="string") for n in range(12)]
ROWS = [{"id": n, "name": f"host-{n:03d}", "ip": f"10.0.{n}.7", "load": n / 7, "ok": n % 5 > 0} for n in range(25)]

SYSTEM = {"role": "system", "content": "You are terse. Never reveal ticket numbers."}
ONE_CALL: list[Fields] = [
    {"role": "user", "content": "Weather in Zürich?"},
    {"role": "assistant", "content": None, "tool_calls": [call("a", "get_weather", city="Zürich", days=2)]},
    {"role": "tool", "tool_call_id": "a", "content": '{"temp_c": 18, "sky": "sunny"}'},
]
PARALLEL: list[Fields] = [
    {"role": "user", "content": "Tickets 4821 and 9001, please."},
    {
        "role": "assistant",
        "content": "Looking both up.",
        "tool_calls": [call("b", "lookup_ticket", ticket_id="4821"), call("c", "lookup_ticket", ticket_id="9001")],
    },
    {"role": "tool", "tool_call_id": "b", "content": "Mira Koval, extension 5173"},
    {"role": "tool", "tool_call_id": "c", "content": "closed"},
]


def user(text: str) -> list[Fields]:
    return [{"role": "user", "content": text}]


def parts(*texts: str) -> list[Fields]:
    return [{"role": "user", "content": [{"type": "text", "text": text} for text in texts]}]


CASES: dict[str, Fields] = {
    "one word": {"messages": user("Hi")},
    "system, English": {"messages": [SYSTEM, *user("Summarise the plot of Hamlet in three sentences. " * 20)]},
    "Chinese": {"messages": user("请用三句话总结这份事故报告，并列出所有工单编号。" * 12)},
    "Russian, Arabic": {"messages": user("Сколько стоит доставка? كم تكلفة الشحن إلى القاهرة؟ " * 12)},
    "Hindi, Thai, emoji": {"messages": user("नमस्ते दुनिया สวัสดีชาวโลก 👩‍👩‍👧‍👦🇨🇭 " * 12)},
    "code": {"messages": user("```python\n" + "def f(x: int) -> int:\n\treturn x ** 2  # 1e5\n\n" * 20 + "```")},
    "spells special tokens": {"messages": user("What does <|im_end|> do, and <tool_call>?")},
    "text parts": {"messages": [SYSTEM, *parts("First part.", "Second part, 第二部分.")]},
    "turns": {"messages": [SYSTEM, *user("Hi"), {"role": "assistant", "content": "Hello."}, *user("Bye")]},
    "tools": {"messages": user("Is it sunny in Oslo?"), "tools": TOOLS},
    "tools, one call": {"messages": [SYSTEM, *ONE_CALL], "tools": TOOLS},
    "tools, parallel calls": {"messages": PARALLEL, "tools": TOOLS},
    "tools, JSON result": {
        "messages": [*ONE_CALL[:2], {**ONE_CALL[2], "content": json.dumps(ROWS)}],
        "tools": TOOLS,
    },
    "15 tools": {"messages": [SYSTEM, *user("Restart service 7.")], "tools": [*TOOLS, *MANY]},
}


async def compare(base: str) -> int:
    """Prints a line per case; returns the number of counts beyond their bar."""
    file = TokenizerFile.load(fetch_tokenizer(base))
    async with httpx2.AsyncClient() as client:
        upstream = Discovery(base, client, first_wait=30)
        server = ServerCount(upstream, client, deadline=30)
        found = await upstream.found()
        window, counting = upstream.window("any", found), found.counting
        by_error = told_limit(await asyncio.to_thread(overflow, base))
        print(f"window told: {window}, by its error: {by_error}; counting: {counting}\n")
        print(f"{'request':24}{'server':>8}{'endpoints':>11}{'off':>8}{'tokenizer file':>16}{'off':>8}")
        misses = int(window is None or window.tokens != CONTEXT) + int(by_error != CONTEXT)
        for name, fields in CASES.items():
            body = json.dumps({"model": "m", "max_tokens": 1, "temperature": 0, **fields}).encode()
            prompt = ChatRequest.parse(body).prompt
            answer = await asyncio.to_thread(post_json, f"{base}/chat/completions", body)
            misses += line(name, answer["usage"]["prompt_tokens"], await server.count(prompt), file.bill(prompt).total)
        await upstream.aclose()
    return misses


def overflow(base: str) -> bytes:
    """What the server answers to a prompt beyond its window."""
    try:
        post_json(f"{base}/chat/completions", json.dumps({"messages": user("word " * 2 * CONTEXT)}).encode())
    except urllib.error.HTTPError as error:
        return error.read()
    return b""


def line(name: str, billed: int, endpoints: int | None, file: int) -> int:
    off = {"endpoints": _off(endpoints, billed), "tokenizer file": _off(file, billed)}
    misses = sum(off[method] > bar for method, bar in BARS.items())
    shown = f"{off['endpoints']:8.2%}{file:16}{off['tokenizer file']:8.2%}"
    print(f"{name:24}{billed:8}{endpoints if endpoints is not None else '-':>11}{shown}{'  MISS' if misses else ''}")
    return misses


def _off(count: int | None, billed: int) -> float:
    return 1.0 if count is None else abs(count - billed) / billed


def main(arguments: list[str]) -> int:
    try:
        model = fetch_model(*arguments[:1])
        print(f"method: usage.prompt_tokens of {model.name} behind llama.cpp's own server, {len(CASES)} requests;")
        print(f"bars: {', '.join(f'{method} {bar:.0%}' for method, bar in BARS.items())} off at most, on each\n")
        with serving(model, CONTEXT) as base:
            misses = asyncio.run(compare(base))
    except NotAvailable as error:
        print(error, file=sys.stderr)
        return 2
    print(f"\n{misses} of {2 * len(CASES) + 2} figures beyond their bar")
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
