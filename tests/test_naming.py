"""Names that stand in a prompt in any case are said once."""

from support.prompts import calls, draft, result, said, system, user

from policies.naming import READ, Seen, seen


def names(text: str) -> Seen:
    found = Seen()
    found.add(text)
    return found


def test_words_and_quoted_phrases_are_names() -> None:
    found = names("move \"the old report.pdf\" to 'archive/2024', as TCK-4821 said.")
    for name in ("the old report.pdf", "report.pdf", "archive/2024", "TCK-4821", "said"):
        assert name in found
    assert "TCK" not in found


def test_arguments_of_calls_hold_names() -> None:
    found = names('{"reservation_id":"ZFA04Y","flights":[{"number":"HAT136"}],"page":12}')
    assert "ZFA04Y" in found
    assert "HAT136" in found


def test_of_a_long_text_the_beginning_is_read() -> None:
    found = names("HAT-1 " + " " * READ + "HAT-2")
    assert "HAT-1" in found
    assert "HAT-2" not in found


def test_what_calls_and_users_say_is_seen_and_what_results_and_leaving_rounds_say_is_not() -> None:
    made = draft(
        [
            system("Close TCK-1."),
            user("Where is TCK-2?"),
            calls(("x", "search"), arguments='{"q":"TCK-3"}'),
            result("x", "TCK-4"),
            said("It is TCK-5."),
            user("ok"),
        ]
    )
    tickets = [f"TCK-{number}" for number in range(1, 6)]
    assert [one for one in tickets if one in seen(made)] == ["TCK-1", "TCK-2", "TCK-3", "TCK-5"]
    assert [one for one in tickets if one in seen(made, leaving={0})] == ["TCK-1", "TCK-2", "TCK-5"]
