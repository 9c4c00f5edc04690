"""Steps of other packages, by entry point. Only what a policy names is imported.

[project.entry-points."edgewise.steps"]
upper = "edgewise_step_upper:Upper"
"""

from importlib.metadata import entry_points

GROUP = "edgewise.steps"


def find_step(name: str) -> object:
    """What the entry point of that name points at; None where no installed package has one. Raises whatever its import
    raises, and ValueError where two packages have one."""
    found = tuple(entry_points(group=GROUP, name=name))
    if not found:
        return None
    if len({point.value for point in found}) > 1:
        owners = ", ".join(sorted(point.dist.name for point in found if point.dist is not None))
        raise ValueError(f"several packages have a step of this name ({owners}); uninstall all but one")
    return found[0].load()
