"""Counts by a model's own tokenizer files: `tokenizer.json` and its chat template, in a configured directory.

The whole prompt is rendered and tokenised as the model's server does it, so the total is exact where the template is
the server's. A message's share is its text and what the template puts around its role; what belongs to no item is
overhead. Needs the extra `edgewise[tokenizer]`: import it through `proxy.extras.extra`.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from tokenizers import Tokenizer

from policies.counting import COUNTED_CHARS, Bill
from policies.counting.memo import Memo
from policies.facts import Facts
from policies.jsonraw import loads
from policies.messages import Message
from policies.request import Item, Prompt
from proxy.chattemplate import ROLES, CannotRender, ChatTemplate, template_message, template_text, tojson

REMEMBERED = 32_768  # items and pieces of rendered text
UNTEMPLATED = 4  # tokens around a message where no template says how many
IMAGE = 1_024  # tokens: an estimate, so a bill with one is not exact
SAMPLE = "Ünïcode text,\n  42 {spaces}  文字\n"

_USER, _ANSWER = {"role": "user", "content": "x"}, {"role": "assistant", "content": "x"}
_CALL = {"type": "function", "id": "call00001", "function": {"name": "x", "arguments": {}}}
_CALLS = {"role": "assistant", "content": "", "tool_calls": [_CALL]}
_RESULT = {"role": "tool", "tool_call_id": "call00001", "content": "x"}


class NotUsable(ValueError):
    """The directory holds no usable tokenizer. The message names place, fault and remedy."""


class TokenizerFile:
    """A `Counter` for the models that a tokenizer directory belongs to."""

    def __init__(self, directory: Path, tokenizer: Tokenizer, template: ChatTemplate | None) -> None:
        self.name = f"tokenizer/{directory.name}"
        self._encode = _Pieces(tokenizer)
        self._template = template
        self._facts: Memo[bytes, Facts] = Memo(REMEMBERED)
        self._tools: Memo[bytes, int] = Memo(REMEMBERED)
        self._around = _around(template, self._encode.count) if template else {}

    @classmethod
    def load(cls, directory: Path) -> "TokenizerFile":
        """Reads `tokenizer.json`, `tokenizer_config.json` and `chat_template.jinja`. Raises NotUsable."""
        path = directory / "tokenizer.json"
        if not path.is_file():
            raise NotUsable(f"tokenizer '{directory}': there is no tokenizer.json; name the directory that holds it")
        try:
            config = _config(directory)
            source = _template_source(directory, config)
            template = ChatTemplate(source, _names(config)) if source else None
            tokenizer = _tokenizer(path)
        except (ValueError, msgspec.MsgspecError) as error:
            raise NotUsable(f"tokenizer '{directory}': {error}; fetch the model's files again") from error
        return cls(directory, tokenizer, template)

    def bill(self, prompt: Prompt) -> Bill:
        """The whole prompt; `exact` when the template rendered it and it holds nothing but text."""
        messages = [self.facts(item).tokens for item in prompt.messages]
        tools = [self._tool(item) for item in prompt.tools]
        total, exact = self._total(prompt)
        if total is None:
            return Bill(tuple(messages), tuple(tools), UNTEMPLATED, exact=False)
        shares = _settle([*messages, *tools], total)
        kept = len(messages)
        return Bill(tuple(shares[:kept]), tuple(shares[kept:]), total - sum(shares), exact)

    def facts(self, item: Item) -> Facts:
        """What is known of a message; its tokens are its text and what the template puts around its role."""
        if (known := self._facts.get(item.key)) is not None:
            return known
        view = Message.of(item.raw)
        texts = [template_text(view), *(part for call in view.calls for part in (call.name, call.arguments))]
        tokens = sum(self._encode.count(text) for text in texts if text) + IMAGE * _others(view)
        tokens += self._around.get(ROLES.get(view.role, view.role), UNTEMPLATED)
        return self._facts.set(item.key, Facts.of(view, tokens, exact=self._template is not None and not _others(view)))

    def all_facts(self, items: Sequence[Item]) -> list[Facts]:
        return [self.facts(item) for item in items]

    def text(self, text: str) -> int:
        """Tokens of a bare text; what it spells like a special token counts as one."""
        return self._encode.count(text)

    def new_bytes(self, prompt: Prompt) -> int:
        """Bytes of items that were not counted yet."""
        messages = sum(len(item.raw) for item in prompt.messages if item.key not in self._facts)
        return messages + sum(len(item.raw) for item in prompt.tools if item.key not in self._tools)

    def _total(self, prompt: Prompt) -> tuple[int | None, bool]:
        if self._template is None:
            return None, False
        try:
            messages = [template_message(item.raw) for item in prompt.messages]
            rendered = self._template.render(messages, [loads(item.raw) for item in prompt.tools])
        except CannotRender:
            return None, False
        others = sum(_others(Message.of(item.raw)) for item in prompt.messages if not self.facts(item).exact)
        return self._encode.count(rendered) + IMAGE * others, not others

    def _tool(self, item: Item) -> int:
        if (known := self._tools.get(item.key)) is not None:
            return known
        return self._tools.set(item.key, self._encode.count(tojson(loads(item.raw))) + 1)


class _Pieces:
    """Counts text piece by piece: special tokens stand alone whatever is around them, so what lies between two of
    them is counted once and remembered. Where a tokenizer does not add up so, the text is one piece."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._memo: Memo[bytes, int] = Memo(REMEMBERED)
        special = [token.content for token in tokenizer.get_added_tokens_decoder().values() if len(token.content) > 2]
        self._special = re.compile("|".join(re.escape(word) for word in sorted(special, key=len, reverse=True)))
        sample = SAMPLE + "".join(word + SAMPLE for word in special[:64])
        self._adds_up = bool(special) and self._pieces(sample) == self._whole(sample)

    def count(self, text: str) -> int:
        return self._pieces(text) if self._adds_up else self._remembered(text)

    def _pieces(self, text: str) -> int:
        between = self._special.split(text)
        return len(between) - 1 + sum(self._remembered(piece) for piece in between if piece)

    def _remembered(self, text: str) -> int:
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        known = self._memo.get(key)
        return self._memo.set(key, self._whole(text)) if known is None else known

    def _whole(self, text: str) -> int:
        tail = len(text[COUNTED_CHARS:].encode("utf-8", "surrogatepass"))
        clean = text[:COUNTED_CHARS].encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return tail + len(self._tokenizer.encode(clean, add_special_tokens=False).ids)


def _tokenizer(path: Path) -> Tokenizer:
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the parser behind it raises bare Exception
        raise NotUsable(f"tokenizer.json cannot be read ({error})") from error


def _config(directory: Path) -> Mapping[str, Any]:
    path = directory / "tokenizer_config.json"
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Any]) if path.is_file() else {}


def _template_source(directory: Path, config: Mapping[str, Any]) -> str | None:
    """The template's own file, else the configuration's; of several the one for tools."""
    path = directory / "chat_template.jinja"
    if path.is_file():
        return path.read_text("utf-8")
    listed = config.get("chat_template")
    if isinstance(listed, list):
        named = {entry.get("name"): str(entry.get("template")) for entry in listed if isinstance(entry, dict)}
        return named.get("tool_use") or named.get("default")
    return listed if isinstance(listed, str) else None


def _names(config: Mapping[str, Any]) -> dict[str, str]:
    """`bos_token` and its like: each a text, or an object that holds one."""
    words = {name: value for name, value in config.items() if name.endswith("_token")}
    opened = {name: value.get("content") if isinstance(value, dict) else value for name, value in words.items()}
    return {name: value for name, value in opened.items() if isinstance(value, str)}


def _others(message: Message) -> int:
    """Content parts that are no text."""
    return sum(part.kind not in ("text", "refusal") for part in message.parts)


def _around(template: ChatTemplate, count: Callable[[str], int]) -> dict[str, int]:
    """Tokens that the template puts around a message of each role, measured; roles that it refuses are left out."""

    def tokens(*messages: Mapping[str, Any]) -> int:
        return count(template.render(messages))

    x = count("x")
    found: dict[str, int] = {}
    try:
        alone, turn = tokens(_USER), tokens(_USER, _ANSWER, _USER)
        found["user"] = found["assistant"] = max(0, (turn - alone) // 2 - x)
        found["system"] = max(0, tokens({"role": "system", "content": "x"}, _USER) - alone - x)
        loop = tokens(_USER, _CALLS, _RESULT, _ANSWER, _USER)
        found["tool"] = max(0, loop - turn - found["assistant"] - 2 * x)
    except CannotRender:
        return found
    return found


def _settle(shares: Sequence[int], total: int) -> list[int]:
    """The shares, scaled down where together they are more than the total: a template may leave text out."""
    together = sum(shares)
    return list(shares) if together <= total else [share * total // together for share in shares]
