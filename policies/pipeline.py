"""Steps propose, the pipeline disposes (DESIGN 3).

A generator: what the core cannot know by itself it yields as a need, and a driver in the shell answers.
"""

from collections.abc import Sequence
from itertools import islice

import msgspec

from policies.budget import Budget
from policies.counting import Bill, Counter
from policies.counting.scaled import Scaled
from policies.draft import Draft
from policies.editor import Editor
from policies.going_on import go_on
from policies.needs import Asking, Recall, ServerCount
from policies.notes import note
from policies.placing import place, reserve
from policies.plan import Action, Inject, Level, Pass, Plan
from policies.policy import Policy
from policies.pressing import Pressing
from policies.readback_tool import barred
from policies.recorded import Epoch, Node, Recorded
from policies.refs import Refs
from policies.refusal import refuse
from policies.replay import freeze_sent, noted, replay, tears
from policies.request import ChatRequest, Prompt
from policies.sorting import sort
from policies.spans import Span
from policies.spilling import offer, originals
from policies.split import split
from policies.standing import Asked, settle

MOST_INJECTED = 16  # texts that one step may put in
ROUNDS = 3  # plans made at most when a server counts more than was estimated
CLOSER = 16  # tokens by which a plan that the server found too long is made shorter than it asked for
SMALLEST_LIMIT = 0.7  # of a limit: an earlier request may have asked for a longer answer, for a quarter of the window
Planning = Asking[Plan]


def plan(  # noqa: PLR0913 - what one request is planned by; each has a type of its own
    request: ChatRequest,
    policy: Policy,
    counter: Counter,
    budget: Budget,
    bill: Bill | None = None,
    *,
    server: Budget | None = None,
    refs: Refs | None = None,
) -> Planning:
    """The plan of one request. `server` is the budget for when the upstream's own count is to be asked for, which then
    scales ours, before and after. `bill` is the request's by `counter`, where that is known already. `refs` names the
    originals that will be stored before the plan is sent; None: they will not be."""
    total = (yield from _counted(request.prompt)) if server is not None else None
    if total is None or server is None:
        return (yield from plan_once(request, policy, counter, budget, bill, refs))
    scaled = Scaled.to(counter, request.prompt, total)
    made = yield from plan_once(request, policy, scaled, server, refs=refs)
    for _ in range(ROUNDS):
        total = None if made.prompt is request.prompt else (yield from _counted(made.prompt))
        if total is None:
            return made
        scaled = Scaled.to(counter, made.prompt, total)
        over = total - server.limit if server.limit is not None else 0
        if over <= 0:
            return _recounted(made, scaled)
        if made.refusal is not None:  # it is at its floor: asking again makes it no shorter
            return made
        tighter = msgspec.structs.replace(server, margin=server.margin + over + CLOSER)
        again = yield from plan_once(request, policy, scaled, tighter, refs=refs)
        made = msgspec.structs.replace(
            again, budget=server, received=made.received, received_overhead=made.received_overhead
        )
    return made


def _counted(prompt: Prompt) -> Asking[int | None]:
    answer = yield ServerCount(prompt)
    return answer if isinstance(answer, int) else None


def plan_once(
    request: ChatRequest,
    policy: Policy,
    counter: Counter,
    budget: Budget,
    bill: Bill | None = None,
    refs: Refs | None = None,
) -> Planning:
    """The plan on one counter's word alone."""
    prompt = request.prompt
    bill = bill or counter.bill(prompt)
    received = split(prompt, counter.all_facts(prompt.messages), bill)
    if policy.buckets or request.notes:
        received = sort(received, policy.buckets, request.notes)
    if _at_ease(policy, bill, budget, SMALLEST_LIMIT):
        return _as_received(request, policy, counter, (received, bill, budget))
    known = yield Recall(prompt)
    recorded = known if isinstance(known, Recorded) else None
    if (recorded is None or not recorded.count) and _at_ease(policy, bill, budget):
        return _as_received(request, policy, counter, (received, bill, budget))
    asked = Asked(request, policy, counter, budget, bill, received, recorded, refs)
    made = go_on(asked)
    return made if made is not None else settle(asked, (yield from _in_full(asked)))


def _in_full(asked: Asked) -> Planning:
    """From what is recorded alone."""
    request, policy, counter, budget, bill, received, recorded, refs = asked
    prompt = request.prompt
    draft = Draft(prompt, counter, received, bill)
    editor, failed = Editor(draft), list[str]()
    if recorded is not None and recorded.count:
        replay(draft, editor, recorded)
    pressing = Pressing(draft, editor, policy, recorded, _injections(editor, policy, failed))
    pressing.begin(None if barred(prompt, request.number("n")) else refs)
    if budget.limit is None:
        draft.level = Level.UNKNOWN
        pressing.mend()
    else:
        draft.limit, draft.window = budget.limit, budget.window
        draft.caps = policy.caps_in(budget.window)
        failed += yield from pressing.run()
    draft.reserved = pressing.tool  # what is placed now is counted as it is; what is not needs no room
    if editor.changed or pressing.due:
        yield from _place(pressing)
    draft.reserved = 0
    if pressing.tool and originals(draft, recorded):
        _offer(draft, editor)
    return _plan(request, policy, pressing, (received, bill, budget, failed))


def _at_ease(policy: Policy, bill: Bill, budget: Budget, share: float = 1.0) -> bool:
    """No step has anything to say: none acts before its level, and the prompt's share of its limit, which no pressure
    exceeds, is below the first. So it is for each limit down to `share` of this one."""
    if budget.limit is None or bill.total >= share * policy.lowest * budget.limit:
        return False
    return policy.waits


def _as_received(
    request: ChatRequest, policy: Policy, counter: Counter, origin: tuple[Sequence[Span], Bill, Budget]
) -> Plan:
    received, bill, budget = origin
    return Plan(
        budget=budget,
        level=Level.NONE,
        received=received,
        sent=received,
        received_overhead=bill.overhead,
        sent_overhead=bill.overhead,
        decisions=(),
        prompt=request.prompt,
        counter=counter.name,
        exact=bill.exact,
        policy=policy.name,
        caps=policy.caps_in(budget.window),
    )


def _injections(editor: Editor, policy: Policy, failed: list[str]) -> list[Inject]:
    """What the steps of no level ask to put in; nothing of a step that breaks, whose name goes to `failed`."""
    injections: list[Inject] = []
    for step in policy.steps:
        if step.level is Level.NONE:
            try:
                edits = list(islice(step.edits(editor.draft), MOST_INJECTED))
                asked = [edit for edit in edits if isinstance(edit, Inject)]
                reserve(editor.draft, asked)
            except Exception:  # whatever a step of another package may raise: it is skipped and counted (DESIGN 1.7)
                failed.append(step.name)
                continue
            injections += asked
            for edit in edits:
                if isinstance(edit, Pass):
                    editor.apply(step.name, edit)
    return injections


def _place(pressing: Pressing) -> Asking[None]:
    """The note on what was dropped, then the operator's text; neither may push the prompt over its limit."""
    draft, editor, due = pressing.draft, pressing.editor, pressing.due
    notes = () if draft.frozen else (yield from note(draft, editor, reserve(draft, due), pressing.recorded))
    if draft.frozen:
        freeze_sent(draft)
    for left in notes:
        if _placed(draft, editor, "note", left):
            break
    for edit in due:
        _placed(draft, editor, "reminder", edit)


def _offer(draft: Draft, editor: Editor) -> None:
    span = offer(draft)
    draft.rebill()
    editor.record("read-back", Action.INJECT, (span.id,), (0, span.tokens), "for what was taken out now")


def _placed(draft: Draft, editor: Editor, step: str, edit: Inject) -> bool:
    before, total = editor.snapshot(), draft.total
    where = place(draft, edit)
    draft.rebill()
    if where is None:
        return False
    if draft.level is not Level.UNKNOWN and draft.total > draft.limit >= total:
        editor.restore(before)
        editor.refuse(step, Action.INJECT, "no room for it")
        return False
    editor.record_placed(step, edit, where, total)
    return True


def _plan(
    request: ChatRequest, policy: Policy, pressing: Pressing, origin: tuple[Sequence[Span], Bill, Budget, list[str]]
) -> Plan:
    received, bill, budget, failed = origin
    draft, editor, recorded = pressing.draft, pressing.editor, pressing.recorded
    refusal, decisions, record = None, tuple(editor.decisions), None
    epoch = pressing.epoch or (recorded.epoch if recorded is not None else None)
    if budget.limit is not None and draft.total > budget.limit:
        refusal = refuse(request.prompt, draft)
        editor.record_refusal(refusal, bill.total)
        decisions = tuple(editor.decisions)
    elif editor.decisions and not editor.changed and not _injected(editor) and not _over(bill, budget):
        draft = _untouched(draft, received, bill)
        decisions = tuple(one for one in decisions if one.outcome != "applied")  # repairs, which nothing needs now
    else:
        begun = epoch or Epoch(0, Level.NONE, "", len(request.prompt.messages))
        record = noted(draft, editor, recorded, begun, policy.digest)
        epoch = record.epoch if record is not None else epoch
    return Plan(
        budget=budget,
        level=draft.level,
        received=received,
        sent=tuple(draft.spans),
        received_overhead=bill.overhead,
        sent_overhead=draft.overhead,
        decisions=decisions,
        prompt=draft.as_prompt(),
        counter=draft.counter.name,
        exact=draft.exact,
        policy=policy.name,
        refusal=refusal,
        failed_steps=tuple(dict.fromkeys(failed)),
        caps=draft.caps,
        side_tokens=editor.side_tokens,
        epoch=epoch,
        opened=_opened(pressing, record),
        high_floor=pressing.high_floor,
        record=record,
        originals=originals(draft, recorded) if record is not None else {},
    )


def _opened(pressing: Pressing, record: Node | None) -> bool:
    """Whether bytes that were sent before may have changed: where an epoch begins, or where the first decision of a
    conversation touches its past."""
    if record is None:
        return pressing.again and pressing.epoch is not None
    first = pressing.recorded is not None and not pressing.recorded.count
    return pressing.epoch is not None or (first and tears(pressing.draft, record))


def _over(bill: Bill, budget: Budget) -> bool:
    return budget.limit is not None and bill.total > budget.limit


def _injected(editor: Editor) -> bool:
    return any(decision.action is Action.INJECT and decision.outcome == "applied" for decision in editor.decisions)


def _untouched(draft: Draft, received: Sequence[Span], bill: Bill) -> Draft:
    """The draft as it came: what was only repaired is not edited."""
    fresh = Draft(draft.prompt, draft.counter, received, bill)
    fresh.level = draft.level
    return fresh


def _recounted(made: Plan, scaled: Scaled) -> Plan:
    """The plan by the server's count, which says that it fits: nothing is refused, whatever our estimate said."""
    bill = scaled.bill(made.prompt)
    costs = [*bill.messages, *bill.tools]
    sent = [msgspec.structs.replace(span, tokens=tokens) for span, tokens in zip(made.sent, costs, strict=True)]
    decisions = tuple(one for one in made.decisions if one.action is not Action.REFUSE)
    return msgspec.structs.replace(
        made, sent=tuple(sent), sent_overhead=bill.overhead, exact=bill.exact, refusal=None, decisions=decisions
    )
