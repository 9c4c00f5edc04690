"""What the core cannot know by itself: it yields a need, a driver in the shell answers (DESIGN 3).

Every need may be answered with None: there is nobody to ask, it failed, or it took too long. Whoever asked then goes on
without.
"""

from collections.abc import Callable, Generator, Mapping
from typing import TypeVar

import msgspec

from policies.counting.calibration import Calibration
from policies.counting.observed import Anchor
from policies.recorded import Recorded
from policies.request import Prompt


class ServerCount(msgspec.Struct, frozen=True):
    """What does the upstream's own tokenizer say this prompt costs? Answered with tokens."""

    prompt: Prompt


class Recall(msgspec.Struct, frozen=True):
    """What was decided for the longest known prefix of this conversation? Answered with what is recorded of it."""

    prompt: Prompt


class Usage(msgspec.Struct, frozen=True):
    """What did the upstream bill before? `counter` is the base counter, `exact` whether its bill of the prompt is.
    `close`: a decision is near, so that the bills of this conversation matter too. Answered with Learned."""

    prompt: Prompt
    counter: str
    exact: bool
    close: bool


class Learned(msgspec.Struct, frozen=True):
    """`calibration` is in force until the conversation's next epoch, which is to keep `fresh`. `anchor` is the bill of
    the longest prefix that is known."""

    calibration: Calibration
    fresh: Calibration
    anchor: Anchor | None = None


class Ask(msgspec.Struct, frozen=True):
    """A question for the side model. `prompt` names the prompt file, `values` fill its placeholders, `max_tokens`
    bounds the answer. Answered with a Reply."""

    prompt: str
    values: Mapping[str, str]
    max_tokens: int


class Anybody(msgspec.Struct, frozen=True):
    """Is there a side model that may be asked now? Put before a question that is work to put. Answered with 1."""


class Reply(msgspec.Struct, frozen=True):
    """What the side model said, and what it cost: tokens of its prompt and its answer."""

    text: str
    tokens: int


Need = ServerCount | Recall | Usage | Ask | Anybody
Answer = int | Reply | Recorded | Learned | None
T = TypeVar("T")
Asking = Generator[Need, Answer, T]


def nobody(need: Need) -> Answer:  # noqa: ARG001 - whatever it is
    """The answerer of a shell that has neither a server that counts nor a side model."""
    return None


def solve(asking: Asking[T], answer: Callable[[Need], Answer] = nobody) -> T:
    """Drive a generator to its end with a plain function that answers its needs."""
    try:
        need = next(asking)
        while True:
            need = asking.send(answer(need))
    except StopIteration as done:
        made: T = done.value
        return made
