"""Which counter a request is planned by: that of its model's rules, or it as the upstream's bills correct it."""

import msgspec

from policies.budget import Margin
from policies.counting import Bill, Counter
from policies.counting.calibrated import Calibrated
from policies.counting.observed import is_estimate
from policies.needs import Asking, Learned, Usage
from policies.plan import Plan
from policies.request import Prompt

CLOSE = 0.5  # of the threshold: an estimate below that is not short by so much that anything would be decided
CLOSE_BY_RULES = 0.75  # likewise of a count by known rules, which is off by a quarter at most, or not believed at all


class Reckoned(msgspec.Struct, frozen=True):
    """A counter, the received prompt's bill by it, and the margin for it. `fresh` is what an epoch that opens now is to
    keep, encoded."""

    counter: Counter
    bill: Bill
    margin: Margin
    fresh: bytes


def reckon(base: Counter, bill: Bill, prompt: Prompt, threshold: float | None) -> Asking[Reckoned | None]:
    """None: `base` and its `bill` stand. `threshold` are the tokens below which nothing is decided (None: nothing is,
    whatever the size).

    No bill makes a count smaller: what a server leaves out of its usage still has to fit. A count by known rules is
    corrected only where a decision is close; an estimate always, since it is shown; and what was billed for the
    conversation itself is asked for only where it is close.
    """
    estimates = is_estimate(base.name)
    share = CLOSE_BY_RULES if bill.exact else CLOSE
    least = float("inf") if threshold is None else share * threshold
    close = bill.total >= least
    if not (close or estimates):
        return None
    while True:
        learned = yield Usage(prompt, base.name, bill.exact, close)
        if not isinstance(learned, Learned):
            return None
        ours = Calibrated(base, learned.calibration, learned.anchor, careful=True)
        counted = ours.bill(prompt)
        if close or counted.total < least:
            return Reckoned(ours, counted, ours.margin(prompt), learned.fresh.encode())
        close = True


def frozen(made: Plan, reckoned: Reckoned | None) -> Plan:
    """The plan; an epoch that it opens keeps what is known now of how the upstream counts."""
    if reckoned is None or made.record is None or not made.record.whole:
        return made
    record = msgspec.structs.replace(made.record, calibration=reckoned.fresh)
    return msgspec.structs.replace(made, record=record)
