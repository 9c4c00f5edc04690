"""What each preset does, and does not do, to the same conversations."""

import json
import tomllib
from pathlib import Path

import pytest
from support.prompts import chat, lines, planned, round_of, rows, system, user

from policies.messages import Message
from policies.plan import Level, Plan
from policies.policy import BUDGET, TOP, Policy
from policies.policy_rules import CAPS, SHARES
from proxy.policyfile import load, presets

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "policies.md"
SHIPMENT = json.dumps(
    {
        "id": "SHP-4417",
        "status": "delayed",
        "eta": "2026-12-03",
        "trace": [{"at": f"2026-11-{day:02}", "place": f"hub {day}", "scan": f"S{day:04}"} for day in range(1, 8)],
    },
    indent=1,
)
WHOLE = json.dumps(json.loads(rows(60)), indent=2)


def made(name: str, *results: str, fill: float, last: str = "And now?") -> Plan:
    """A conversation with these results that fills so much of its window; the window is the limit here."""
    messages = [system("Be brief."), user("Find it.")]
    for number, text in enumerate(results):
        messages += round_of(number, text)
    request = chat([*messages, user(last)])
    total = planned(request, 1_000_000).received_total
    return planned(request, int(total / fill), load(name))


def results(plan: Plan) -> list[str]:
    return [Message.of(span.item.raw).text for span in plan.sent if span.is_result]


@pytest.mark.parametrize("name", list(presets()))
def test_every_preset_says_in_front_what_it_is_for(name: str) -> None:
    head = presets()[name].read_text("utf-8").partition("version = 1")[0].splitlines()
    assert len(head) >= 2
    assert all(line.startswith("# ") for line in head)


@pytest.mark.parametrize("name", ["balanced", "lossless"])
def test_below_the_first_threshold_nothing_is_edited(name: str) -> None:
    plan = made(name, SHIPMENT, WHOLE, fill=0.5)
    assert (plan.level, plan.decisions) == (Level.NONE, ())


def test_what_a_policy_leaves_out_is_as_in_the_default() -> None:
    bare = Policy.parse('version = 1\nname = "own"', "own.toml")
    default = load("balanced")
    assert (bare.levels, bare.shares, bare.caps) == (default.levels, default.shares, default.caps)


def test_lossless_keeps_every_value() -> None:
    plan = made("lossless", SHIPMENT, WHOLE, WHOLE, fill=1.1)
    assert plan.refusal is None
    assert plan.sent_total < plan.budget.limit  # type: ignore[operator]  # it has one
    assert {one.step for one in plan.decisions} <= {"minify-json", "tabulate"}
    text = "".join(results(plan))
    assert all(f"TCK-{row:05}" in text and f"team {row % 7}" in text for row in range(60))


def test_lossless_refuses_what_does_not_fit_by_that() -> None:
    plan = made("lossless", *[lines(60)] * 4, fill=1.5)
    assert plan.refusal is not None
    assert not [one for one in plan.decisions if one.outcome == "applied" and one.action != "refuse"]


def test_classic_folds_small_fresh_results_whatever_the_pressure() -> None:
    plan = made("classic", SHIPMENT, fill=0.1)
    (folded,) = results(plan)
    value = json.loads(folded)
    assert (value["id"], value["status"], value["eta"]) == ("SHP-4417", "delayed", "2026-12-03")
    assert len(folded) < len(SHIPMENT) / 2
    assert plan.level is Level.NONE


def test_classic_keeps_the_status_in_an_envelope() -> None:
    (kept,) = results(made("classic", json.dumps({"result": {"status": "delivered", "note": "x" * 300}}), fill=0.1))
    assert json.loads(kept)["result"]["status"] == "delivered"


def test_classic_clips_long_text_to_its_ends() -> None:
    (clipped,) = results(made("classic", lines(400), fill=0.1))
    assert clipped.startswith(lines(400)[:400])
    assert clipped.endswith(lines(400)[-100:])
    assert len(clipped) < 2_500


@pytest.mark.parametrize(
    ("fill", "level"),
    [(0.45, Level.NONE), (0.55, Level.TOOL_RESULTS), (0.75, Level.HISTORY)],
)
def test_classic_enters_its_levels_by_what_is_sent_of_the_whole_window(fill: float, level: Level) -> None:
    messages = [system("Be brief.")]
    for number in range(40):
        messages += [user(f"Question {number}? " + "Please look closely. " * 12), *round_of(number, f"answer {number}")]
    request = chat([*messages, user("And now?")])
    total = planned(request, 1_000_000).received_total
    plan = planned(request, int(total / fill), load("classic"))
    assert plan.level is level


def test_frugal_spends_nothing_on_copies_white_space_and_large_results_however_empty_the_window() -> None:
    plan = made("frugal", WHOLE, lines(40), lines(40), lines(800), fill=0.1)
    assert plan.level is Level.NONE
    applied = {one.step for one in plan.decisions if one.outcome == "applied"}
    assert {"dedupe", "tabulate", "clip"} <= applied
    assert plan.sent_total < plan.received_total / 2
    assert all(span.tokens <= 2_100 for span in plan.sent)


@pytest.mark.parametrize("name", ["balanced", "classic", "frugal"])
def test_every_preset_but_lossless_makes_a_long_conversation_fit(name: str) -> None:
    plan = made(name, *[WHOLE, lines(200)] * 6, fill=4.0)
    assert plan.refusal is None
    assert plan.budget.limit is not None
    assert plan.sent_total <= plan.budget.limit


def test_the_documented_policy_has_every_key_and_is_valid() -> None:
    text = DOCUMENT.read_text("utf-8").partition("```toml\n")[2].partition("```")[0]
    policy = Policy.parse(text, "policies.md")
    assert set(TOP) == set(tomllib.loads(text))
    assert set(tomllib.loads(text)["budget"]) == set(BUDGET)
    assert (policy.shares, policy.levels[Level.TOOL_RESULTS].large) == (SHARES, (1.0, 0.3))
    assert {bucket: policy.caps[bucket] for bucket in CAPS} == CAPS
