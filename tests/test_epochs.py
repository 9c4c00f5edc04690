"""Between epochs a conversation only grows (DESIGN 1.5): whole conversations, request by request, through the core."""

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.journeys import Journey
from support.prompts import body, lines, result, round_of, rows, said, system, tool, user
from support.prompts import calls as calling
from support.talking import LIMIT, LOOP, REFS, RULE, reminded, reminding, sent, talk, turns
from support.talks import Memory
from support.watching import Watcher

from policies.budget import Budget
from policies.needs import Answer, Need, Recall
from policies.plan import ORDER, Action, Level
from policies.policy import LevelRule, Policy
from policies.pressing import PRESSED
from policies.recorded import Epoch, Recorded, decoded, fold
from policies.steps.elide import ElideResults
from proxy.policyfile import load

POLICIES = {
    "balanced": load("balanced"),
    "balanced with a reminder": reminding(),
    "balanced with a reminder each time": reminding(every=0),
    "frugal with a reminder": reminding("frugal", 500),
    "classic": load("classic"),
    "lossless": load("lossless"),
}


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32), st.sampled_from(list(POLICIES)), st.booleans())
def test_whatever_a_client_does_what_was_sent_stands_until_an_epoch(seed: int, name: str, ways_back: bool) -> None:
    journey = Journey.of(seed)
    sender = talk(POLICIES[name], journey.window)
    sender.refs = REFS if ways_back else None
    watcher = Watcher(sender, once=(RULE,))
    for request in journey.bodies:
        watcher.send(request)
    assert watcher.problems == []


@pytest.mark.parametrize("name", POLICIES)
def test_a_long_loop_has_few_epochs_and_keeps_its_task_in_sight(name: str) -> None:
    watcher = Watcher(talk(POLICIES[name]), once=(RULE,))
    made = [watcher.send(request) for request in turns(LOOP)]
    answered = [one for one in made if one.refusal is None]
    assert watcher.problems == []
    assert watcher.opened <= (12 if name == "classic" else 8)
    pressed = [one for one in answered if one.opened and one.epoch is not None and one.epoch.because in PRESSED]
    assert all(one.level in ORDER for one in pressed)  # none only takes text of ours out to put it in again
    assert all(b'"task' in sent(one)[1] for one in answered)
    assert (watcher.refused == 0) == (name != "lossless")


def test_a_conversation_is_read_from_its_nodes_alone_and_gives_the_same_bytes_in_another_process(
    tmp_path: Path,
) -> None:
    first, requests = talk(reminding()), list(turns(LOOP))
    told = [first.send(request)[1] for request in requests]
    cut = 30
    early = Memory(dict(list(first.memory.nodes.items())[: sum(one.record is not None for one in told[:cut])]))
    (tmp_path / "nodes").write_bytes(msgspec.msgpack.encode(early.nodes))
    (tmp_path / "requests").write_bytes(msgspec.msgpack.encode(requests[cut:]))
    script = (
        "import sys, msgspec; from hashlib import sha256; from pathlib import Path\n"
        "from support.talking import reminding, sent, talk; from support.talks import Memory\n"
        "at = Path(sys.argv[1]); read = msgspec.msgpack.decode\n"
        "memory = Memory(read((at / 'nodes').read_bytes(), type=dict[bytes, bytes]))\n"
        "other = talk(reminding(), memory=memory)\n"
        "for body in read((at / 'requests').read_bytes(), type=list[bytes]):\n"
        "    print(sha256(b'\\0'.join(sent(other.send(body)[1]))).hexdigest())\n"
    )
    here = Path(__file__).parent
    env = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join([str(here), *sys.path])}
    command = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [sha256(b"\0".join(sent(one))).hexdigest() for one in told[cut:]]


def test_a_lost_ledger_costs_one_epoch_at_most() -> None:
    requests = list(turns(LOOP))
    watcher = Watcher(talk())
    opened = []
    for number, request in enumerate(requests):
        if number == 25:
            watcher.talk.memory.nodes.clear()
        opened.append(watcher.send(request).opened)
    kept = Watcher(talk())
    for request in requests:
        kept.send(request)
    assert watcher.problems == []
    assert opened[25]
    assert watcher.opened <= kept.opened + 1


def test_the_same_request_is_sent_as_it_was() -> None:
    sender = talk(reminding(every=0))
    for request in turns(LOOP[:40]):
        _, once = sender.send(request)
        _, again = sender.send(request)
        assert sent(again) == sent(once)
        assert (again.record, again.opened) == (None, False)


def test_a_request_that_was_sent_under_a_wider_limit_is_made_to_fit_in_an_epoch_that_is_not_recorded() -> None:
    sender = talk(reminding(every=0))
    *_, last = list(turns(LOOP[:26]))
    assert sender.send(last)[1].record is not None
    known = sender.memory.nodes.copy()
    sender.budget = Budget(LIMIT // 2)
    sender.refs = REFS
    _, made = sender.send(last)
    assert made.sent_total <= LIMIT // 2
    assert (made.opened, made.record, made.originals) == (True, None, {})
    assert sender.memory.nodes == known


def test_what_was_decided_under_a_narrower_limit_stands_under_a_wider_one() -> None:
    results = round_of(0, rows(400))  # 9,200 tokens that can be said in a table
    sender = talk(limit=16_000)
    _, narrow = sender.send(body([user("task"), *results]))
    assert narrow.level is Level.NONE
    assert narrow.record is not None
    sender.budget = Budget(20_000)
    _, wide = sender.send(body([user("task"), *results, said("done"), user("thanks")]))
    assert wide.received_total < 0.5 * 20_000
    assert sent(wide)[: len(sent(narrow))] == sent(narrow)


def test_a_branch_goes_its_own_way() -> None:
    sender, requests = talk(), list(turns(LOOP))
    watcher = Watcher(sender)
    for request in requests[:20]:
        watcher.send(request)
    other = [one for n in range(30) for one in round_of(50 + n, lines(30, f"vessel {n}"))]
    for request in turns([*LOOP[:22], *other], first=24):
        watcher.send(request)
    for request in requests[20:]:
        watcher.send(request)
    assert watcher.problems == []


def test_an_epoch_that_would_free_too_little_is_given_up() -> None:
    texts = [one for n in range(6) for one in (user(lines(60, f"report {n}")), said("noted"))]
    request = body([*texts[:2], *round_of(0, lines(20)), *texts[2:], user("and")])
    policy = Policy("own", (ElideResults(keep_rounds=(0,)),), dict.fromkeys(ORDER, LevelRule(0.9, 0.6)))
    total = talk(policy, 100_000).send(request)[1].received_total
    _, made = talk(policy, total + 50).send(request)
    assert (made.opened, made.record, made.level, made.decisions) == (False, None, Level.NONE, ())
    assert made.sent == made.received
    _, forced = talk(policy, total - 50).send(request)
    assert (forced.opened, forced.sent_total < total - 50) == (True, True)
    assert forced.epoch is not None
    assert (forced.epoch.because, forced.epoch.number) == ("forced", 1)


def test_new_tools_of_the_client_open_an_epoch_of_its_own() -> None:
    sender, tools = talk(reminding()), [tool(f"tool_{n}", lines(3)) for n in range(20)]
    requests = list(turns(LOOP, tools=tools))
    _, before = [sender.send(request) for request in requests[:18]][-1]
    assert before.epoch is not None
    more = list(turns(LOOP, tools=[*tools, tool("another")]))[18]
    _, made = sender.send(more)
    assert made.opened
    assert made.epoch is not None
    assert (made.epoch.because, made.epoch.number, made.level) == (
        "client",
        before.epoch.number + 1,
        before.epoch.level,
    )
    assert b"another" in made.prompt.tools[-1].raw
    assert len(reminded(made)) == 2
    again = sender.send(list(turns(LOOP, tools=[*tools, tool("another")]))[19])[1]
    assert not again.opened


class Told(Memory):
    """Remembers what it is told to."""

    def __init__(self, state: Recorded) -> None:
        super().__init__()
        self.state = state

    def answer(self, need: Need) -> Answer:
        return self.state if isinstance(need, Recall) else None


def test_a_client_that_changed_its_past_gets_what_still_applies_in_a_declared_epoch() -> None:
    sender, requests = talk(reminding()), list(turns(LOOP))
    _, before = [sender.send(request) for request in requests[:21]][-1]
    state = fold(map(decoded, sender.memory.nodes.values()))
    assert state is not None
    epoch = Epoch(state.epoch.number + 1, state.epoch.level, "client", 44)
    changed = talk(reminding(), memory=Told(msgspec.structs.replace(state, moved=True, epoch=epoch)))
    _, made = changed.send(list(turns([system("Be very brief."), *LOOP[1:]]))[21])
    assert (made.opened, made.epoch, made.level) == (True, epoch, before.level)
    assert made.record is not None
    assert made.record.whole
    assert reminded(made) == [0, len(sent(made)) - 1]
    assert before.sent_total <= made.sent_total <= LIMIT


def test_an_invalid_past_is_repaired_when_something_is_edited_and_that_is_declared() -> None:
    lost = {"role": "tool", "tool_call_id": "lost", "content": "of a call that nobody made"}
    past = [user("task"), lost, said("hm"), user("go on")]
    sender = talk(limit=16_000)
    watcher = Watcher(sender)
    assert watcher.send(body(past)).record is None
    made = watcher.send(body([*past, *round_of(0, rows(400))]))
    assert "a result without a call before it" in [one.because for one in made.decisions]
    assert made.opened
    assert made.epoch is not None
    assert made.epoch.number == 0
    assert watcher.send(body([*past, *round_of(0, rows(400)), said("so"), user("next")])).opened is False
    assert watcher.problems == []


def test_a_result_that_may_have_been_sent_already_is_not_touched_at_first_sight() -> None:
    loop = [user("task"), *round_of(0, rows(400))]
    watcher = Watcher(talk(limit=20_000))
    watcher.send(body(loop))
    made = watcher.send(body([*loop, user(lines(130))]))
    assert made.received_total > 0.5 * 20_000
    assert made.record is None
    assert watcher.problems == []


@pytest.mark.parametrize("text", [rows(300), lines(700)], ids=["a table", "a text that is hardly too long"])
def test_a_new_result_is_read_as_it_came_where_not_much_is_to_come(text: str) -> None:
    """Up to 8,000 tokens, and a tenth more where something would be cut."""
    loop = [user("task"), *[one for n in range(40) for one in round_of(n, lines(60, f"pump {n}"))]]
    sender, newest = talk(limit=30_000), round_of(50, text)
    _, before = sender.send(body(loop))
    _, made = sender.send(body([*loop, *newest]))
    assert before.opened
    assert not made.opened
    assert sent(made) == [*sent(before), *[json.dumps(one).encode() for one in newest]]


def test_a_call_whose_result_may_still_come_is_answered_for_now_and_that_is_not_remembered() -> None:
    asked = calling(("a", "read"), ("b", "read"))
    sender = talk(limit=16_000)
    open_ = [user("task"), *round_of(0, rows(400)), asked, result("a", "1")]
    assert sender.send(body(open_[:3]))[1].record is not None
    _, made = sender.send(body(open_))
    assert b"No result was recorded" in sent(made)[-1]
    _, same = sender.send(body(open_))
    assert sent(same) == sent(made)
    _, then = sender.send(body([*open_, result("b", "2")]))
    assert sent(then)[-1] == json.dumps(result("b", "2")).encode()
    assert sent(then)[:-1] == sent(made)[:-1]


def test_where_the_window_is_not_known_what_was_decided_is_sent_again() -> None:
    sender = talk()
    *_, late, last = list(turns(LOOP[:34]))
    _, before = sender.send(late)
    assert before.opened
    sender.budget = Budget(None)
    _, made = sender.send(last)
    assert made.level is Level.UNKNOWN
    assert sent(made)[: len(sent(before))] == sent(before)
    assert {one.action for one in made.decisions} == {Action.REPLAY}
