"""Values of a policy file by the type that is asked for. An error names place, fault and remedy, in one line."""

import dataclasses
import difflib
import types
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from policies.plan import ORDER, Level

T = TypeVar("T")
LEVELS = tuple(level.value for level in (Level.NONE, *ORDER))  # that a step may name
_KIND = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


class PolicyError(ValueError):
    """The policy file is wrong. The message is one line: place, fault, remedy."""


def built(kind: type[T], given: Mapping[str, Any], where: str, hidden: tuple[str, ...] = ()) -> T:
    """A frozen dataclass from a table whose keys are its fields; `hidden` ones cannot be set. Raises PolicyError."""
    fields = [item for item in dataclasses.fields(kind) if item.name not in hidden]  # type: ignore[arg-type] # steps and rules are dataclasses
    hints = get_type_hints(kind)
    known(given, [item.name for item in fields], where)
    for item in fields:
        needed = item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
        if needed and item.name not in given:
            raise PolicyError(f"{where}: '{item.name}' is missing; it must be {_described(hints[item.name])}")
    values = {key: typed(value, hints[key], f"{where}: '{key}'") for key, value in given.items()}
    try:
        return kind(**values)
    except ValueError as error:
        raise PolicyError(f"{where}: {error}") from None


def typed(value: object, hint: Any, where: str) -> object:
    """`value` as the annotation `hint` wants it: lists as tuples, names as members of their enum, tables as frozen
    dataclasses. Raises PolicyError."""
    origin = get_origin(hint)
    if origin is Literal:
        return choice(value, get_args(hint), where)
    if origin is tuple:
        return _listed(value, get_args(hint)[0], where)
    if origin in (Union, types.UnionType):  # an option that may be left out: TOML has no null
        return typed(value, next(one for one in get_args(hint) if one is not types.NoneType), where)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return hint(choice(value, LEVELS if hint is Level else [member.value for member in hint], where))
    if dataclasses.is_dataclass(hint):
        return _tabled(value, hint, where)
    wanted = (int, float) if hint is float else hint
    if not isinstance(value, wanted) or (isinstance(value, bool) and hint is not bool):
        raise PolicyError(f"{where}: must be {_described(hint)}, not {value!r}")
    return value


def _described(hint: Any) -> str:
    return _KIND.get(hint, "a list" if get_origin(hint) is tuple else "a value of its kind")


def choice(value: object, choices: Sequence[str], where: str) -> str:
    if not isinstance(value, str) or value not in choices:
        raise PolicyError(f"{where}: must be one of {', '.join(choices)}, not {value!r}")
    return value


def _listed(value: object, inner: Any, where: str) -> tuple[object, ...]:
    if not isinstance(value, list):
        raise PolicyError(f"{where}: must be a list, not {value!r}")
    if not dataclasses.is_dataclass(inner):
        return tuple(typed(item, inner, where) for item in value)
    if not all(isinstance(item, dict) for item in value):
        raise PolicyError(f"{where}: must be a list of tables, not {value!r}")
    return tuple(_tabled(item, inner, f"{where}[{index}]") for index, item in enumerate(value))


def _tabled(value: object, kind: Any, where: str) -> object:
    if not isinstance(value, dict):
        raise PolicyError(f"{where}: must be a table, not {value!r}")
    return built(kind, value, where)


def known(given: Mapping[str, Any], names: Iterable[str], where: str) -> None:
    """Raises PolicyError for a key that is none of `names`."""
    names = list(names)
    for key in given:
        if key not in names:
            raise PolicyError(f"{where}: unknown key '{key}'{meant(key, names)}")


def meant(word: str, names: Iterable[str]) -> str:
    """The remedy for a word that is not known."""
    names = list(names)
    near = difflib.get_close_matches(word, names, 1)
    return f"; did you mean '{near[0]}'?" if near else f"; known are {', '.join(names)}"


def table(given: Mapping[str, Any], name: str, place: str) -> Mapping[str, Any]:
    """The table called `name`, empty where there is none. Raises PolicyError."""
    value = given.get(name, {})
    if not isinstance(value, dict):
        raise PolicyError(f"{place}: '{name}' must be a table, written as [{name}]")
    return value


def tables(given: Mapping[str, Any], name: str, place: str) -> list[dict[str, Any]]:
    """The tables of a list of tables. Raises PolicyError."""
    value = given.get(name, [])
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise PolicyError(f"{place}: '{name}' must be a list of tables, each written as [[{name}]]")
    return value


def whole(given: Mapping[str, Any], name: str, where: str) -> int | None:
    """A number of tokens, None where there is none. Raises PolicyError."""
    value = given.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise PolicyError(f"{where}: '{name}' must be a whole number above 0, in tokens, not {value!r}")
    return value


def share(value: object, name: str, where: str) -> float:
    """A number above 0 and up to 1. Raises PolicyError."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= 1:
        raise PolicyError(f"{where}: '{name}' must be a number above 0 and up to 1, not {value!r}")
    return float(value)
