"""Which counter a model gets, by its name."""

from collections.abc import Callable

from policies.counting import Counter, Encoding
from policies.counting.estimate import EstimateCounter, prior_of
from policies.counting.families import family_of
from policies.counting.memo import Memo
from policies.counting.openai import OpenAICounter

ESTIMATES_WITH = "o200k_base"
NAMES = 1024  # model names remembered with their counter: a client may send any


def counter_for(model: str, load_encoding: Callable[[str], Encoding]) -> Counter:
    """A new counter: exact rules for OpenAI's models, an estimate for all others.

    `load_encoding` is asked for one encoding by its name. A counter remembers what it has seen, so keep it: `Counters`
    does.
    """
    family = family_of(model)
    if family is not None:
        return OpenAICounter(family, load_encoding(family.encoding))
    return EstimateCounter(prior_of(model), load_encoding(ESTIMATES_WITH))


def encoding_of(model: str) -> str:
    """The name of the encoding that the counter of `model` needs."""
    family = family_of(model)
    return family.encoding if family is not None else ESTIMATES_WITH


class Counters:
    """One counter for each set of rules, whatever number of models follows it."""

    def __init__(self, load_encoding: Callable[[str], Encoding]) -> None:
        self._load = load_encoding
        self._made: dict[object, Counter] = {}
        self._named: Memo[str, Counter] = Memo(NAMES)

    def of(self, model: str) -> Counter:
        """The counter of `model`, made at the first call. The first call for an encoding loads it (0.3 s)."""
        return self._named.get(model) or self._named.set(model, self._by_rules(model))

    def __contains__(self, model: str) -> bool:
        """Whether `of` was asked for the model lately, so that it answers at once."""
        return model in self._named

    def _by_rules(self, model: str) -> Counter:
        rules = family_of(model) or prior_of(model)
        found = self._made.get(rules)
        return found if found is not None else self._made.setdefault(rules, counter_for(model, self._load))
