"""What upstreams billed for what was sent, kept in a form that is small, bounded and the same on every replica.

`observe` is a fold: a state and an observation make the next state. Nothing here changes a count by itself;
`policies.counting.calibration` reads a state when an epoch allows it.
"""

from collections.abc import Sequence

import msgspec

from policies.counting import Bill, Counter
from policies.request import Prompt

KEPT = 64  # observations that the fit is made of
SCORED = 256  # misses that the margin is made of
MOST_TOKENS = 1 << 27  # more is no count
LEAST_SHARE, LEAST_ROOM = 3, 96  # a bill below a third of the estimate, less this, leaves tokens out: no tokenizer does
MOST_SHARE, MOST_ROOM = (
    3,
    32_768,
)  # nor does a prompt cost more than three times the estimate and what servers add to it
NEAR_SHARE, NEAR_ROOM = 4, 256  # a count by known rules is off by no more than a quarter and this: else it is believed
FORMAT = 1  # of what is encoded; another one is forgotten
MEDIA_ROOM = 3  # times what media that cannot be measured were taken for: so much more they may cost

FREE = (None, b'"auto"', b'"none"', b"null")  # a tool choice that forces nothing


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """A prompt in the figures that a fit works on; tokens by the base counter.

    `text` are the tokens of messages without media and of the overhead, `media` those of messages with media,
    `unmeasured` what of them are media of unknown size, `sealed` those of encrypted thoughts, `schemas` those of the
    tools; `messages`, `calls` and `tools` are how many there are. `forced`: a tool has to be called.
    """

    messages: int
    text: int
    media: int
    unmeasured: int
    sealed: int
    calls: int
    tools: int
    schemas: int
    forced: bool
    exact: bool

    @property
    def total(self) -> int:
        """Tokens by the base counter."""
        return self.plain + self.media + self.sealed

    @property
    def plain(self) -> int:
        """What is sure to be billed: media may cost little, and encrypted thoughts nothing."""
        return self.text + self.schemas

    @classmethod
    def of(cls, prompt: Prompt, counter: Counter, bill: Bill | None = None) -> "Seen":
        """`counter` is the base counter, `bill` the prompt's by it where that is known already. Raises TooDeep."""
        bill = bill or counter.bill(prompt)
        known = counter.all_facts(prompt.messages)
        sealed = sum([facts.sealed for facts in known])
        pairs = zip(bill.messages, known, strict=True)
        media = [(tokens - facts.sealed, facts.exact) for tokens, facts in pairs if facts.media]
        shown, unmeasured = sum([tokens for tokens, _ in media]), sum([tokens for tokens, exact in media if not exact])
        text = sum(bill.messages) - shown - sealed + bill.overhead
        calls = sum([len(facts.call_names) for facts in known])
        forced = bool(bill.tools) and prompt.tool_choice not in FREE
        tools, schemas = len(bill.tools), sum(bill.tools)
        return cls(len(bill.messages), text, shown, unmeasured, sealed, calls, tools, schemas, forced, bill.exact)


class Anchor(msgspec.Struct, frozen=True, array_like=True):
    """The true count of a prompt that was sent: what a longer one, or the same one edited, is counted from."""

    seen: Seen
    billed: int

    @classmethod
    def of(cls, seen: Seen, billed: int, cached: int = 0) -> "Anchor | None":
        """From `usage.prompt_tokens` and the cached tokens of its details; None where they cannot be true."""
        tokens = true_tokens(seen, billed, cached)
        if tokens is None:
            return None
        if seen.exact:
            return cls(seen, tokens) if abs(tokens - seen.total) <= seen.total // NEAR_SHARE + NEAR_ROOM else None
        return cls(seen, tokens) if tokens <= MOST_SHARE * seen.total + MOST_ROOM else None

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, encoded: bytes) -> "Anchor | None":
        """None for what no `encode` of this version made."""
        try:
            return msgspec.msgpack.decode(encoded, type=cls)
        except msgspec.MsgspecError:
            return None


class Observation(msgspec.Struct, frozen=True):
    """One answer of an upstream: `billed` and `cached` are `usage.prompt_tokens` and
    `usage.prompt_tokens_details.cached_tokens`, `counted` is what the plan said of the sent prompt."""

    seen: Seen
    billed: int
    counted: int
    cached: int = 0

    @property
    def drift(self) -> float:
        """Observed over counted tokens: what the metric `edgewise_count_drift_ratio` shows. 1.0 is a true count."""
        return self.billed / max(1, self.counted)


class State(msgspec.Struct, frozen=True, array_like=True):
    """What was learned of one model at one upstream; at most some 4 kB when encoded.

    `counter` names the base counter whose figures these are. `points` are the latest distinct prompts with their true
    tokens, `misses` the latest counts and by how many tokens each fell short, beyond what is granted to media.
    """

    format: int = FORMAT
    counter: str = ""
    points: tuple[tuple[Seen, int], ...] = ()
    misses: tuple[tuple[int, int], ...] = ()
    refused: int = 0  # observations that could not be true

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, encoded: bytes) -> "State":
        """The empty state for what no `encode` of this version made."""
        try:
            state = msgspec.msgpack.decode(encoded, type=cls)
        except msgspec.MsgspecError:
            return cls()
        return state if state.format == FORMAT else cls()


def observe(state: State, observation: Observation, counter: str) -> State:
    """The next state. `counter` is the name of the base counter: another one's figures are forgotten."""
    if state.counter != counter:
        state = State(counter=counter)
    seen = observation.seen
    tokens = true_tokens(seen, observation.billed, observation.cached)
    if tokens is None:
        return msgspec.structs.replace(state, refused=state.refused + 1)
    point = (seen, tokens)
    points = (*(known for known in state.points if known != point), point)  # one prompt sent often is one prompt
    miss = observation.counted, max(0, tokens - observation.counted - MEDIA_ROOM * seen.unmeasured)
    return msgspec.structs.replace(state, points=points[-KEPT:], misses=(*state.misses, miss)[-SCORED:])


def agree(state: State, right: Sequence[tuple[int, int]], counter: str) -> State:
    """The next state after counts by known rules that were right: tokens, and by how many each fell short. Their
    prompts teach nothing, but what was wrong before is the older for them."""
    if state.counter != counter:
        state = State(counter=counter)
    return msgspec.structs.replace(state, misses=(*state.misses, *right)[-SCORED:])


def is_estimate(counter: str) -> bool:
    """By its name, whether a counter only estimates, and may be fitted."""
    return counter.startswith("estimate")


def true_tokens(seen: Seen, billed: int, cached: int) -> int | None:
    """What the prompt cost, or None where the figures cannot be true.

    Some servers leave the cached part out of `prompt_tokens`: for certain where it is the larger one, and by all
    appearance where only both together come near the estimate."""
    if not 0 < billed <= MOST_TOKENS:
        return None
    floor = seen.plain // LEAST_SHARE - LEAST_ROOM
    cached = min(max(0, cached), MOST_TOKENS)
    together = billed + cached
    if cached > billed or (2 * billed < seen.plain and together <= 2 * seen.plain):
        billed = together
    return billed if billed >= floor else None
