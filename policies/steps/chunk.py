"""A pinned message that is over the budget by itself is read in parts by the side model; only the fields go on (DESIGN
5, leaf 1). Opt-in: the only licence over the newest user message."""

from collections.abc import Generator
from dataclasses import dataclass

from policies.budget import fixed_tokens
from policies.draft import Draft
from policies.messages import with_text
from policies.needs import Ask, Reply
from policies.plan import Edit, Leaf, Level, Pass, Rewrite
from policies.spans import Evict, Span, Tier
from policies.texts.extracting import Field, Found, Values, merge, parts_of, question_of, values_of
from policies.texts.folding import fold_json
from policies.texts.folding_tree import write

QUESTION = 1_000  # characters of the beginning and of the end that stay as they are, at most
FRAME_TOKENS = 80  # the words around the fields
LEAST_TOKENS = 40  # for the fields
INSTEAD = (
    "[… The text of {tokens:,} tokens and {lines:,} lines that stood here was read in {count} parts by another model, "
    "which took these fields from it, each under the number of its line:\n{fields}\n…]"
)


@dataclass(frozen=True)
class Chunk:
    """`fields` are what is looked for, each written as `name` or `name: number`. The text is cut into at most
    `most_chunks` parts of `chunk_tokens`; an answer takes at most `answer_tokens`. Where one part is not answered, or
    not in the form of the schema, nothing is changed."""

    fields: tuple[str, ...] = ("error", "time")
    chunk_tokens: int = 2000
    most_chunks: int = 24
    answer_tokens: int = 400
    level: Level = Level.HISTORY
    name: str = "chunk"
    leaf: Leaf = Leaf.CHUNK

    def __post_init__(self) -> None:
        if not self.fields:
            raise ValueError("'fields' is empty; name what shall be extracted")
        for written in self.fields:
            Field.of(written)
        for key in ("chunk_tokens", "most_chunks", "answer_tokens"):
            if getattr(self, key) < 1:
                raise ValueError(f"'{key}' must be at least 1, not {getattr(self, key)}")

    def edits(self, draft: Draft) -> Generator[Edit | Ask, Reply | None, None]:
        span = _oversized(draft)
        if span is None or draft.level is not self.level:  # once: what was asked in vain is not asked again
            return
        text = draft.original(span)
        parts = parts_of(text, self.chunk_tokens, draft.measure)
        if len(parts) > self.most_chunks:
            yield Pass(span.id, f"it would be read in {len(parts)} parts; the policy allows {self.most_chunks}")
            return
        answers = yield from self._asked(span, text, parts)
        if answers is not None:
            found = merge(parts, answers)
            yield self._edit(draft, span, found, len(parts))

    def _asked(
        self, span: Span, text: str, parts: list[str]
    ) -> Generator[Edit | Ask, Reply | None, list[Values] | None]:
        """What each part holds; None when one of them was not answered as it should be."""
        fields = [Field.of(written) for written in self.fields]
        schema, question = "\n".join(field.told for field in fields), "\n\n".join(question_of(text, QUESTION))
        answers: list[Values] = []
        for number, part in enumerate(parts, 1):
            where = f"Part {number} of {len(parts)}"
            asked = {"fields": schema, "question": question, "part": where, "text": part}
            reply = yield Ask("extract", asked, self.answer_tokens)
            values = values_of(reply.text, fields) if reply else None
            if values is None:
                yield Pass(span.id, f"{where}: {'not an answer in its schema' if reply else 'nobody answered'}")
                return None
            answers.append(values)
        return answers

    def _edit(self, draft: Draft, span: Span, found: Found, count: int) -> Edit:
        text = draft.original(span)
        begin, end = question_of(text, QUESTION)
        kept = draft.measure(f"{begin}\n\n{end}") + FRAME_TOKENS
        room = draft.limit - _fixed(draft) - draft.reserved + draft.measure(text) - kept
        fields = _within(draft, found, room)
        if not found.kept or fields is None:
            return Pass(span.id, "no field was found in it" if not found.kept else "its fields do not fit either")
        lines = text.count("\n") + 1
        said = INSTEAD.format(tokens=draft.measure(text), lines=lines, count=count, fields=fields)
        shorter = "\n\n".join(part for part in (begin, said, end) if part)
        why = f"read in {count} parts by the side model: {found.kept} values of {len(found.fields)} fields"
        why += f"; {found.unfounded} that do not stand in the text were left out" if found.unfounded else ""
        check = f"{count} parts cover the text, every value stands on its line"
        return Rewrite(span.id, with_text(span.item.raw, shorter), why, check)


def _oversized(draft: Draft) -> Span | None:
    """The largest pinned user text, where what no step may take is over the limit."""
    if _fixed(draft) <= draft.limit:
        return None
    pinned = [span for span in draft.messages if span.is_user and span.tier is Tier.L1 and span.evict is Evict.PINNED]
    texts = [span for span in pinned if not draft.facts(span).media]
    return max(texts, key=lambda span: span.tokens, default=None)


def _fixed(draft: Draft) -> int:
    return fixed_tokens(draft.spans, draft.overhead, draft.tools_cap)


def _within(draft: Draft, found: Found, room: int) -> str | None:
    """The fields as JSON in at most `room` tokens; folded where they are longer."""
    whole = write(found.fields)
    if draft.measure(whole) <= room:
        return whole
    folded = fold_json(whole, keep_tokens=max(room, LEAST_TOKENS), measure=draft.measure)
    return folded.text if folded is not None and folded.tokens <= room else None
