from collections.abc import Generator
from dataclasses import dataclass

from support.prompts import draft, lines, prompt, round_of, texts, user

from policies.asking import run_step
from policies.draft import Draft
from policies.editor import Editor
from policies.messages import with_text
from policies.needs import Answer, Ask, Asking, Need, Reply, ServerCount, nobody, solve
from policies.plan import Edit, Leaf, Level, Rewrite


def asking() -> Asking[list[Answer]]:
    first = yield ServerCount(prompt([user("a")]))
    second = yield Ask("summary", {"text": "b"}, 100)
    return [first, second]


def test_needs_are_answered_in_their_order_by_a_plain_function() -> None:
    def answer(need: Need) -> Answer:
        return Reply(f"{need.prompt}: {need.values['text']}", 9) if isinstance(need, Ask) else 7

    assert solve(asking(), answer) == [7, Reply("summary: b", 9)]


def test_where_there_is_nobody_to_ask_every_need_is_answered_with_none() -> None:
    assert solve(asking()) == [None, None]
    assert nobody(Ask("summary", {}, 1)) is None


@dataclass(frozen=True)
class Summarise:
    """Asks for a summary of a result, and says the result shorter by rule where nobody answers."""

    level: Level = Level.TOOL_RESULTS
    name: str = "summarise"
    leaf: Leaf = Leaf.RESULTS

    def edits(self, draft: Draft) -> Generator[Edit | Ask, Reply | None, None]:
        span = next(one for one in draft.messages if one.is_result)
        reply = yield Ask("summary", {"text": draft.original(span)}, 100)
        said = reply.text if reply else "short"
        reply = yield Rewrite(span.id, with_text(span.item.raw, said), "summarised")
        assert reply is None, "an edit is no question"


def summarised(answer: Answer) -> tuple[str, int]:
    made = draft([user("a"), *round_of(0, lines(40))], limit=100)
    editor = Editor(made)
    assert solve(run_step(made, editor, Summarise()), lambda _need: answer) == []
    assert [one.outcome for one in editor.decisions] == ["applied"]
    return texts(made)[2], editor.side_tokens


def test_a_step_may_ask_the_side_model_and_its_answer_is_charged() -> None:
    assert summarised(Reply("All is well.", 250)) == ("All is well.", 250)


def test_without_an_answer_a_step_goes_on_without_and_nothing_is_charged() -> None:
    assert summarised(None) == ("short", 0)
    assert summarised(7) == ("short", 0)
