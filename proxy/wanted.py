"""What a request asks of its own treatment: `Edgewise-Policy` and `Edgewise-Mode` (DESIGN 8)."""

import msgspec

from policies.policy import Policy
from proxy.errors import Refusal
from proxy.observe import Mode
from proxy.planner import Call
from proxy.policyshelf import Shelf
from proxy.settings import Settings


class Wanted(msgspec.Struct, frozen=True):
    """How one request is treated."""

    policy: Policy
    mode: Mode

    @classmethod
    def of(cls, call: Call, model: str, shelf: Shelf, settings: Settings) -> "Wanted":
        """Raises Refusal (400) for what is unknown or not allowed."""
        asked = call.header(b"edgewise-policy")
        return cls(shelf.choose(model, call.tenant, asked), _mode(call.header(b"edgewise-mode"), settings))


def _mode(asked: str | None, settings: Settings) -> Mode:
    if asked is None:
        return settings.mode
    if asked == "enforce":
        return "enforce"
    if asked != "observe":
        raise Refusal(400, "'Edgewise-Mode' must be observe or enforce", code="unknown_mode")
    if settings.mode == "enforce" and not settings.allow_observe:
        said = "'Edgewise-Mode: observe' is not allowed here; the operator allows it by EDGEWISE_ALLOW_OBSERVE=true"
        raise Refusal(400, said, code="mode_not_allowed")
    return "observe"
