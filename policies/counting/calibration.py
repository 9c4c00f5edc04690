"""What was learned of a model at an upstream, as one frozen value that a conversation keeps until its next epoch.

tokens = a constant + so much a message and a call + slopes of text, of messages with media and of encrypted thoughts +
(with tools) a preamble, so much a tool and a slope of schemas + (a tool is forced) another constant (FACTS 1).
The family's prior stands in the base counter, so that a fit that knows nothing changes nothing. Only estimates are
fitted; a counter of known rules keeps its count, and only its margin follows.
"""

import math
from collections.abc import Sequence

import msgspec

from policies.budget import Margin
from policies.counting.fitting import DIGITS, Belief, Point, dot, fit
from policies.counting.margins import ESTIMATE, EXACT
from policies.counting.observed import MEDIA_ROOM, Seen, State, is_estimate

NOISE_SHARE, NOISE = 0.03, 2.0  # of a count that is right: what templates and tokenizers differ by from text to text
SURE_AFTER = 100  # observations: before them the prior margin fades, after them the observed one stands alone
BORNE = 2  # the largest miss is borne: with 256 kept, what is left is the p99
LARGE = 2_000  # tokens of a count from which a miss is a share of it; below, it is what a server adds to any prompt
ROUGH = (ESTIMATE, Margin(0.03, 64), Margin(0.30, 2_048))  # before anything is known, at least, and at most
FINE = (EXACT, EXACT, Margin(0.15, 1_024))

BELIEFS = (
    Belief(0.0, 8.0, -64.0, 32_768.0),  # each request; what a server puts in front of each prompt may be long
    Belief(0.0, 3.0, -8.0, 32.0),  # each message
    Belief(1.0, 0.12, 0.7, 1.8),  # a token of text
    Belief(1.0, 0.5, 0.1, 4.0),  # a token of a message with media
    Belief(1.0, 0.5, 0.0, 4.0),  # a token of encrypted thoughts
    Belief(0.0, 15.0, -32.0, 256.0),  # each call
    Belief(0.0, 120.0, -600.0, 32_768.0),  # a request with tools
    Belief(0.0, 25.0, -64.0, 512.0),  # each tool
    Belief(1.0, 0.4, 0.2, 4.0),  # a token of a schema
    Belief(0.0, 60.0, -256.0, 2_048.0),  # a request that forces a tool
)
NEUTRAL = tuple(belief.mean for belief in BELIEFS)


class Calibration(msgspec.Struct, frozen=True, array_like=True):
    """`counter` names the base counter, `weights` are the coefficients in the order of `BELIEFS`, `margin` is what
    counts may fall short by, `seen` is how many observations spoke."""

    counter: str = ""
    weights: tuple[float, ...] = NEUTRAL
    margin: Margin = ESTIMATE
    seen: int = 0

    @classmethod
    def of(cls, state: State, counter: str) -> "Calibration":
        """What `state` says of the base counter of that name; the prior when it speaks of another. Costs some
        milliseconds: asked at an epoch, not at each request."""
        estimated = is_estimate(counter)
        if state.counter != counter:
            return cls.before(counter)
        weights = fit([_point(seen, tokens) for seen, tokens in state.points], BELIEFS) if estimated else NEUTRAL
        margin = _margin(state.misses, *(ROUGH if estimated else FINE))
        return cls(counter, weights, margin, len(state.misses))

    @classmethod
    def before(cls, counter: str) -> "Calibration":
        """What holds of a base counter of that name before anything is observed."""
        return cls(counter, margin=ESTIMATE if is_estimate(counter) else EXACT)

    @property
    def changes(self) -> bool:
        """Whether counts differ from the base counter's."""
        return self.weights != NEUTRAL

    def total(self, seen: Seen) -> int:
        """Tokens of a prompt; never negative."""
        if not self.changes:
            return seen.total
        return max(0, round(dot(self.weights, _terms(seen))))

    def room(self, seen: Seen, known: int = 0) -> Margin:
        """What to keep free for such a prompt: the observed p99, and for media of unknown size three times what they
        were taken for. `known` of their tokens stand in a prompt whose bill is known."""
        known_rules = seen.exact or is_estimate(self.counter)
        margin = self.margin if known_rules else ESTIMATE
        return Margin(margin.share, margin.constant + MEDIA_ROOM * max(0, seen.unmeasured - known))

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, encoded: bytes) -> "Calibration":
        """The neutral one for what no `encode` of this version made."""
        try:
            found = msgspec.msgpack.decode(encoded, type=cls)
        except msgspec.MsgspecError:
            return cls()
        return found if len(found.weights) == len(NEUTRAL) else cls()


def _terms(seen: Seen) -> tuple[float, ...]:
    content = (seen.text, seen.media, seen.sealed, seen.calls)
    return (1.0, seen.messages, *content, float(seen.tools > 0), seen.tools, seen.schemas, float(seen.forced))


def _point(seen: Seen, tokens: int) -> Point:
    return Point(_terms(seen), tokens, NOISE + NOISE_SHARE * max(tokens, seen.total))


def _margin(misses: Sequence[tuple[int, int]], prior: Margin, least: Margin, most: Margin) -> Margin:
    """The observed p99: first the share that counts of large prompts fall short by, then the tokens that remain."""
    large = [miss / counted for counted, miss in misses if counted >= LARGE]
    share = _observed(large, prior.share, least.share, most.share)
    left = [miss - share * counted for counted, miss in misses]
    return Margin(round(share, DIGITS), math.ceil(_observed(left, prior.constant, least.constant, most.constant)))


def _observed(misses: Sequence[float], prior: float, least: float, most: float) -> float:
    worst = sorted(misses)[-BORNE] if len(misses) >= BORNE else 0.0
    fading = prior * max(0, SURE_AFTER - len(misses)) / SURE_AFTER
    return min(most, max(least, fading, worst))
