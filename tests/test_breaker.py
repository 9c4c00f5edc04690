import pytest

from proxy.breaker import LONGEST_PAUSE, PATIENCE, PAUSE, Breaker


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def broken() -> tuple[Breaker, Clock]:
    clock = Clock()
    breaker = Breaker(clock)
    for _ in range(PATIENCE):
        assert breaker.admits(5)
        breaker.failed()
    return breaker, clock


def test_after_so_many_failures_in_a_row_nothing_is_asked_for_a_while() -> None:
    breaker, clock = broken()
    assert not breaker.admits(5)
    clock.now = PAUSE
    assert breaker.admits(5)


def test_a_success_between_failures_begins_the_count_anew() -> None:
    breaker = Breaker(Clock())
    for _ in range(PATIENCE - 1):
        breaker.failed()
    breaker.succeeded()
    breaker.failed()
    assert breaker.admits(5)


def test_after_the_pause_one_question_tries_and_the_others_wait_for_what_it_comes_to() -> None:
    breaker, clock = broken()
    clock.now = PAUSE
    assert [breaker.admits(5), breaker.admits(5)] == [True, False]
    breaker.succeeded()
    assert breaker.admits(5)


@pytest.mark.parametrize(("more", "pause"), [(1, 2 * PAUSE), (2, 4 * PAUSE), (9, LONGEST_PAUSE), (5000, LONGEST_PAUSE)])
def test_each_further_failure_doubles_the_pause_up_to_a_bound(more: int, pause: float) -> None:
    breaker, clock = broken()
    for _ in range(more):
        breaker.failed()
    clock.now = pause - 1
    assert not breaker.admits(5)
    clock.now = pause
    assert breaker.admits(5)
