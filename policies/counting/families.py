"""OpenAI's models by the rules their chat templates follow, as tables. All figures are tokens, from FACTS 1."""

import re

import msgspec

from policies.counting.images import Images, Patches, Tiles


class Family(msgspec.Struct, frozen=True):
    """What one template adds.

    `alone` is the cost of a system message that the template opens itself when tools or a format need one and the
    conversation does not begin with one; where it does, a newline is appended to it instead. `call` is one call with
    its result; `parallel` a round of several. `wide` says that parallel results and schemas are written with `\\uXXXX`
    escapes; None: not known, the larger count is taken.
    """

    encoding: str
    images: Images
    priming: int
    tools: int
    alone: int
    call: int
    parallel: int
    assistant: int = 0  # on each assistant message in history
    spells_choice: bool = False  # whether a `tool_choice` is spelt out in the prompt
    wide: bool | None = None
    reasoning: bool = False  # whether reasoning that the client sends back is shown to the model
    document: int = 200  # of one, beside what its bytes tell


class Model(msgspec.Struct, frozen=True):
    """A family, and a pattern that the beginning of the names of its models matches."""

    pattern: str
    family: Family


CHAT = Family("o200k_base", Tiles(85, 170), 3, 5, 4, 12, 20, spells_choice=True)
CHAT_MINI = Family("o200k_base", Tiles(2833, 5667), 3, 5, 4, 12, 20, spells_choice=True, wide=True)
OLD = Family("cl100k_base", Tiles(85, 170), 3, 5, 4, 12, 20, spells_choice=True)
REASONING = Family("o200k_base", Tiles(75, 150), 2, 9, 1, 12, 20)
GPT5 = Family("o200k_base", Tiles(70, 140), 2, 90, 1, 18, 26, assistant=2)

_set = msgspec.structs.replace

# The first pattern that fits decides, so the longer ones stand first.
MODELS = (
    Model("gpt-4o-mini", CHAT_MINI),
    Model("gpt-4o", _set(CHAT, wide=False)),
    Model("chatgpt-4o", _set(CHAT, wide=False)),
    Model(r"gpt-4\.1-mini", _set(CHAT, images=Patches(1.62))),
    Model(r"gpt-4\.1-nano", _set(CHAT, images=Patches(2.46))),
    Model(r"gpt-4\.1", CHAT),
    Model(r"gpt-4\.5", CHAT),
    Model("gpt-audio", CHAT),
    Model(r"gpt-3\.5", _set(OLD, wide=True)),
    Model("gpt-35", _set(OLD, wide=True)),
    Model("gpt-4", OLD),
    Model(r"gpt-5(\.\d+)?-mini", _set(GPT5, images=Patches(1.2))),
    Model(r"gpt-5(\.\d+)?-nano", _set(GPT5, images=Patches(1.5))),
    Model(r"gpt-5\.1", GPT5),
    Model(r"gpt-5\.[23]", _set(GPT5, images=Patches(1.2))),
    Model(r"gpt-5\.", _set(GPT5, images=Patches(1.2), tools=89)),
    Model(r"gpt-5", GPT5),
    Model("o4-mini", _set(REASONING, images=Patches(1.72), call=18, parallel=26)),
    Model("o4", _set(REASONING, call=18, parallel=26)),
    Model("o3", REASONING),
    Model("o1", REASONING),
)

_VENDOR = re.compile(r"^(?:[\w.-]+/)*")
_TUNED = re.compile(r"^ft:([^:]+).*$")


def plain(model: str) -> str:
    """The name without vendor prefixes and without the parts of a fine-tuned model that are the customer's."""
    return _TUNED.sub(r"\1", _VENDOR.sub("", model.strip().lower()))


def family_of(model: str) -> Family | None:
    """The family of an OpenAI model, or None for any other."""
    name = plain(model)
    return next((known.family for known in MODELS if re.match(known.pattern, name)), None)
