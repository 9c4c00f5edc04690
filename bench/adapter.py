"""The one place where the fit bench meets the product."""

import json
from functools import cache

from support.judge import Outcome

from policies.counting.models import counter_for
from policies.counting.windows import Window
from policies.needs import solve
from policies.plan import Plan
from policies.request import ChatRequest
from policies.spilling import OWN_TOOL
from proxy.engine import Engine
from proxy.policyfile import load as load_policy
from proxy.ranks import load
from proxy.refusals import answer
from proxy.settings import Settings


@cache
def _engine(policy: str) -> Engine:
    return Engine(Settings.load(), load_policy(policy))


def edgewise(body: bytes, window: int, *, policy: str = "balanced", beside: int = 0) -> Outcome:
    """What the product makes of a request body at a window of so many tokens, with a policy (the default one), in mode
    enforce, on refusal a 400. No network, no store. `beside`: tokens of an answer that the window need not hold.

    `Outcome.sent` is `body` itself when nothing was edited; `edited`, `edited_tools` and `injected` are taken from the
    applied decisions, never from a comparison of bytes.
    """
    request = ChatRequest.parse(body)
    return outcome_of(
        request, solve(_engine(policy).planning(request, Window(window, "bench", beside), ask_server=False))
    )


def outcome_of(request: ChatRequest, plan: Plan) -> Outcome:
    """What a plan made of its request."""
    touched = [span for decision in plan.decisions if decision.outcome == "applied" for span in decision.spans]
    refused = json.loads(answer(request, plan, "error", "bench", 0).body) if plan.refusal else None
    if plan.failed_steps:
        raise AssertionError(f"steps broke: {plan.failed_steps}")
    return Outcome(
        sent=None if plan.refusal else request.forward(plan.prompt),
        refusal=refused,
        level=plan.level.value,
        limit=plan.budget.limit or 0,
        received_tokens=plan.received_total,
        sent_tokens=plan.sent_total,
        edited=frozenset(int(span[1:]) for span in touched if span[0] == "m"),
        edited_tools=frozenset(int(span[1:]) for span in touched if span[0] == "t" and span != OWN_TOOL),
        injected=sum(span[0] == "n" for span in touched),
    )


def count(body: bytes) -> int:
    """Prompt tokens of a whole request, counted anew from its bytes: no memo, no sum kept by the pipeline."""
    request = ChatRequest.parse(body)
    return counter_for(request.model, load).bill(request.prompt).total


def text_tokens(text: str) -> int:
    """Tokens of a bare text in o200k_base, for the lower bound that no count may miss."""
    return load("o200k_base").count(text)
