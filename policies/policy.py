"""A policy file: budget, levels, steps, reminder (DESIGN 8). An error names place, fault and remedy, in one line."""

import dataclasses
import difflib
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin, get_type_hints

from policies.plan import ORDER, Level
from policies.step import Step
from policies.steps import STEPS

Read = Callable[[str], str]
OnRefuse = Literal["error", "message"]
TOP = ("version", "name", "on_refuse", "budget", "levels", "steps", "reminder")
REMINDER = ("text", "file", "places", "max_tokens")
BUDGET = ("window", "output_reserve")
LEVEL = ("enter", "free_to")


class PolicyError(ValueError):
    """The policy file is wrong. The message is one line: place, fault, remedy."""


@dataclass(frozen=True)
class LevelRule:
    """`enter` and `free_to` are pressures: compressible tokens ÷ the room for them; 1.0 is exactly full."""

    enter: float
    free_to: float


@dataclass(frozen=True)
class Policy:
    """What to do under which pressure. `window` and `output_reserve` in tokens; None: found out per model."""

    name: str
    steps: tuple[Step, ...]
    levels: Mapping[Level, LevelRule]
    on_refuse: OnRefuse = "error"
    window: int | None = None
    output_reserve: int | None = None
    digest: str = field(default="", compare=False)

    @classmethod
    def parse(cls, text: str, place: str, read: Read | None = None) -> "Policy":
        """`place` is the file's name, for messages; `read` gives the text of a file that the policy names (a
        constitution), relative to it, and raises OSError. Raises PolicyError."""
        try:
            table = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise PolicyError(f"{place}: not valid TOML: {error}") from None
        return _policy(table, place, read)


def _policy(table: Mapping[str, Any], place: str, read: Read | None) -> Policy:
    _known(table, TOP, place)
    if table.get("version") != 1:
        raise PolicyError(f"{place}: 'version' must be 1 (this build reads no other)")
    budget = _table(table, "budget", place)
    _known(budget, BUDGET, f"{place}: [budget]")
    on_refuse = table.get("on_refuse", "error")
    if on_refuse not in get_args(OnRefuse):
        raise PolicyError(f'{place}: \'on_refuse\' must be "error" or "message", not {on_refuse!r}')
    name = table.get("name", "")
    if not isinstance(name, str) or not name:
        raise PolicyError(f"{place}: 'name' must be a text that is not empty")
    return Policy(
        name=name,
        steps=(*_reminder(_table(table, "reminder", place), place, read), *_steps(table.get("steps", []), place)),
        levels=_levels(_table(table, "levels", place), place),
        on_refuse=on_refuse,
        window=_whole(budget, "window", f"{place}: [budget]"),
        output_reserve=_whole(budget, "output_reserve", f"{place}: [budget]"),
    )


def _levels(table: Mapping[str, Any], place: str) -> dict[Level, LevelRule]:
    names = tuple(level.value for level in ORDER)
    _known(table, names, f"{place}: [levels]")
    rules: dict[Level, LevelRule] = {}
    for level in ORDER:
        where = f"{place}: [levels.{level.value}]"
        rule = _table(table, level.value, place)
        if not rule:
            raise PolicyError(f"{where}: is missing; give it enter and free_to")
        _known(rule, LEVEL, where)
        rules[level] = LevelRule(_share(rule, "enter", where), _share(rule, "free_to", where))
        if rules[level].free_to > rules[level].enter:
            raise PolicyError(f"{where}: 'free_to' must not be above 'enter', or the level would free nothing")
    return rules


def _reminder(table: Mapping[str, Any], place: str, read: Read | None) -> Iterable[Step]:
    """The step that `[reminder]` stands for: the constitution file first, then the text."""
    if not table:
        return
    where = f"{place}: [reminder]"
    _known(table, REMINDER, where)
    texts = [_typed(table.get("text", ""), str, f"{where}: 'text'")]
    if file := table.get("file"):
        try:
            texts.insert(0, read(str(file)) if read else "")
        except OSError as error:
            raise PolicyError(f"{where}: 'file' {file!r} cannot be read: {error.strerror}; check the path") from None
    rest = {key: value for key, value in table.items() if key in ("places", "max_tokens")}
    text = "\n\n".join(str(part).strip() for part in texts if part)
    yield _step(STEPS["reminder"], {"text": text, **rest}, where)


def _steps(tables: object, place: str) -> Iterable[Step]:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise PolicyError(f"{place}: 'steps' must be a list of tables, each written as [[steps]]")
    for index, table in enumerate(tables):
        use = table.get("use")
        if use not in STEPS:
            raise PolicyError(f"{place}: steps[{index}]: unknown step {use!r}{_meant(str(use), STEPS)}")
        yield _step(STEPS[use], table, f"{place}: steps[{index}] '{use}'")


def _step(kind: type[Step], table: Mapping[str, Any], where: str) -> Step:
    fields = {item.name: item for item in dataclasses.fields(kind)}  # type: ignore[arg-type] # every step is a dataclass
    hints = get_type_hints(kind)
    given = {key: value for key, value in table.items() if key != "use"}
    _known(given, tuple(name for name in fields if name not in ("name", "leaf")), where)
    values = {key: _typed(value, hints[key], f"{where}: '{key}'") for key, value in given.items()}
    try:
        return kind(**values)
    except ValueError as error:
        raise PolicyError(f"{where}: {error}") from None


def _typed(value: object, hint: Any, where: str) -> object:
    if hint is Level:
        choices = [level.value for level in (Level.NONE, *ORDER)]
        if value not in choices:
            raise PolicyError(f"{where}: must be one of {', '.join(choices)}, not {value!r}")
        return Level(value)
    if get_origin(hint) is tuple:
        inner = get_args(hint)[0]
        if not isinstance(value, list):
            raise PolicyError(f"{where}: must be a list, not {value!r}")
        return tuple(_typed(item, inner, where) for item in value)
    wanted = (int, float) if hint is float else hint
    if not isinstance(value, wanted) or (isinstance(value, bool) and hint is not bool):
        raise PolicyError(f"{where}: must be {_KIND[hint]}, not {value!r}")
    return value


_KIND = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def _known(table: Mapping[str, Any], names: Iterable[str], where: str) -> None:
    for key in table:
        if key not in names:
            raise PolicyError(f"{where}: unknown key '{key}'{_meant(key, names)}")


def _meant(word: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(names), 1)
    return f"; did you mean '{near[0]}'?" if near else f"; known are {', '.join(names)}"


def _table(table: Mapping[str, Any], name: str, place: str) -> Mapping[str, Any]:
    value = table.get(name, {})
    if not isinstance(value, dict):
        raise PolicyError(f"{place}: '{name}' must be a table")
    return value


def _whole(table: Mapping[str, Any], name: str, where: str) -> int | None:
    value = table.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise PolicyError(f"{where}: '{name}' must be a whole number above 0, in tokens, not {value!r}")
    return value


def _share(table: Mapping[str, Any], name: str, where: str) -> float:
    value = table.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= 1:
        raise PolicyError(f"{where}: '{name}' must be a number above 0 and up to 1, not {value!r}")
    return float(value)
