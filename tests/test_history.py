from support.plans import SECRET, hopeless, long, plan, record, small

from proxy.history import History
from proxy.objects import record_object


def test_a_tenant_sees_its_own_requests_and_no_others() -> None:
    history = History()
    history.add(record(plan(small()), "ew_1", tenant="mine"))
    history.add(record(plan(small()), "ew_2", tenant="theirs"))
    assert history.get("mine", "ew_2") is None
    assert history.get("theirs", "ew_2") is not None
    assert [found.about.id for found in history.latest("mine", 10)] == ["ew_1"]


def test_the_newest_come_first_and_the_oldest_are_forgotten() -> None:
    history = History(kept=3)
    for number in range(5):
        history.add(record(plan(small()), f"ew_{number}"))
    assert [found.about.id for found in history.latest("t1", 2)] == ["ew_4", "ew_3"]
    assert history.get("t1", "ew_1") is None


def test_spans_are_bounded_but_the_last_request_always_stays() -> None:
    history = History(spans=30)
    for number in range(3):
        history.add(record(plan(long()), f"ew_{number}"))
    assert [found.about.id for found in history.latest("t1", 10)] == ["ew_2"]
    history.add(record(plan(small()), "ew_3"))
    assert len(history.latest("t1", 10)) == 2


def test_an_id_that_comes_again_replaces_the_first() -> None:
    history = History(spans=4)
    for _ in range(3):
        history.add(record(plan(small()), "ew_1"))
    history.add(record(plan(small()), "ew_2"))
    assert len(history.latest("t1", 10)) == 1


def test_nothing_of_a_prompt_is_kept() -> None:
    for request in (small(), long(), hopeless()):
        assert SECRET.encode() not in record_object(record(plan(request)))
        assert "valve" not in repr(record(plan(request)))
