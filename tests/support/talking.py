"""One loop of a client under a small limit, and what is looked at in what is forwarded of it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from support.prompts import Message, balanced, body, counter, lines, round_of, system, user
from support.talks import Memory, Talk

from policies.budget import Budget
from policies.plan import Plan
from policies.policy import Policy
from policies.refs import Refs
from policies.steps.reminder import Reminder
from proxy.policyfile import load

RULE = "Never restart pump 7."
LIMIT = 6_000
ROUNDS = [one for n in range(40) for one in round_of(n, lines(30, f"station {n}"))]  # about 450 tokens each
LOOP = [system("Be brief."), user("task"), *ROUNDS]
REFS = Refs(b"a tenant's key")


def reminding(name: str = "balanced", every: int = 1_000) -> Policy:
    policy = load(name)
    return replace(policy, steps=(Reminder(RULE, every_tokens=every), *policy.steps))


def talk(policy: Policy | None = None, limit: int = LIMIT, memory: Memory | None = None) -> Talk:
    return Talk(policy or balanced(), counter(), Budget(limit), memory or Memory())


def turns(messages: Sequence[Message], first: int = 2, **fields: object) -> Iterable[bytes]:
    """The requests of a tool loop of one user message."""
    return (body(list(messages[:end]), **fields) for end in range(first, len(messages) + 1, 2))


def sent(made: Plan) -> list[bytes]:
    return [item.raw for item in made.prompt.messages]


def reminded(made: Plan) -> list[int]:
    """Where the operator's rule stands."""
    return [at for at, raw in enumerate(sent(made)) if RULE.encode() in raw]
