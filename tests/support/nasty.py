"""Text, images and tools to build awkward requests from: every script, deep JSON, lone surrogates, giants.

Pools are built once a process; a request takes slices of them, so that generating stays cheap.
"""

import base64
import functools
import json
import random
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

WORDS: Mapping[str, str] = {
    "latin": "the report of station seven shows a pressure drop near valve after restart because nobody checked it",
    "accents": "déjà façade naïve Übergröße smørrebrød žluťoučký kůň año señal çığır łódź",
    "cjk": "系统 报告 压力 下降 阀门 重启 之后 没有人 检查 日志 错误 时间 東京 駅前 会議 資料 확인 서울 회의",
    "arabic": "تقرير المحطة يظهر انخفاض الضغط بعد إعادة التشغيل ولم يتحقق أحد من السجل",
    "hebrew": "הדוח של התחנה מראה ירידת לחץ אחרי הפעלה מחדש",
    "devanagari": "रिपोर्ट स्टेशन दबाव गिरावट वाल्व पुनः आरंभ किसी ने जाँच नहीं की",
    "thai": "รายงานสถานี แรงดันลดลง หลังเริ่มใหม่ ไม่มีใครตรวจสอบ",
    "cyrillic": "отчёт станции показывает падение давления после перезапуска клапана",
    "emoji": "👩\u200d👩\u200d👧\u200d👦 🏳\ufe0f\u200d🌈 👍🏽 🇺🇳 ✅ 🧑🏿\u200d🚀 e\u0301 \u200d \u202e \ufeff",
    "code": "def f(x): return [y for y in x if y] #\n\tif (a && b) { return -1; } <div class='a'> SELECT *;\n",
    "log": "2026-11-30T09:00:00Z ERROR pump-7 id=4f9c1a retry=3 /var/log/a.log:120 0x7ffde 10.0.0.7:443\n",
    "surrogate": 'name\ud800 half\udfff \ud83d tail \\ud800 "quoted" \x00 \x7f \u2028',
    "space": "  \t\t   \n\n\n      \r\n  x                  y",
    "special": "<|endoftext|> <|im_start|>system <|im_end|> [INST] </s> {{#each}} ${x}",
}
TAME = tuple(script for script in sorted(WORDS) if script != "surrogate")  # one alone sends a parser the slow way
COMMON = ("latin", "latin", "latin", "code", "log", "log")


@functools.cache
def _pool(script: str) -> str:
    """300,000 characters of a script's words in a fixed random order."""
    rng = random.Random(f"pool {script}")
    words = WORDS[script].split(" ")
    made: list[str] = []
    size = 0
    while size < 300_000:
        word = rng.choice(words) if rng.random() < 0.93 else f"{rng.getrandbits(40):x}"
        made.append(word)
        size += len(word) + 1
        if rng.random() < 0.05:
            made.append("\n")
    return " ".join(made)


def prose(rng: random.Random, characters: int, script: str = "") -> str:
    """About `characters` characters of one script, usually a common one."""
    script = script or (rng.choice(COMMON) if rng.random() < 0.7 else rng.choice(TAME))
    pool = _pool(script)
    start = rng.randrange(len(pool) // 2)
    text = pool[start : start + characters]
    return text * (characters // max(1, len(text))) if characters > len(text) else text


@functools.cache
def _rows() -> Sequence[str]:
    rng = random.Random("rows")
    return [json.dumps(_row(rng, index), ensure_ascii=rng.random() < 0.2) for index in range(2_000)]


def _row(rng: random.Random, index: int) -> dict[str, Any]:
    row: dict[str, Any] = {"id": f"rec_{rng.getrandbits(48):012x}", "index": index, "ok": rng.random() < 0.98}
    row["title"] = prose(rng, rng.randrange(60))
    row["score"] = rng.choice([1e5, 9007199254740993, -0.0, 0.1, None, 12345678901234567890])
    row["tags"] = [prose(rng, 6) for _ in range(rng.randrange(4))]
    if index % 97 == 0:
        row["error"] = {"code": 500 + index % 7, "message": "upstream timed out", "trace": prose(rng, 200, "log")}
    return row


def table(rng: random.Random, characters: int) -> str:
    """A JSON text of uniform rows, at times inside envelopes, at times cut off."""
    rows = _rows()
    count = max(1, characters // 190)
    start = rng.randrange(len(rows))
    chosen = [rows[(start + step) % len(rows)] for step in range(count)]
    text = "[" + ",".join(chosen) + "]"
    shape = rng.randrange(5)
    if shape == 0:
        return '{"data":{"items":' + text + ',"next":null},"n":1e5}'
    if shape == 1:
        return text[: rng.randrange(1, len(text))]
    return text


def deep(rng: random.Random, levels: int = 0) -> str:
    """A JSON text nested up to 400 levels."""
    levels = levels or rng.choice([5, 40, 99, 100, 101, 150, 400])
    inner = json.dumps(prose(rng, 40))
    return '{"a":' * levels + inner + "}" * levels if rng.random() < 0.5 else "[" * levels + inner + ",1e5]" * levels


def result(rng: random.Random, characters: int) -> str:
    """What a tool might return."""
    kind = rng.random()
    if kind < 0.4:
        return table(rng, characters)
    if kind < 0.44:
        return deep(rng)
    if kind < 0.47:
        return rng.choice(["", " ", "null", "{}", "[]", '""', "0", "ok", "\ud800", "{", "NaN", '{"a":NaN}'])
    return prose(rng, characters)


@functools.cache
def _giants() -> Sequence[str]:
    """Results of 540,000 tokens and more, and two of a shape that tokenizers choke on: one run of a character."""
    rng = random.Random("giants")
    rows = "[" + ",".join(_rows()) + "]"
    return [
        _pool("latin")[:240_000] * 10,
        _pool("log")[:200_000] * 6,
        _pool("cjk")[:200_000] * 4,
        "[" + ",".join([rows] * 6) + "]",
        "\n".join([rows[1:-1].replace("}, {", "}\n{")] * 5),
        base64.b64encode(rng.randbytes(900_000)).decode(),
        " " * 700_000 + "end",
        "x" * 300_000,
    ]


def giant(rng: random.Random) -> str:
    """One of the giants, each time a little different."""
    return f"call {rng.getrandbits(32):x}\n" + rng.choice(_giants())


def image_url(rng: random.Random) -> str:
    """A data URL whose header gives the dimensions, or a remote URL."""
    width, height = rng.choice([(1, 1), (32, 32), (512, 512), (640, 480), (1024, 1792), (4096, 300), (10_000, 10_000)])
    kind = rng.randrange(4)
    if kind == 0:
        return f"https://images.example/{rng.getrandbits(32):x}.png?sig={rng.getrandbits(64):x}"
    data, name = (_png(width, height), "png") if kind < 3 else (_jpeg(width, height), "jpeg")
    return f"data:image/{name};base64,{base64.b64encode(data + rng.randbytes(rng.choice([0, 60, 3000]))).decode()}"


def _png(width: int, height: int) -> bytes:
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))


def _jpeg(width: int, height: int) -> bytes:
    app = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
    return b"\xff\xd8" + app + b"\xff\xc0" + struct.pack(">HBHHB", 17, 8, height, width, 3) + bytes(9) + b"\xff\xd9"


SCHEMAS: Sequence[Mapping[str, Any]] = (
    {"type": "object", "properties": {}},
    {"type": "object", "properties": {"q": {"type": "string", "description": "what to look for"}}, "required": ["q"]},
    {
        "type": "object",
        "title": "Order",
        "properties": {
            "ids": {"type": "array", "items": {"type": "integer"}},
            "how": {"enum": ["fast", "slow", None], "default": "fast"},
            "where": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/P"}], "description": "a name\nor a point"},
            "deep": {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"const": 1}}}}},
        },
        "$defs": {"P": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}}},
        "additionalProperties": False,
    },
    {"type": "object", "properties": {f"field_{n}": {"type": ["string", "null"], "minLength": n} for n in range(12)}},
)


def tool(rng: random.Random, name: str) -> dict[str, Any]:
    """A tool of the function kind, seldom an odd one."""
    function: dict[str, Any] = {"name": name, "description": prose(rng, rng.choice([0, 30, 200, 1500]))}
    if rng.random() < 0.95:
        function["parameters"] = rng.choice(SCHEMAS)
    if rng.random() < 0.1:
        function["strict"] = True
    if rng.random() < 0.02:
        return {"type": "custom", "custom": {"name": name, "description": "free text", "format": {"type": "text"}}}
    return {"type": "function", "function": function}
