"""Bar 3 of issue 3, second half: recorded conversations at windows of overhead + 60 % of the rest.

    python bench/windows60.py
    python bench/windows60.py --policy classic --show 20
    python bench/windows60.py --only remembered

Method: overhead is what the tools, the system messages and the first user message of a conversation cost, the rest is
what its last request costs beyond that. Its limit is overhead + 60 % of the rest: the window is larger by the margin,
and holds no answer. Each request of the conversation is sent through the whole pipeline: `alone`, as if nobody knew it,
and once more `remembered`: what was decided for earlier requests of the conversation stands. Judged apart from
the product, on what would be forwarded, counted anew: it is within the limit, each system text and the task (first user
text) and the newest user text stand there word for word, the newest round stands there byte for byte, and
`tests/support/judge.py` finds nothing else wrong. A newest round whose results are folded is told apart by whether
the parts above alone would have fitted whole. A conversation that is remembered is cut deep, so that it is rare: where
the judge finds less than 60 % of the limit there, it is counted, and no fault. Ends with 1 when anything is wrong that
could be avoided.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

import adapter  # noqa: E402  (found by the path set above)
from support.floor import encoded, newest_round, newest_user, text_of  # noqa: E402  (the same)
from support.judge import Outcome, judge  # noqa: E402  (the same)
from support.sessions import Conversation, conversations  # noqa: E402  (the same)
from support.talks import Talk  # noqa: E402  (the same)

from policies.budget import Budget  # noqa: E402  (the same)
from policies.counting.models import counter_for  # noqa: E402  (the same)
from policies.refs import Refs  # noqa: E402  (the same)
from proxy.policyfile import load as load_policy  # noqa: E402  (the same)
from proxy.ranks import load  # noqa: E402  (the same)

SHARE = 0.6
MARGIN = 9  # tokens: what the product keeps free beside a hundredth
NOTE = 24  # tokens that merging a note or a repair may cost
Body = Mapping[str, Any]
Send = Callable[[bytes], Outcome]


def window_of(talk: Conversation) -> int:
    """The limit in tokens: overhead + 60 % of the rest of its last request."""
    *_, last = talk.requests()
    body = json.loads(last)
    overhead = adapter.count(encoded({**body, "messages": _head(body["messages"])}))
    return overhead + int(SHARE * (adapter.count(last) - overhead))


def _head(messages: Sequence[Body]) -> list[Body]:
    first = next((index for index, message in enumerate(messages) if message["role"] == "user"), None)
    return [one for at, one in enumerate(messages) if one["role"] in ("system", "developer") or at == first]


def least(body: Body) -> int:
    """Tokens of the parts that must stay whole, with nothing else."""
    messages = body["messages"]
    head, newest, user = _head(messages), newest_round(messages), newest_user(messages)
    kept = [one for at, one in enumerate(messages) if one in head or at in newest or at == user]
    return adapter.count(encoded({**body, "messages": kept})) + NOTE


def missing(received: Body, sent: Body) -> list[str]:
    """Which of the parts that must stay whole do not."""
    texts = [text_of(message) for message in sent["messages"]]
    found = []
    for message in _head(received["messages"]):
        if not any(text_of(message) in text for text in texts):
            found.append("task" if message["role"] == "user" else "system")
    user = newest_user(received["messages"])
    if user >= 0 and not any(text_of(received["messages"][user]) in text for text in texts):
        found.append("newest user text")
    newest = [received["messages"][index] for index in newest_round(received["messages"])]
    starts = range(len(sent["messages"]))
    if not any(sent["messages"][start : start + len(newest)] == newest for start in starts):
        found.append("newest round")
    return found


def alone(policy: str, window: int, _: Conversation) -> Send:
    """Each request is planned by itself."""
    return lambda body: adapter.edgewise(body, window + MARGIN + window // 100, policy=policy, beside=window)


def remembered(policy: str, window: int, talk: Conversation) -> Send:
    """Each request is planned on what was decided for those before it."""
    counter = counter_for(talk.model, load)
    ours = Talk(load_policy(policy), counter, Budget(window), refs=Refs(b"a tenant's key"))
    return lambda body: adapter.outcome_of(*ours.send(body))


def attempt(talk: Conversation, window: int, tally: Counter[str], send: Send, *, send_alone: bool) -> list[str]:
    """Each request of one conversation; what is wrong."""
    wrong = []
    for number, body in enumerate(talk.requests()):
        outcome = send(body)
        received = json.loads(body)
        tally["requests"] += 1
        tally[f"level {outcome.level}"] += 1
        if outcome.sent is None:
            tally["refused"] += 1
            wrong.append(f"{talk.name} {number}: refused")
            continue
        tally["edited"] += outcome.sent is not body
        found = missing(received, json.loads(outcome.sent))
        tally["over the window"] += adapter.count(outcome.sent) > window
        fits = least(received) <= window
        for what in found:
            tally[f"{what} not whole" if fits else f"{what} not whole, does not fit whole"] += 1
        judged = judge(body, outcome, adapter.count)
        deep = [] if send_alone else [one for one in judged if one.startswith("thin")]
        tally["cut deep"] += len(deep)
        problems = [f"{what} is not whole" for what in found if fits] + [one for one in judged if one not in deep]
        wrong += [f"{talk.name} {number}, window {window}: {problem}" for problem in problems]
    return wrong


def main() -> int:
    """Run, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--policy", default="balanced")
    parser.add_argument("--only", choices=WAYS)
    parser.add_argument("--show", type=int, default=10, help="problems to print (10)")
    arguments = parser.parse_args()
    ways = [arguments.only] if arguments.only else list(WAYS)
    wrong = [problem for way in ways for problem in told(way, arguments.policy)]
    for problem in wrong[: arguments.show]:
        print(f"! {problem}")
    return 1 if wrong else 0


def told(way: str, policy: str) -> list[str]:
    """All conversations one way: prints what came of them; what is wrong."""
    tally: Counter[str] = Counter()
    wrong: list[str] = []
    for talk in conversations():
        window = window_of(talk)
        wrong += attempt(talk, window, tally, WAYS[way](policy, window, talk), send_alone=way == "alone")
        tally["conversations"] += 1
    print(f"-- {way}")
    for name, figure in tally.items():
        print(f"{name:<48}{figure:>8,}")
    print(f"{'wrong':<48}{len(wrong):>8,}")
    return wrong


WAYS = {"alone": alone, "remembered": remembered}


if __name__ == "__main__":
    sys.exit(main())
