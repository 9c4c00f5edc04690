"""A model's chat template (Jinja, as its tokenizer files carry it), rendered as its server would.

Needs the extra `edgewise[tokenizer]`. Templates run in Jinja's
immutable sandbox, in the environment for which they are written (that of `transformers`).
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from policies.jsonraw import NotJSON, loads
from policies.messages import Message

TODAY = datetime(2026, 1, 1)  # what templates that print a date print: a count must not change at midnight

ROLES = {"developer": "system"}  # templates know the older name


class CannotRender(ValueError):
    """The template refuses these messages, as the server then will, or is broken."""


class ChatTemplate:
    """`names` are the variables that the tokenizer's configuration gives it: `bos_token` and the like.

    Raises CannotRender when `source` is no template.
    """

    def __init__(self, source: str, names: Mapping[str, str]) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
        )
        environment.filters["tojson"] = tojson
        environment.globals.update(raise_exception=_refuse, strftime_now=TODAY.strftime)
        self._names = dict(names)
        self.source = source
        try:
            self._template = environment.from_string(source)
        except TemplateError as error:
            raise CannotRender(str(error)) from None

    def render(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Any] = ()) -> str:
        """The prompt, up to where the answer begins. Raises CannotRender."""
        fields = {"messages": messages, "tools": tools or None, "add_generation_prompt": True}
        try:
            return self._template.render({**self._names, **fields})
        except (
            TemplateError,
            ArithmeticError,
            AttributeError,
            LookupError,
            RecursionError,
            TypeError,
            ValueError,
        ) as error:
            raise CannotRender(f"{type(error).__name__}: {error}") from None


def tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as templates print it: spaced, in its own script, not escaped for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def template_message(raw: bytes) -> dict[str, Any]:
    """A message as servers hand it to templates: text for content, arguments opened, `developer` as `system`."""
    value: dict[str, Any] = loads(raw)
    view = Message.of(raw)
    value["content"] = template_text(view)
    value["role"] = ROLES.get(view.role, view.role)
    if isinstance(calls := value.get("tool_calls"), list):
        value["tool_calls"] = [_opened(call) for call in calls]
    return value


def template_text(message: Message) -> str:
    """A message's text parts, a line each, as servers join them for templates that know no parts."""
    return "\n".join(part.text for part in message.parts if part.kind == "text")


def _opened(call: Any) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return call
    return {**call, "function": {**function, "arguments": arguments(function.get("arguments"))}}


def arguments(source: Any) -> Any:
    """A call's arguments opened, where they are JSON."""
    if not isinstance(source, str):
        return source
    try:
        return loads(source.encode("utf-8", "surrogatepass"))
    except NotJSON:
        return source


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)


class _Generation(Extension):
    """`{% generation %}` marks what a model wrote, for training; here it stands for its contents."""

    tags = {"generation"}  # noqa: RUF012 - declared so by the base class

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)
