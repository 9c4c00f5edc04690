"""Whole conversations over real sockets with an upstream whose tokenizer nobody knows."""

import json
from pathlib import Path
from statistics import median

import pytest
from support.billing import MODEL, RESERVE, WINDOW, Biller, billing, fronted, steady, talk
from support.prompts import lines, user

FIRST = 3  # answers after which counts are near to what is billed


async def test_after_some_answers_counts_are_near_to_what_is_billed_and_nothing_is_over(tmp_path: Path) -> None:
    with billing(Biller(rate=1.3, preamble=200)) as biller:
        async with fronted(biller, ledger=str(tmp_path)) as front:
            seen = [await front.ask(talk(rounds)) for rounds in range(1, 15)]
        errors = [one.error for one in seen]
        assert errors[0] > 0.2
        assert max(errors[FIRST:]) < 0.1
        assert max(one.error for one in steady(seen[FIRST:])) < 0.03
        assert median(errors[FIRST:]) < 0.015
        assert biller.over == []
        assert max(one.billed for one in seen[FIRST:]) > 0.7 * (WINDOW - RESERVE)
        async with fronted(biller, ledger=str(tmp_path)) as front:
            again = await front.ask(talk(14))
            new = await front.ask([user(lines(200, "well"))])
            assert front.sample("edgewise_observed_bills_total", outcome="taken") == 2
    assert json.loads(biller.bodies[-2])["messages"] == json.loads(biller.bodies[-3])["messages"]
    assert (again.error < 0.03, new.error < 0.03) == (True, True)


async def test_a_stream_is_learned_from_once_it_is_edited_and_not_before() -> None:
    with billing(Biller(rate=1.4, preamble=900)) as biller:
        async with fronted(biller) as front:
            seen = [await front.ask(talk(rounds), stream=True) for rounds in range(4, 16)]
            taken = front.sample("edgewise_observed_bills_total", outcome="taken")
            asked = front.sample("edgewise_usage_asked_total", outcome="asked")
    told = [json.loads(body).get("stream_options") for body in biller.bodies]
    first = next(at for at, options in enumerate(told) if options is not None)
    assert told == [None] * first + [{"include_usage": True}] * (len(told) - first)
    assert taken == asked == len(told) - first
    assert all(b'"usage"' not in one.answer.body and b"[DONE]" in one.answer.body for one in seen)
    assert max(one.error for one in steady(seen[first + 1 :])) < 0.08
    assert max(biller.bills[first + 1 :]) <= WINDOW - RESERVE


async def test_a_server_that_puts_its_own_text_in_front_is_found_out_though_the_rules_are_known() -> None:
    with billing(Biller(rate=1.0, preamble=900)) as biller:
        async with fronted(biller) as front:
            seen = [await front.ask(talk(rounds), "gpt-4o") for rounds in range(1, 20)]
    assert [one.billed - one.counted for one in seen[:3]] == [900, 900, 900]
    assert biller.over == []
    assert min(one.billed - one.counted for one in seen[-3:]) == 0


async def test_counts_that_are_right_stay_as_they_are() -> None:
    with billing(Biller(rate=1.0, preamble=0)) as biller:
        async with fronted(biller) as front:
            seen = [await front.ask(talk(rounds), "gpt-4o") for rounds in range(8, 20)]
            assert front.sample("edgewise_observed_bills_total", outcome="agreed") == len(seen)
            assert front.sample("edgewise_observed_bills_total", outcome="taken") is None
    assert {one.error for one in seen} == {0.0}


async def test_what_a_tenant_is_billed_changes_nothing_for_another() -> None:
    with billing(Biller(rate=1.6, preamble=1_000)) as biller:
        async with fronted(biller) as front:
            alone = await front.ask(talk(4))
            learned = [await front.ask(talk(rounds), MODEL) for rounds in range(1, 5)]
            other = await front.proxy.chat({"model": MODEL, "messages": talk(4)}, ("authorization", "Bearer other"))
    assert learned[-1].error < 0.1
    assert f"sent={alone.counted}," in (other.header("edgewise-budget") or "")


@pytest.mark.parametrize("ledger", ["off", "memory"])
async def test_without_a_ledger_the_process_itself_learns(ledger: str) -> None:
    with billing(Biller()) as biller:
        async with fronted(biller, ledger=ledger) as front:
            seen = [await front.ask(talk(rounds)) for rounds in range(1, 10)]
    assert max(one.error for one in steady(seen[FIRST:])) < 0.05
