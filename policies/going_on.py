"""A request that only goes on from the one before: nothing is decided for it that was not decided then (DESIGN 1.8).

Where what is new asks for no edit, the plan is the last one and what is new behind it, whatever the conversation's
length: to the last figure what planning in full comes to (`tests/test_going_on.py`). Wherever that is not sure, the
answer is None.
"""

from collections.abc import Sequence

import msgspec

from policies.budget import TOOLS_CAP_SHARE, Pressure, fixed_tokens
from policies.counting import Bill
from policies.draft import Draft
from policies.grown import Grown, Pieced, before, leave
from policies.levels import ORDER
from policies.plan import Plan
from policies.readback_tool import barred
from policies.repair import repairs
from policies.replay import freeze_sent
from policies.request import Item, Prompt
from policies.spans import Bucket, Span, Tier
from policies.spilling import OWN_TOOL
from policies.split import Split
from policies.standing import KEY, Asked, Standing, classed
from policies.step import Step, introduce, looks_at_first_sight
from policies.steps.clip import Clip
from policies.steps.dedupe import Dedupe
from policies.steps.fold_json import FoldJson
from policies.steps.minify_json import MinifyJson
from policies.steps.supersede import Supersede
from policies.steps.tabulate import Tabulate
from policies.tools import among

LOCAL = (Clip, Dedupe, FoldJson, MinifyJson, Supersede, Tabulate)
"""Steps that look at first sight at nothing but each new result, where all of these are of the newest round."""


def go_on(asked: Asked) -> Plan | None:
    """The plan, where it is that of the request before and what is new behind it."""
    received = asked.received
    left = _left(asked, received) if isinstance(received, Split) else None
    if left is None or not isinstance(received, Split):
        return None
    prompt = _prompt(asked.request.prompt, left)
    bill = asked.counter.bill(prompt) if left.decisions else asked.bill
    if bill.messages[len(left.sent) :] != asked.bill.messages[len(left.received) :]:
        return None
    sent, places = _sent(received, left, prompt.messages, bill.total - bill.overhead)
    new = fixed_tokens(received.older[len(left.received) :], 0, 0)
    fixed = left.fixed + new + _newest(sent, asked, bill)
    if not _is_calm(asked, left, bill.total, fixed):
        return None
    further = msgspec.structs.replace(
        left,
        received=received.older,
        sent=sent.older,
        items=prompt.messages,
        trail=sent.messages.trail,
        count=len(received.messages),
        places=places,
        fixed=left.fixed + new,
    )
    leave(received.messages, KEY, further)
    return _plan(asked, left, sent, prompt, bill)


def _left(asked: Asked, received: Split) -> Standing | None:
    """What the request before left, if this one is planned by the same, and began with its decisions and messages."""
    left: Standing | None = before(received.messages, KEY)[1]
    if (
        left is None
        or left.recorded is not asked.recorded
        or left.received is not received.begun
        or left.by != asked.by
    ):
        return None
    known = len(left.received)
    return left if all([index >= known or index in left.places for index in received.patched]) else None


def _prompt(prompt: Prompt, left: Standing) -> Prompt:
    """What is sent."""
    if not left.decisions:
        return prompt
    items = (*left.items, *prompt.messages[left.count :])
    messages = Grown.of(items, {}, left.trail, len(left.items))
    tools = tuple([span.item for span in left.tools])
    if tools == prompt.tools:
        return msgspec.structs.replace(prompt, messages=messages)
    choice = among(prompt.tool_choice, [item.raw for item in tools]) if tools else None
    return msgspec.structs.replace(prompt, messages=messages, tools=tools, tool_choice=choice)


def _sent(received: Split, left: Standing, messages: Sequence[Item], tokens: int) -> tuple[Split, dict[int, int]]:
    """The spans of what is sent, and the places of those that are newest."""
    known = len(left.received)
    by = len(left.sent) - known
    places = {index: index + by if index >= known else left.places[index] for index in received.patched}
    if not left.decisions or not isinstance(messages, Grown):
        return received, places
    older = left.sent.and_then(received.older[known:])
    tail = (*received.tail[: len(received.messages) - len(received.older)], *left.tools)
    patched = {place: classed(older[place], received.patched[index]) for index, place in places.items()}
    return Split(Pieced(older, tail, patched), messages, left.sent, tokens), places


def _newest(sent: Split, asked: Asked, bill: Bill) -> int:
    """Fixed tokens of all that is not older, and what the newest among these count for more than when they are not."""
    older = fixed_tokens([sent.older[place] for place in sent.patched], 0, 0)
    newest = fixed_tokens(list(sent.patched.values()), 0, 0)
    cap = asked.policy.caps_in(asked.budget.window).get(Bucket.TOOLS, int(TOOLS_CAP_SHARE * asked.limit))
    return newest - older + fixed_tokens(sent.tail, bill.overhead, cap)


def _is_calm(asked: Asked, left: Standing, total: int, fixed: int) -> bool:
    """No step is asked, or none has anything to say."""
    limit, policy, window = asked.limit, asked.policy, asked.budget.window
    pressure = Pressure(total, fixed, limit)
    if policy.against == "window" and window is not None:
        pressure = Pressure(total, 0, window)
    if total > limit or pressure.value >= policy.levels[ORDER[0]].at(pressure.room).enter:
        return False
    items, known = asked.request.prompt.messages, asked.counter.all_facts(asked.request.prompt.messages)
    start = len(left.received)
    if left.decisions and any(repairs(items[start:], known[start:])):
        return False
    begins = policy.first_sight
    if begins is None or (not left.recorded.count and pressure.value < begins):
        return True
    return _is_seen_whole(asked, left)


def _is_seen_whole(asked: Asked, left: Standing) -> bool:
    """No step that looks at results before they are ever sent says one of the new ones shorter. Each is asked, with
    nothing in the draft but the newest round."""
    steps = [step for step in asked.policy.steps if looks_at_first_sight(step, left.recorded.epoch.number)]
    if not all([isinstance(step, LOCAL) for step in steps]):
        return False
    new = asked.received[left.count : len(asked.request.prompt.messages)]
    answer = max([at for at, span in enumerate(new) if span.role == "assistant"], default=-1)
    results = [span for span in new[answer + 1 :] if span.is_result]
    if answer < 0 or any([span.tier is not Tier.L1 for span in results]):
        return False
    draft = _draft(asked, left, new[answer:]) if results else None
    return draft is None or not any([_speaks(step, draft) for step in steps])


def _draft(asked: Asked, left: Standing, spans: Sequence[Span]) -> Draft:
    """What steps are shown: the newest round, under the limit of the whole."""
    spans = (*spans, *left.tools)
    tokens = tuple([span.tokens for span in spans])
    draft = Draft(asked.request.prompt, asked.counter, spans, Bill(tokens, (), 0, asked.bill.exact))
    draft.limit, draft.window = asked.limit, asked.budget.window
    draft.caps = asked.policy.caps_in(asked.budget.window)
    introduce(asked.policy.steps, draft)
    if any([span.id == OWN_TOOL for span in left.tools]) and not barred(
        asked.request.prompt, asked.request.number("n")
    ):
        draft.refs = asked.refs
    freeze_sent(draft, begun=left.recorded.count > 0)
    draft.at_first_sight = True
    return draft


def _speaks(step: Step, draft: Draft) -> bool:
    """Whether the step has anything to say; one that breaks is a matter for planning in full."""
    try:
        return any(True for _ in step.edits(draft))
    except Exception:  # whatever a step may raise: it is skipped and counted there (DESIGN 1.7)
        return True


def _plan(asked: Asked, left: Standing, sent: Split, prompt: Prompt, bill: Bill) -> Plan:
    epoch = left.recorded.epoch
    return Plan(
        budget=asked.budget,
        level=epoch.level,
        received=asked.received,
        sent=sent,
        received_overhead=asked.bill.overhead,
        sent_overhead=bill.overhead,
        decisions=left.decisions,
        prompt=prompt,
        counter=asked.counter.name,
        exact=bill.exact,
        policy=asked.policy.name,
        caps=asked.policy.caps_in(asked.budget.window),
        epoch=epoch,
    )
