"""Slim a published price list down to the table of context windows that the wheel carries.

    pip download --no-deps --dest DIR litellm
    python tools/build_windows.py DIR/litellm-*.whl proxy/data/windows.json.xz

Source: `model_prices_and_context_window_backup.json` in the `litellm` wheel (MIT, see NOTICE). Kept: chat models'
`[max_input_tokens, max_output_tokens]`, under the names that `policies.counting.windows` asks for. Left out: what the
table can tell without it (a dated name with its base model's window), servers on one's own hardware (what window they
serve is theirs to say), and bare names on whose window the hosts disagree, unless the vendor itself or, within 5 %,
everybody agrees: the smallest then counts.
"""

import json
import lzma
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from policies.counting.windows import SPLIT_NAME, SPLIT_WINDOWS, normal, window_of

LISTED = "model_prices_and_context_window_backup.json"
MODES = {"chat", "responses"}
OWN_HARDWARE = {"ollama", "ollama_chat", "lemonade", "vllm", "hosted_vllm", "lm_studio", "llamafile", "xinference"}
VENDORS = [
    "openai",
    "anthropic",
    "gemini",
    "mistral",
    "xai",
    "deepseek",
    "dashscope",
    "moonshot",
    "zai",
    "minimax",
    "cohere_chat",
    "cohere",
    "ai21",
    "meta_llama",
    "perplexity",
    "amazon_nova",
    "codestral",
    "inception",
    "tencent",
    "xiaomi_mimo",
    "meta",
    "writer",
]
AGREED = 0.95  # hosts agree when the smallest window is at least this share of the largest

Pair = tuple[int, int]


def slim(listed: Mapping[str, Mapping[str, Any]]) -> dict[str, Pair]:
    """The table. Every name kept or left out as redundant resolves to its own window."""
    wanted = {**dict(_bare(listed)), **{normal(name): pair for name, _, pair in _chat(listed)}}
    table: dict[str, Pair] = {}
    for name in sorted(wanted, key=lambda name: (len(name), name)):
        known = window_of(name, {}, table)
        if known is None or known.tokens != wanted[name][0]:
            table[name] = wanted[name]
    return dict(sorted(table.items()))


def _chat(listed: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, Pair]]:
    """Name, host and window of each chat model."""
    for name, entry in listed.items():
        host, most_in, most_out = entry.get("litellm_provider", ""), entry.get("max_input_tokens"), 0
        if isinstance(entry.get("max_output_tokens"), int):
            most_out = entry["max_output_tokens"]
        if entry.get("mode") in MODES and isinstance(most_in, int) and most_in > 0 and host not in OWN_HARDWARE:
            yield name, host, _parted(name, most_in, most_out)


def _parted(name: str, most_in: int, most_out: int) -> Pair:
    """Some rows give the sum of both limits as the input limit."""
    if most_in in SPLIT_WINDOWS and most_out == 128_000 and SPLIT_NAME.search(name):
        return most_in - most_out, most_out
    return most_in, most_out


def _bare(listed: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, Pair]]:
    """Names without a host, where it is clear what they mean."""
    hosted: dict[str, dict[str, list[Pair]]] = defaultdict(lambda: defaultdict(list))
    for name, host, pair in _chat(listed):
        hosted[normal(name.rsplit("/", 1)[-1])][host].append(pair)
    for name, by_host in hosted.items():
        own = [pair for vendor in VENDORS for pair in by_host.get(vendor, [])]
        pairs = own or [pair for pairs in by_host.values() for pair in pairs]
        if min(pairs)[0] >= AGREED * max(pairs)[0]:
            yield name, min(pairs)


def pack(wheel: Path) -> bytes:
    """The shipped file, from the wheel that holds the price list. Raises KeyError when it holds none."""
    with zipfile.ZipFile(wheel) as archive:
        listed = json.loads(archive.read(f"litellm/{LISTED}"))
    table = slim(listed)
    text = "{" + ",\n".join(f"{json.dumps(name)}:[{most_in},{most_out}]" for name, (most_in, most_out) in table.items())
    return lzma.compress((text + "}\n").encode(), preset=9 | lzma.PRESET_EXTREME)


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    Path(arguments[1]).write_bytes(pack(Path(arguments[0])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
