"""The steps of a policy file, in its order, and the reminder."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeGuard

from policies.plan import Leaf, Level
from policies.policy_values import PolicyError, built, known, meant, tables, typed
from policies.step import Step
from policies.steps import STEPS

Read = Callable[[str], str]
Find = Callable[[str], object]
HIDDEN = ("name", "leaf")  # fields of a step that are no configuration
OURS = (Leaf.INSTRUCTIONS, Leaf.CHUNK)  # leaves with a licence over pinned text
REMINDER = ("text", "file", "places", "max_tokens", "every_tokens")


def reminder_of(given: Mapping[str, Any], place: str, read: Read | None) -> Iterable[Step]:
    """The step that `[reminder]` stands for: the constitution file first, then the text."""
    if not given:
        return
    where = f"{place}: [reminder]"
    known(given, REMINDER, where)
    texts = [typed(given.get("text", ""), str, f"{where}: 'text'")]
    if file := typed(given.get("file", ""), str, f"{where}: 'file'"):
        try:
            texts.insert(0, read(str(file)) if read else "")
        except OSError as error:
            raise PolicyError(f"{where}: 'file' {file!r} cannot be read: {error.strerror}; check the path") from None
    rest = {key: value for key, value in given.items() if key in ("places", "max_tokens", "every_tokens")}
    text = "\n\n".join(str(part).strip() for part in texts if part)
    yield built(STEPS["reminder"], {"text": text, **rest}, where)


def steps_of(given: Mapping[str, Any], place: str, find: Find | None) -> Iterable[Step]:
    """`find` gives the class of a step that is not among `STEPS`, None where there is none. Raises PolicyError."""
    for index, one in enumerate(tables(given, "steps", place)):
        where = f"{place}: steps[{index}]"
        use = one.get("use")
        if not isinstance(use, str):
            raise PolicyError(f"{where}: 'use' must name a step, not {use!r}; known are {', '.join(STEPS)}")
        kind = STEPS.get(use) or _foreign(use, where, find)
        yield _made(kind, {key: value for key, value in one.items() if key != "use"}, f"{where} '{use}'")


def _foreign(use: str, where: str, find: Find | None) -> type[Step]:
    """A step of another package: a frozen dataclass of the same shape as ours."""
    try:
        found = find(use) if find else None
    except Exception as error:  # whatever the import of a foreign package may raise
        said = " ".join(str(error).split())
        raise PolicyError(
            f"{where}: step '{use}' cannot be imported: {type(error).__name__}: {said}; check its package"
        ) from None
    if found is None:
        raise PolicyError(f"{where}: unknown step '{use}'{meant(use, STEPS)}")
    if not _is_step(found):
        raise PolicyError(f"{where}: step '{use}' is no dataclass with a method 'edits'; see CONTRIBUTING.md")
    return found


def _is_step(found: object) -> TypeGuard[type[Step]]:
    return isinstance(found, type) and dataclasses.is_dataclass(found) and callable(getattr(found, "edits", None))


def _made(kind: type[Step], given: Mapping[str, Any], where: str) -> Step:
    step = built(kind, given, where, hidden=HIDDEN)
    shape = (("name", str), ("level", Level), ("leaf", Leaf))
    wrong = [name for name, wanted in shape if not isinstance(getattr(step, name, None), wanted)]
    if wrong:
        raise PolicyError(f"{where}: its '{wrong[0]}' is not what a step has; see CONTRIBUTING.md")
    if step.leaf in OURS and kind not in STEPS.values():
        raise PolicyError(f"{where}: leaf '{step.leaf.value}' may act on what is pinned, and is not for other packages")
    return step
