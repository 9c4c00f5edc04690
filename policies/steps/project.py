"""Of a tool's results only the fields that the operator named for that tool (DESIGN 5, Boundary)."""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from policies.draft import Draft
from policies.messages import with_text
from policies.plan import Edit, Leaf, Level, Pass, Rewrite
from policies.spans import Span
from policies.step import When
from policies.steps.results import untouched, wanted
from policies.texts.columns import by_columns
from policies.texts.folding import PARTS, with_note
from policies.texts.folding_tree import parse, write
from policies.texts.projecting import MatchesNothing, Projected, by_jmespath, by_regex, faults


@dataclass(frozen=True)
class Rule:
    """For tools whose name matches the pattern `tool`: a JMESPath expression for JSON, a regular expression with named
    groups for each line of a text, or the columns of a table to keep; one of the three."""

    tool: str = "*"
    jmespath: str = ""
    regex: str = ""
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if sum(map(bool, (self.jmespath, self.regex, self.columns))) != 1:
            raise ValueError("a rule has one of 'jmespath', 'regex' and 'columns'")
        if fault := faults(self.jmespath, self.regex):
            raise ValueError(fault)

    def project(self, text: str) -> Projected:
        """Raises MatchesNothing."""
        if self.jmespath:
            return by_jmespath(text, self.jmespath)
        return by_regex(text, self.regex) if self.regex else by_columns(text, self.columns)


@dataclass(frozen=True)
class Project:
    """The first of `rules` whose `tool` matches a result's tool applies to it. One that finds nothing leaves the result
    as it is, and says so."""

    rules: tuple[Rule, ...] = ()
    when: When = "pressure"
    level: Level = Level.TOOL_RESULTS
    name: str = "project"
    leaf: Leaf = Leaf.RESULTS

    def edits(self, draft: Draft) -> Iterator[Edit]:
        for span in untouched(draft):
            if not wanted(draft, self.when):
                return
            number, rule = self._rule(span)
            if rule is not None:
                yield _edit(draft, span, rule, f"rule {number} for {rule.tool!r}")

    def _rule(self, span: Span) -> tuple[int, Rule | None]:
        matching = (found for found in enumerate(self.rules) if fnmatchcase(span.name, found[1].tool))
        return next(matching, (-1, None))


def _edit(draft: Draft, span: Span, rule: Rule, which: str) -> Edit:
    try:
        made = rule.project(draft.original(span))
    except MatchesNothing as nothing:
        return Pass(span.id, f"{which} matches nothing: {nothing}")
    text = _with_way_back(made.text, draft.back(span), is_json=bool(rule.jmespath))
    return Rewrite(span.id, with_text(span.item.raw, text), f"{which} applied", made.check)


def _with_way_back(text: str, back: str, *, is_json: bool) -> str:
    """The text with a note that says how to read what the rule left out. A bare value becomes the item of an array."""
    if not back:
        return text
    tree = parse(text) or (parse(f"[{text}]") if is_json else None)
    return f"{text}\n[… {PARTS}; {back}]" if tree is None else write(with_note(tree.root, back))
