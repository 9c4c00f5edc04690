"""Facts name what a message is, and keep none of its text."""

from policies.facts import Facts, closed
from policies.messages import Message


def test_the_facts_of_a_call() -> None:
    message = Message.of(
        b'{"role":"assistant","content":null,"tool_calls":['
        b'{"id":"1","function":{"name":"f","arguments":"{}"}},{"id":"2","function":{"name":"g","arguments":"{}"}}]}'
    )
    facts = Facts.of(message, 20, exact=True)
    assert (facts.role, facts.content, facts.tokens, facts.exact) == ("assistant", "null", 20, True)
    assert (facts.call_ids, facts.call_names) == (("1", "2"), ("f", "g"))


def test_the_facts_of_a_result_with_an_image() -> None:
    message = Message.of(
        b'{"role":"tool","tool_call_id":"1","name":"f","content":[{"type":"text","text":"four"},'
        b'{"type":"image_url","image_url":{"url":"x"}}]}'
    )
    facts = Facts.of(message, 9, exact=False, newline=1)
    assert (facts.call_id, facts.name, facts.chars, facts.media) == ("1", "f", 4, True)
    assert (facts.exact, facts.newline) == (False, 1)


def test_results_without_a_call_are_closed_and_so_is_nothing() -> None:
    lost = Facts.of(Message.of(b'{"role":"tool","tool_call_id":"a","content":"b"}'), 5, exact=True)
    assert closed([]) == 0
    assert closed([lost, lost]) == 2
