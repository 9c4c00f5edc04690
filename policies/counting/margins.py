"""What is kept free between a count and the limit, because a count may be short of what is billed."""

from policies.budget import Margin
from policies.counting import Bill, Counter

EXACT = Margin(0.01, 8)  # covers 99.9 % of the recorded rows of OpenAI
ESTIMATE = Margin(0.15, 256)  # before anything is observed; from then on it follows (policies.counting.calibration)


def margin_of(bill: Bill, counter: Counter) -> Margin:
    """The margin for this bill: small only where every part of it follows known rules."""
    return EXACT if bill.exact and not counter.name.startswith("estimate") else ESTIMATE
