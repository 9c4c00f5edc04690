"""All policies of a proxy: the one that plans by default, those its routes lead to, and those a request may ask for."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from policies.policy import Policy, PolicyError, Route
from proxy.errors import Refusal
from proxy.policyfile import load, presets


class Shelf(msgspec.Struct, frozen=True):
    """`routes` in the order of the file, each with its policy; `allowed` by name, for the header."""

    main: Policy
    routes: tuple[tuple[Route, Policy], ...] = ()
    allowed: Mapping[str, Policy] = {}

    @classmethod
    def load(cls, main: str, allowed: Sequence[str] = (), seen: set[Path] | None = None) -> "Shelf":
        """Policies by name or path. Files that were read, or looked for, are added to `seen`. Raises PolicyError."""
        seen = set() if seen is None else seen
        policy = load(main, seen=seen)
        folder = None if main in presets() else Path(main).parent
        routes = tuple((route, _routed(main, index, route, folder, seen)) for index, route in enumerate(policy.routes))
        asked: dict[str, Policy] = {}
        for name in allowed:
            one = load(name, seen=seen)
            if one.name in asked:
                raise PolicyError(f"EDGEWISE_POLICIES: two of its policies are called '{one.name}'; rename one of them")
            asked[one.name] = one
        return cls(policy, routes, asked)

    def choose(self, model: str, tenant: str, asked: str | None) -> Policy:
        """The policy that a request asks for, else that of the first route that fits. Raises Refusal (400)."""
        if asked is not None:
            return self._asked(asked)
        for route, policy in self.routes:
            if fnmatchcase(model, route.model) and (route.tenant == "*" or tenant.startswith(route.tenant)):
                return policy
        return self.main

    def _asked(self, name: str) -> Policy:
        policy = self.allowed.get(name)
        if policy is None:
            known = f"allowed are {', '.join(sorted(self.allowed))}" if self.allowed else "none is allowed here"
            raise Refusal(
                400, f"'Edgewise-Policy' names no policy that may be asked for; {known}", code="unknown_policy"
            )
        return policy


def _routed(main: str, index: int, route: Route, folder: Path | None, seen: set[Path]) -> Policy:
    try:
        policy = load(route.policy, beside=folder, seen=seen)
    except PolicyError as error:
        raise PolicyError(f"{main}: route[{index}]: {error}") from None
    if policy.routes:
        raise PolicyError(f"{main}: route[{index}]: '{route.policy}' has routes of its own; only the first file may")
    return policy
