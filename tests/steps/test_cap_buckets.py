from support.prompts import chat, counter, lines, planned, prompt, said, system, user

from policies.annotated import NoteReader
from policies.annotations import Annotation
from policies.draft import Draft
from policies.editor import Editor
from policies.plan import Edit, Elide, Rewrite
from policies.sorting import sort
from policies.spans import Bucket, Span
from policies.split import split
from policies.steps.cap_buckets import CapBuckets

MESSAGES = [
    system("Be brief."),
    system("[MEMORY]\n" + lines(30, "tea")),
    system("[MEMORY]\n" + lines(30, "coffee")),
    system("[MEMORY]\n" + lines(30, "water")),
    user("Which drink?"),
]
MEMORY = Annotation(bucket="memory")
NOTES = {"m1": Annotation(bucket="memory", priority=1), "m2": MEMORY, "m3": MEMORY}


def draft(cap: int, **notes: Annotation) -> Draft:
    asked, counted = prompt(MESSAGES), counter()
    bill = counted.bill(asked)
    spans = split(asked, [counted.facts(item) for item in asked.messages], bill)
    made = Draft(asked, counted, sort(spans, (), NOTES | notes), bill)
    made.caps, made.target = {Bucket.MEMORY: cap}, 1
    return made


def edits(of: Draft, step: CapBuckets | None = None) -> list[Edit]:
    editor, asked = Editor(of), []
    for edit in (step or CapBuckets()).edits(of):
        assert isinstance(edit, Rewrite | Elide)
        asked.append(edit)
        editor.apply("cap-buckets", edit)
    return list(asked)


def memory(of: Draft) -> list[Span]:
    return [span for span in of.messages if span.bucket is Bucket.MEMORY]


def test_the_least_important_goes_first_and_the_last_is_cut_to_what_is_left() -> None:
    made = draft(700)
    found = edits(made)
    assert [(type(edit), getattr(edit, "span", "")) for edit in found] == [(Elide, "m2"), (Rewrite, "m3")]
    assert sum(span.tokens for span in memory(made)) <= 700
    assert [span.id for span in memory(made)] == ["m1", "m2", "m3"]
    assert made.message(memory(made)[1]).text == "[… memory of 367 tokens, no longer shown; it began: [MEMORY]]"


def test_a_bucket_within_its_cap_is_left_alone() -> None:
    assert edits(draft(5_000)) == []


def test_a_prompt_within_its_target_is_left_alone_unless_the_cap_binds_always() -> None:
    made = draft(700)
    made.target = made.total
    assert edits(made) == []
    assert edits(made, CapBuckets(when="always")) != []


def test_what_is_pinned_or_newest_is_not_capped() -> None:
    made = draft(10, m1=Annotation(bucket="memory", evict="pinned"), m4=MEMORY)
    assert {getattr(edit, "span", "") for edit in edits(made)} == {"m2", "m3"}


def test_under_pressure_memory_stays_within_its_cap_even_where_there_is_room_again() -> None:
    messages = [*MESSAGES[:4], user(lines(150)), said("Noted."), MESSAGES[4]]
    noted = [
        message | {"edgewise": {"bucket": "memory"}} if 1 <= at <= 3 else message for at, message in enumerate(messages)
    ]
    made = planned(NoteReader().bare(chat(noted)), 2_900)
    assert made.level == "tool_results"
    assert sum(span.tokens for span in made.sent if span.bucket is Bucket.MEMORY) <= 290
    assert "cap-buckets" in {one.step for one in made.decisions if one.outcome == "applied"}
