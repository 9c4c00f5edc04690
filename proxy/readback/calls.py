"""The tool calls of an answer, put together from what arrives of them, and whose they are.

Servers differ: names come in pieces or whole, ids once, always or never, an index sometimes, all calls in one chunk or
each in many. A call is `mine` once its name is complete and that of the proxy's own tool, foreign as soon as it cannot
become that any more, and undecided in between.
"""

from typing import Any

from policies.hidden import paired
from policies.jsonraw import dumps
from policies.readback_tool import NAME

TOLD = ("id", "index", "type", "function")
WHOLE = ("id", "type", "format", "role")  # told again rather than continued
MOST_ARGUMENTS = 64 * 1024  # characters of a call of our own that are kept


class Slot:
    """One call. `at` is its place among all, `place` that among those the client sees."""

    __slots__ = ("arguments", "at", "extra", "id", "mine", "name", "place")

    def __init__(self, at: int) -> None:
        self.at = self.place = at
        self.id = self.name = self.arguments = ""
        self.extra: dict[str, Any] = {}  # members beside, such as a provider's signature
        self.mine: bool | None = None

    def take(self, call: dict[str, Any]) -> None:
        self.id = self.id or _text(call.get("id"))
        self.extra = merged(self.extra, {name: value for name, value in call.items() if name not in TOLD})
        function = call.get("function")
        if not isinstance(function, dict):
            if "custom" in call:
                self.mine = False  # ours is none of those
            return
        self._named(_text(function.get("name")))
        arguments = function.get("arguments")
        arguments = _text(arguments) if arguments is None or isinstance(arguments, str) else dumps(arguments).decode()
        self.arguments = (self.arguments + arguments)[: MOST_ARGUMENTS + 1]
        if self.name and self.arguments:
            self.close()

    def close(self) -> None:
        """The name is complete."""
        if self.mine is None:
            self.mine = self.name == NAME

    def raw(self, call_id: str) -> bytes:
        """The call as an assistant message has it."""
        function = {"name": self.name, "arguments": paired(self.arguments)}
        return dumps({"id": call_id, "type": "function", "function": function, **self.extra})

    def _named(self, piece: str) -> None:
        if self.mine is None and not (self.name == NAME and piece == NAME):  # some servers repeat it in every chunk
            self.name += piece
            if not NAME.startswith(self.name):
                self.mine = False


class Calls:
    """All calls of one answer, in order of appearance."""

    def __init__(self) -> None:
        self.slots: list[Slot] = []
        self._by_index: dict[object, Slot] = {}

    @property
    def mine(self) -> list[Slot]:
        return [slot for slot in self.slots if slot.mine]

    @property
    def foreign(self) -> list[Slot]:
        return [slot for slot in self.slots if slot.mine is False]

    def take(self, calls: list[Any]) -> list[Slot]:
        """The calls that the pieces of one chunk belong to. Several without an index are as many calls."""
        is_listed = len(calls) > 1
        return [self._take(call, new=is_listed and call.get("index") is None) for call in calls]

    def close(self) -> None:
        """No more comes: every name is complete."""
        for slot in self.slots:
            slot.close()

    def place(self) -> None:
        """Count the places of the client's calls: ours leave no gap."""
        gone = 0
        for slot in self.slots:
            slot.place = slot.at - gone
            gone += slot.mine is True

    def _take(self, call: dict[str, Any], *, new: bool) -> Slot:
        index = call.get("index")
        index = (
            index if isinstance(index, int | str | None) else dumps(index)
        )  # no server's, but it may not end a stream
        known = self._by_index.get(index) if index is not None else (self.slots[-1] if self.slots else None)
        if new or known is None or _is_another(known, call):
            known = Slot(len(self.slots))
            self.slots.append(known)
            if index is not None:
                self._by_index[index] = known
        known.take(call)
        return known


def _is_another(known: Slot, call: dict[str, Any]) -> bool:
    """A new call under an index that was used, or without one: another id, or, where there are none, a name after
    arguments."""
    function = call.get("function")
    is_named = bool(isinstance(function, dict) and _text(function.get("name"))) or "custom" in call
    if known.id and (new := _text(call.get("id"))):
        return is_named and new != known.id
    return is_named and bool(known.arguments) and call.get("index") is None


def merged(known: Any, delta: Any) -> Any:
    """What is known of a value with one more piece of it: texts grow, lists grow or merge by `index`, the rest is
    replaced."""
    if delta is None:
        return known
    if isinstance(known, str) and isinstance(delta, str):
        return known + delta
    if isinstance(known, dict) and isinstance(delta, dict):
        return {**known, **{name: merged(known.get(name), value) for name, value in delta.items()}}
    if isinstance(known, list) and isinstance(delta, list):
        return _listed(known, delta)
    return delta


def _listed(known: list[Any], delta: list[Any]) -> list[Any]:
    """Items with an index that is known continue the one that has it."""
    items = list(known)
    at = {item["index"]: place for place, item in enumerate(items) if isinstance(item, dict) and "index" in item}
    for item in delta:
        place = at.get(item.get("index")) if isinstance(item, dict) else None
        if place is None:
            items.append(item)
        else:
            told = {name: item[name] for name in WHOLE if name in item}
            items[place] = {**merged(items[place], item), **told}
    return items


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
