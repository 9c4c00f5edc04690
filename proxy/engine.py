"""Planning without a loop: counter, budget and policy for a request. The data plane and the CLI both drive it."""

from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from policies.budget import Budget, Margin
from policies.counting import Counter
from policies.counting.margins import EXACT, margin_of
from policies.counting.models import Counters, encoding_of
from policies.counting.windows import Window, window_of
from policies.jsonraw import TooDeep
from policies.needs import solve
from policies.pipeline import Planning, plan
from policies.plan import Plan
from policies.policy import Policy
from policies.reckoning import frozen, reckon
from policies.refs import Refs
from policies.request import BadRequest, ChatRequest
from policies.steps.emergency import Emergency
from policies.steps.fit import Fit
from proxy import ranks
from proxy.discovery import shipped_table
from proxy.extras import MissingExtra, extra
from proxy.settings import Settings, SettingsError

ASKED_FOR = ("max_completion_tokens", "max_tokens")  # what a request may cap its answer with, the current name first
GIVEN = ("given", "override")  # sources of a window that somebody chose for it
LAST_STEPS = (Emergency(), Fit())


def tokenizer_file(directory: str) -> Counter:
    """The counter of a configured directory. Raises SettingsError."""
    try:
        module = extra("proxy.tokenizerfile", "tokenizer", "a tokenizer file")
        counter: Counter = module.TokenizerFile.load(Path(directory))
    except (MissingExtra, ValueError) as error:
        raise SettingsError(f"EDGEWISE_TOKENIZERS: {error}") from None
    return counter


class Engine:
    """A policy for whatever names no other, and a counter for each set of token rules."""

    def __init__(self, settings: Settings, policy: Policy) -> None:
        self.policy = policy
        self.overrides = settings.windows if settings.window == "auto" else {"*": settings.window, **settings.windows}
        self.table = shipped_table()
        self._counters = Counters(ranks.load)
        self._configured = {pattern: tokenizer_file(path) for pattern, path in settings.tokenizers.items()}

    def counter(self, model: str) -> Counter:
        """The counter of a model: a configured tokenizer's, else by the model's name. The first one of an encoding
        loads its ranks (0.3 s)."""
        for pattern, counter in self._configured.items():
            if fnmatchcase(model, pattern):
                return counter
        return self._counters.of(model)

    def load(self, model: str) -> None:
        """Load the ranks that the counter of a model needs (0.3 s), and count nothing: a tokenizer answers fastest to
        the thread that asks it first, which is to be the loop's."""
        ranks.load(encoding_of(model))

    def answers_at_once(self, model: str) -> bool:
        """Whether `counter` has nothing to load for the model."""
        return model in self._counters or ranks.is_loaded(encoding_of(model))

    def planning(
        self,
        request: ChatRequest,
        window: Window | None,
        policy: Policy | None = None,
        *,
        ask_server: bool,
        refs: Refs | None = None,
    ) -> Planning:
        """The plan as a generator of needs (see `policies.pipeline`); nothing is counted before it is asked.

        Raises BadRequest, as all that plans here does, for a message or tool that is nested too deep to be opened."""
        return self._planning(policy or self.policy, request, window, ask_server=ask_server, refs=refs)

    def plan_sync(self, request: ChatRequest, window: int | None, policy: Policy | None = None) -> Plan:
        """The plan by our own count, at once; `window` in tokens, None: what is known of the request's model."""
        return solve(self.planning(request, self._window(request, window), policy, ask_server=False))

    def count(self, request: ChatRequest, window: int | None) -> Plan:
        """What the request costs as it is, and the budget it has; nothing is edited, whatever its size."""
        bare = replace(self.policy, steps=(), window=None)
        made = solve(self._planning(bare, request, None, ask_server=False))
        counter = self.counter(request.model)
        margin = margin_of(counter.bill(request.prompt), counter)
        budget = self._budget(self.policy, request, self._window(request, window), margin)
        return msgspec.structs.replace(made, budget=budget)

    def last_resort(self, request: ChatRequest, window: Window | None, policy: Policy | None = None) -> Plan:
        """The plan of those of the last steps that the policy has, for when planning broke (DESIGN 1.7)."""
        policy = policy or self.policy
        known = {step.name for step in policy.steps}
        last = replace(policy, steps=tuple(step for step in LAST_STEPS if step.name in known), buckets=())
        return solve(self._planning(last, request, window, ask_server=False))

    def _window(self, request: ChatRequest, tokens: int | None) -> Window | None:
        return Window(tokens, "given") if tokens else window_of(request.model, self.overrides, self.table)

    def _planning(
        self,
        policy: Policy,
        request: ChatRequest,
        window: Window | None,
        *,
        ask_server: bool,
        refs: Refs | None = None,
    ) -> Planning:
        """A generator, so that all of it runs where its driver runs it, which may be a thread."""
        counter = self.counter(request.model)
        try:
            bill = counter.bill(request.prompt)
        except TooDeep as error:
            raise BadRequest(str(error)) from None
        budget = self._budget(policy, request, window, margin_of(bill, counter))
        server = self._budget(policy, request, window, EXACT) if ask_server else None
        reckoned = None
        if server is None:
            reckoned = yield from reckon(counter, bill, request.prompt, policy.threshold(budget.limit))
        if reckoned is not None:
            counter, bill = reckoned.counter, reckoned.bill
            budget = self._budget(policy, request, window, reckoned.margin)
        made = yield from plan(request, policy, counter, budget, bill, server=server, refs=refs)
        return frozen(made, reckoned)

    def _budget(self, policy: Policy, request: ChatRequest, window: Window | None, margin: Margin) -> Budget:
        """A window that is given with the request or by setting goes before the policy's, and that before what is known
        of the model."""
        tokens, beside = (window.tokens, window.beside) if window else (None, 0)
        if policy.window is not None and (window is None or window.source not in GIVEN):
            tokens, beside = policy.window, 0
        output = policy.output_reserve or request.number(*ASKED_FOR)
        return Budget.of(tokens, output, policy.margin or margin, beside)
