from support.prompts import counter, prompt, said, system, tool, user

from policies.counting.scaled import Scaled

ASKED = prompt([system("Be brief."), user("Which station?"), said("Station 7.")], tools=[tool("read_log")])


def test_the_prompt_it_was_fitted_to_costs_what_the_server_said() -> None:
    base = counter().bill(ASKED)
    for total in (base.total * 2, base.total, base.total + 7, 40):
        bill = Scaled.to(counter(), ASKED, total).bill(ASKED)
        assert bill.exact
        assert bill.total == total
        assert len(bill.messages) == 3


def test_other_prompts_are_scaled_and_no_longer_exact() -> None:
    scaled = Scaled.to(counter(), ASKED, counter().bill(ASKED).total * 2)
    other = prompt([user("Which station?")])
    bill = scaled.bill(other)
    assert bill.total == counter().bill(other).total * 2
    assert not bill.exact


def test_facts_and_texts_are_scaled_too() -> None:
    scaled = Scaled.to(counter(), ASKED, counter().bill(ASKED).total * 2)
    item = ASKED.messages[0]
    assert scaled.facts(item).tokens == counter().facts(item).tokens * 2
    assert scaled.text("one two three") == 7
    assert scaled.name == "server x openai/o200k_base"
    assert scaled.new_bytes(ASKED) == 0
