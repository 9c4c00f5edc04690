"""What stands where something was: in place of an older tool result, and of older rounds.

A stub says that the call was answered and used, how much it was, how it began, which identifiers it named, and the
way back. JSON stays JSON. It avoids the words that models read as a failed call or copy into files (FACTS 6). Figures
are tokens of the target model.
"""

from collections.abc import Container, Mapping
from typing import NamedTuple

from policies.jsonraw import NotJSON, RawObject, dumps, elements
from policies.texts.alarms import alarms
from policies.texts.boundaries import cut_before
from policies.texts.digest import DEFAULT_CAP, Measure, digest
from policies.texts.folding_tree import MARK, parse

BEGAN = 120  # characters of the first line that says something
LISTED = 8  # names of tools or members, at most
GONE = "no longer shown"
AGAIN = "calling it again shows them"  # the way back to results of tools that are known to change nothing
_READ = 4000  # characters looked at for a beginning
_SHORT, _MEMBERS = 300, 40  # bytes of a member, and how many, looked at for a problem


class Naming(NamedTuple):
    """How much a stub may say of what a text named: tokens of a digest, and names that are seen elsewhere."""

    cap: int = DEFAULT_CAP
    seen: Container[str] = ()


ALL = Naming()


def by_ref(ref: str) -> str:
    """The way back through the store."""
    return f'read_tool_result(ref="{ref}") shows them'


def stub(
    name: str,
    text: str,
    tokens: int,
    *,
    measure: Measure,
    naming: Naming = ALL,
    back: str = "",
) -> str:
    """What replaces `text`, the result of the tool `name`, of so many tokens: an object where it is a JSON object or
    array, else one line.

    `naming` says how much its digest may take; the rest of the stub takes about 40 tokens. `back` is `by_ref(...)` or
    `AGAIN`; without it nothing is promised.
    """
    held = _held(text)
    began = held or first_line(text)
    said = f"{_outcome(name, text, is_json=bool(held))}; its {tokens:,} tokens are {GONE}" + (
        f", {back}" if back else ""
    )
    named = digest(text, naming.cap, measure=measure, without=began, seen=naming.seen)
    if held:
        parts = {MARK: said, "held": held} | ({"named": named} if named else {})
        return dumps(parts).decode()
    facts = [f"it began: {began}"] if began else []
    facts.extend([f"it named: {named}"] if named else [])
    return f"[… {'; '.join([said, *facts])}]"


def left_out(what: str, text: str, tokens: int, *, measure: Measure, cap: int = DEFAULT_CAP) -> str:
    """What stands for `text`, of so many tokens, that is no result: how it began, and in at most `cap` tokens what it
    named. `what` says what it is."""
    began = first_line(text)
    named = digest(text, cap, measure=measure, without=began)
    facts = [f"{what} of {tokens:,} tokens, {GONE}"]
    facts += [f"it began: {began}"] if began else []
    facts += [f"it named: {named}"] if named else []
    return f"[… {'; '.join(facts)}]"


def pointer(name: str, text: str, tokens: int, where: str, only: str = "", back: str = "") -> str:
    """What replaces `text` when a later result stands for it: says `where`; `only` names what is not found there, and
    `back` is the way to it."""
    said = f"{name or 'the call'} succeeded; its {tokens:,} tokens are {GONE} here: {where}" + (
        f"; {back}" if back else ""
    )
    if _held(text):
        return dumps({MARK: said} | ({"named": only} if only else {})).decode()
    return f"[… {said}{f'; it named: {only}' if only else ''}]"


def reports_problem(text: str) -> bool:
    """Whether a result begins by reporting a problem, or is an object that does."""
    return _reports_problem(text) if _held(text) else _begins_with_problem(text)


class Left(NamedTuple):
    """What left a conversation: rounds, tokens, and the calls of each tool."""

    rounds: int
    tokens: int
    calls: Mapping[str, int]


def window_note(left: Left, *, names: str = "", back: str = "") -> str:
    """The one note that stands for older rounds: how many and how much, the calls made by tool, and `names`: the digest
    of all that went. `back` is the way to it.
    """
    rounds = left.rounds
    who = f"{rounds:,} earlier round{'s' if rounds > 1 else ''}" if rounds else "Earlier messages"
    how = f", {back}" if back else ""
    gone = f"({left.tokens:,} tokens) {'is' if rounds == 1 else 'are'} {GONE}{how}"
    said = f"[… {who} of this conversation {gone}; all was answered and acted on."
    if left.calls:
        ranked = sorted(left.calls.items(), key=lambda call: -call[1])
        said += f" Calls made: {_listed([f'{name} ×{count}' for name, count in ranked])}."
    return said + (f" They named: {names}]" if names else "]")


def _outcome(name: str, text: str, *, is_json: bool) -> str:
    who = name or "the call"
    problem = _reports_problem(text) if is_json else _begins_with_problem(text)
    return f"{who} was answered with a problem, seen earlier" if problem else f"{who} succeeded and was used earlier"


def _begins_with_problem(text: str) -> bool:
    line = text[:_READ].lstrip().partition("\n")[0][:200]
    return bool(alarms(line, 0, len(line)))


def _reports_problem(text: str) -> bool:
    """Does a short member of the object say so? Items of an array may fail while the call did not."""
    if not text.lstrip().startswith("{"):
        return False
    source = text.strip().encode("utf-8", "surrogatepass")
    short = [source[one.at : one.end] for one in RawObject.parse(source).members if one.end - one.at <= _SHORT]
    tree = parse((b"{" + b",".join(short[:_MEMBERS]) + b"}").decode("utf-8", "replace"))
    return tree is not None and tree.alarmed("", tree.root)


def _held(text: str) -> str:
    """What the JSON object or array holds; "" when the text is neither."""
    source = text.strip(" \t\r\n").encode("utf-8", "surrogatepass")
    try:
        if source.startswith(b"{"):
            return f"an object with {_names(source)}"
        if source.startswith(b"["):
            items = elements(source)
            alike = f" objects with {_names(items[0])}" if items and items[0].startswith(b"{") else " items"
            return f"an array of {len(items):,}{alike}"
    except NotJSON:
        return ""  # it only looks like JSON, and is said as text
    return ""


def _names(source: bytes) -> str:
    return _listed([member.name for member in RawObject.parse(source).members]) or "no members"


def _listed(names: list[str]) -> str:
    listed = ", ".join(name[:BEGAN] for name in names[:LISTED])
    return listed if len(names) <= LISTED else f"{listed} and {len(names) - LISTED:,} others"


def first_line(text: str) -> str:
    """The first line of the text that says something, cut between words."""
    for line in text[:_READ].splitlines():
        stripped = " ".join(line.split())
        if sum(map(str.isalnum, stripped)) >= 3:
            return stripped if len(stripped) <= BEGAN else f"{stripped[: cut_before(stripped, BEGAN)].rstrip()} …"
    return ""
