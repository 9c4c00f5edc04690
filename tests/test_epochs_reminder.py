"""The operator's text in a conversation: where it was put it stays, until an epoch (DESIGN 5, Placement)."""

from itertools import pairwise

from support.prompts import body, lines, said, system, user
from support.talking import LOOP, RULE, reminded, reminding, sent, talk, turns
from support.watching import Watcher

from policies.budget import Budget


def test_a_reminder_stays_where_it_was_put_and_stands_anew_when_it_fell_behind() -> None:
    sender = talk(reminding(every=1_000), limit=100_000)
    places = [reminded(sender.send(request)[1]) for request in turns(LOOP[:18])]
    assert places[0] == [0, 1]
    assert places[-1] == [0, 1, 7, 13]
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(places))


def test_at_an_epoch_old_copies_of_a_reminder_go() -> None:
    sender = talk(reminding(every=1_000))
    for request in turns(LOOP):
        _, made = sender.send(request)
        copies = [raw.count(RULE.encode()) for raw in sent(made)]
        assert max(copies) == 1
        assert RULE.encode() in sent(made)[0]
        if made.opened:
            assert len(reminded(made)) == 2
            assert reminded(made)[-1] == len(sent(made)) - 1


def test_where_the_assistant_speaks_last_no_reminder_is_put_into_what_was_sent() -> None:
    watcher = Watcher(talk(reminding(every=0), limit=100_000), once=(RULE,))
    watcher.send(body([user("a")]))
    made = watcher.send(body([user("a"), said("b, and")]))
    assert reminded(made) == [0, 1]  # the head, and where it stood
    assert watcher.problems == []


def test_a_reminder_for_which_there_was_no_room_is_put_in_later() -> None:
    texts = [system("Be brief."), user(lines(20))]
    request = body(texts)
    sender = talk(reminding(every=0), limit=100_000)
    total = sender.send(request)[1].received_total
    sender = talk(reminding(every=0), limit=total + 3)
    _, made = sender.send(request)
    assert (made.record, reminded(made)) == (None, [])
    sender.budget = Budget(total + 200)
    _, made = sender.send(body([*texts, said("b"), user("c")]))
    assert reminded(made) == [0, 3]
    assert made.opened  # the head changes what was sent
