"""Names that a prompt says in any case are said once."""

from support.prompts import calls, draft, result, said, system, user

from policies.draft import Draft
from policies.naming import READ, Seen, names


def talk() -> Draft:
    """Places: system and task always, 2 the first round, 4 an answer, 5 a user, 6 the second round."""
    return draft(
        [
            system("Close TCK-1."),
            user("Where is TCK-2?"),
            calls(("x", "search"), arguments='{"q":"TCK-3"}'),
            result("x", "TCK-4"),
            said("It is TCK-5."),
            user("and TCK-6?"),
            calls(("y", "search"), arguments='{"q":"TCK-7"}'),
            result("y", "TCK-8"),
        ]
    )


def known(seen: Seen, made: Draft, result_id: str) -> list[int]:
    """Tickets that need not be named in place of that result."""
    span = made.get(result_id)
    assert span is not None
    return [ticket for ticket in range(1, 9) if f"TCK-{ticket}" in seen.beside(span)]


def test_words_and_quoted_phrases_are_names() -> None:
    found = list(names("move \"the old report.pdf\" to 'archive/2024', as TCK-4821 said."))
    for name in ("the old report.pdf", "report.pdf", "archive/2024", "TCK-4821", "said"):
        assert name in found
    assert "TCK" not in found


def test_arguments_of_calls_hold_names() -> None:
    found = list(names('{"reservation_id":"ZFA04Y","flights":[{"number":"HAT136"}],"page":12}'))
    assert "ZFA04Y" in found
    assert "HAT136" in found


def test_of_a_long_text_the_beginning_is_read_and_no_half_of_a_name() -> None:
    assert list(names("HAT-1 " + " " * READ + "HAT-2")) == ["HAT-1"]
    assert "TCK-48" not in list(names("x " * (READ // 2 - 3) + "TCK-4821 is closed"))
    assert list(names("a" * 160 + "TCK-4821")) == []


def test_what_is_said_counts_where_it_stays_as_long_as_the_stub() -> None:
    made = talk()
    seen = Seen(made)
    assert known(seen, made, "m3") == [1, 2, 3, 5, 6, 7]
    assert known(seen, made, "m7") == [1, 2, 7]
    assert [ticket for ticket in range(1, 9) if f"TCK-{ticket}" in seen.anywhere] == [1, 2, 3, 5, 6, 7]


def test_what_was_made_of_a_result_is_said_from_there_on() -> None:
    made = talk()
    seen = Seen(made)
    newer = made.get("m7")
    assert newer is not None
    seen.add(newer)
    assert known(seen, made, "m3") == [1, 2, 3, 5, 6, 7, 8]


def test_the_newest_comes_first() -> None:
    made = talk()
    spans = [span for span in made.messages if span.is_result]
    assert [span.id for span in Seen(made).newest_first(spans)] == ["m7", "m3"]
