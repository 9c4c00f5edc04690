"""What steps on tool results share: which results there are, and how one is said shorter."""

from collections.abc import Iterator, Sequence

from policies.draft import Draft
from policies.messages import with_text
from policies.plan import Level
from policies.policy_rules import LARGE_ROOM
from policies.readback_tool import NAME
from policies.request import Item
from policies.spans import Evict, Span, Tier
from policies.step import When

STUB_LEAST = 40  # tokens: what is smaller than any stub
STUB_USUAL = 120  # tokens: what most stubs come to
STUBBED_FIRST, NEWEST_ROUNDS = 500, 5  # results of so many tokens get stubs first; so many rounds keep theirs
BEFORE_WINDOW = (Level.TOOL_RESULTS, Level.HISTORY)  # levels before older rounds have left, or while they do
FIRST_TOKENS, FIRST_SHARE = 1500, 0.02  # of the limit
LEAST_TAKEN = 10  # a cut of a new result takes one part of so many at least
FIRST_LARGE = 8_000  # tokens of a new result above which a form of it that loses nothing is worth it
GENTLE_TOKENS = 256  # the size under which `fit` presses no result of the newest round before an emergency


def results(draft: Draft, *, over: int = 0) -> Iterator[Span]:
    """Live tool results above `over` tokens that are not pinned, oldest first. At first sight not what our own tool
    answered: it was asked for."""
    pinned = Evict.PINNED  # looked up once: an enum is slow to ask
    found = (span for span in draft.messages if span.is_result and span.tokens > over and span.evict is not pinned)
    if draft.at_first_sight:
        found = (span for span in found if span.name != NAME)
    return (span for span in found if span.id not in draft.frozen) if draft.frozen else found


def untouched(draft: Draft, *, over: int = 0) -> Iterator[Span]:
    """Results of text that stand as they came, oldest first."""
    spans = results(draft, over=over)
    return (one for one in spans if not one.shortened and not one.elided and not draft.facts(one).media)


def spared(draft: Draft, span: Span, when: When) -> bool:
    """Whether a step that loses nothing leaves a result as it came: one of the newest round, where older ones can go
    instead."""
    in_turn = when == "pressure" and not draft.at_first_sight and draft.level in BEFORE_WINDOW
    return in_turn and span.tier is Tier.L1 and "elide" in draft.steps


def wanted(draft: Draft, when: When) -> bool:
    """Whether a boundary step has to go on: always, or while the prompt is over its target."""
    return when == "always" or draft.at_first_sight or draft.excess > 0


def size(draft: Draft, span: Span) -> int:
    """Tokens by which a result is large. One that was said shorter counts by itself: as a part of a parallel round's
    list it costs more, and would be shortened to the same length again."""
    return draft.facts(span).tokens if span.shortened else span.tokens


def is_large(draft: Draft, span: Span, large: int) -> bool:
    """Whether a result is to be cut to `large` tokens: a new one only where that takes a tenth of them or more."""
    slack = large // LEAST_TAKEN if is_read_first(draft) else 0
    return size(draft, span) > large + slack


def keep(draft: Draft, span: Span, large: int, when: When) -> int:
    """Tokens of text that a large result may keep: as many as need not go, but always `large`; fewer in a parallel
    round, where the text may cost a multiple of what it costs alone."""
    whole = large if when == "always" or draft.at_first_sight else max(large, span.tokens - draft.excess)
    return whole * draft.facts(span).tokens // max(span.tokens, draft.facts(span).tokens)


def is_json(text: str) -> bool:
    """Whether it looks like a JSON object or array, of which a part would be none."""
    return text.lstrip()[:1] in ("{", "[")


def saying(draft: Draft, span: Span, text: str) -> bytes | None:
    """The message with this text, None where it would not cost less than it does now."""
    raw = with_text(span.item.raw, text)
    return raw if draft.cost(span, Item.of(raw)) < draft.cost(span, span.item) else None


def older(draft: Draft, keep_rounds: int) -> list[Span]:
    """Results that stand before the newest `keep_rounds` rounds, the least priority first, then oldest first."""
    rounds = sorted({span.round for span in draft.messages if span.is_result and span.round >= 0})
    kept = set(rounds[len(rounds) - keep_rounds :]) if keep_rounds else set()
    found = [span for span in results(draft) if span.tier is Tier.L3 and span.round not in kept]
    return sorted(found, key=lambda span: span.priority)


def rounds_before(draft: Draft, keep: int) -> list[tuple[Span, ...]]:
    """Whole rounds that may go, oldest first, without the newest `keep`."""
    numbers = sorted({span.round for span in draft.messages if span.round >= 0})
    rounds = map(draft.round, numbers[: max(0, len(numbers) - keep)])
    return [spans for spans in rounds if all(span.tier is Tier.L3 for span in spans)]


def squeezable(draft: Draft, *tiers: Tier) -> int:
    """Tokens that `fit` can still take of the results that are left (of these tiers) without an emergency."""
    spans = results(draft, over=GENTLE_TOKENS)
    return sum(span.tokens - GENTLE_TOKENS for span in spans if not tiers or span.tier in tiers)


def is_read_first(draft: Draft) -> bool:
    """Whether a new result is read as it came wherever that can be: where not much is to come, little is saved by
    another form of it."""
    return draft.at_first_sight and draft.limit < LARGE_ROOM


def at_first_sight(draft: Draft, tokens: int) -> int:
    """From how many tokens on a new result is large where much is to come: what an agent has not seen yet is said
    shorter so that there is less to take back later, and only where it would cost much."""
    return tokens if draft.limit < LARGE_ROOM else min(tokens, max(FIRST_TOKENS, int(FIRST_SHARE * draft.limit)))


def lossless_over(draft: Draft) -> int:
    """Tokens above which a result may get another form that loses nothing; a new one only if it is large."""
    return FIRST_LARGE if is_read_first(draft) else 0


def threshold(draft: Draft, span: Span, tokens: int, share: float) -> int:
    """From how many tokens on a result is large: the smaller of a size and a share of the limit; in the newest round,
    which stays whole as long as older ones can go instead, the size alone."""
    if draft.at_first_sight:
        return at_first_sight(draft, tokens)
    return tokens if span.tier is Tier.L1 else min(tokens, int(share * draft.limit))


def stubbable(draft: Draft, keep_rounds: int) -> list[Span]:
    """`older` results that a stub may stand for, and does not yet."""
    least = STUB_LEAST + draft.back_tokens
    found = (span for span in older(draft, keep_rounds) if not span.elided and span.tokens > least)
    return [span for span in found if span.id not in draft.settled]


def leaving(draft: Draft, keep_rounds: Sequence[int]) -> frozenset[int]:
    """Rounds, the oldest, that leave whole at the next level because stubs of all older results are still too much:
    stubs for them would be made for nothing. None from level `topics` on: what stands then stays.

    `keep_rounds`: how many of the newest rounds stay without a stub, at first and in the end.
    """
    if draft.level not in BEFORE_WINDOW or not keep_rounds:
        return frozenset()
    stubs = stubbable(draft, min(keep_rounds))
    spare = max(0, sum(span.tokens for span in draft.tools) - draft.tools_cap)
    if draft.total - spare - sum(span.tokens - STUB_LEAST - draft.back_tokens for span in stubs) <= draft.limit:
        return frozenset()
    usual = STUB_USUAL + draft.back_tokens
    saved = {span.id: max(0, span.tokens - usual) for span in stubs}
    left, found = draft.excess - sum(saved.values()), list[int]()
    for spans in rounds_before(draft, max(keep_rounds)):
        if left <= 0:
            break
        if all(span.evict is not Evict.PINNED for span in spans):
            left -= sum(span.tokens - saved.get(span.id, 0) for span in spans)
            found.append(spans[0].round)
    return frozenset(found)


def left_to_elide(draft: Draft, tokens: int, share: float) -> frozenset[str]:
    """Older results, the oldest of the larger ones, for which stubs will stand although all large ones (`threshold`)
    are folded: to fold these first would be work for nothing. None where the policy makes no stubs, or made them."""
    if "elide" not in draft.steps or draft.level not in BEFORE_WINDOW:
        return frozenset()
    folds = {span.id: max(0, span.tokens - threshold(draft, span, tokens, share)) for span in results(draft)}
    need = draft.excess - sum(folds.values())
    found: list[str] = []
    for span in stubbable(draft, NEWEST_ROUNDS):
        if need <= 0:
            break
        if span.tokens >= STUBBED_FIRST:
            need -= span.tokens - STUB_USUAL - draft.back_tokens - folds[span.id]
            found.append(span.id)
    return frozenset(found)
