import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.levels import Level
from policies.recorded import FRONT, Epoch, Made, Node, Recorded, Sent, anew, decoded, encoded, fold

BEGUN = Epoch(0, Level.NONE, "", 3)
FIRST = Epoch(1, Level.HISTORY, "pressure", 9, 4_000)
STUB = Made((b'{"role":"tool","content":"[gone]"}',), "elide", "an older result", elided=True, key=b"k" * 16)
GONE = Made((), "window", "older than the newest 5 rounds")
TOOLS = Sent(b"o" * 16, {b"t": b""}, own=True)
ONE = Node(1, BEGUN, {2: GONE}, TOOLS)

made = st.builds(
    Made,
    raws=st.lists(st.binary(max_size=20), max_size=3).map(tuple),
    step=st.text(max_size=5),
    because=st.text(max_size=5),
    bare=st.binary(max_size=20),
    merged=st.lists(st.tuples(st.text(max_size=5), st.integers(0, 2**40)), max_size=2).map(tuple),
    elided=st.booleans(),
    shortened=st.booleans(),
    key=st.binary(max_size=16),
)
epoch = st.builds(Epoch, st.integers(0, 2**40), st.sampled_from(Level), st.text(max_size=5), st.integers(0, 2**40))
sent = st.builds(Sent, st.binary(max_size=16), st.dictionaries(st.binary(max_size=4), st.binary(max_size=20)))
node = st.builds(
    Node,
    count=st.integers(1, 2**40),
    epoch=epoch,
    made=st.dictionaries(st.integers(FRONT, 2**40), made, max_size=3),
    sent=sent,
    policy=st.text(max_size=5),
    whole=st.booleans(),
    reminded=st.integers(FRONT, 2**40),
    calibration=st.binary(max_size=8),
    since=st.integers(-1, 2**40),
)


@given(node)
def test_a_node_reads_back_as_it_was_written(one: Node) -> None:
    assert decoded(encoded(one)) == one
    assert encoded(decoded(encoded(one))) == encoded(one)


@pytest.mark.parametrize("value", [b"", b"\x00", b"[]", encoded(ONE)[:-1], encoded(ONE).replace(b"window", b"widnow")])
def test_what_is_no_node_is_not_read_as_one(value: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decoded(value)


def test_what_requests_added_adds_up_to_a_state() -> None:
    first = Node(3, BEGUN, {2: STUB}, TOOLS, reminded=2)
    then = Node(5, BEGUN, {4: GONE}, Sent(), whole=False, reminded=4)
    assert fold([first]) == Recorded(3, BEGUN, {2: STUB}, TOOLS, 2)
    assert fold([first, then]) == Recorded(5, BEGUN, {2: STUB, 4: GONE}, TOOLS, 4)
    assert fold([first, then]) == Recorded.nothing().after(first).after(then)


def test_an_epoch_says_everything_anew() -> None:
    first = Node(3, BEGUN, {2: STUB}, TOOLS, reminded=2, calibration=b"old")
    anew = Node(9, FIRST, {2: GONE}, Sent(), calibration=b"new")
    state = fold([first, anew])
    assert state == Recorded(9, FIRST, {2: GONE}, Sent(), FRONT, b"new")


def test_between_epochs_tools_and_calibration_stand() -> None:
    first = Node(3, BEGUN, {2: STUB}, TOOLS, calibration=b"old")
    state = fold([first, Node(5, BEGUN, {}, Sent(), whole=False, calibration=b"learned since")])
    assert state is not None
    assert (state.sent, state.calibration) == (TOOLS, b"old")


def test_without_the_beginning_of_an_epoch_nothing_is_known() -> None:
    later = Node(5, BEGUN, {4: GONE}, Sent(), whole=False)
    assert fold([]) is None
    assert fold([later]) is None
    assert fold([later, Node(9, FIRST, {2: GONE}, Sent())]) == Recorded(9, FIRST, {2: GONE}, Sent())


def test_where_a_node_is_missing_those_that_build_on_it_say_nothing() -> None:
    first = Node(3, BEGUN, {2: STUB}, TOOLS)
    second = Node(5, BEGUN, {4: GONE}, Sent(), whole=False, since=3)
    third = Node(7, BEGUN, {6: GONE}, Sent(), whole=False, since=5)
    assert fold([first, second, third]) == Recorded(7, BEGUN, {2: STUB, 4: GONE, 6: GONE}, TOOLS)
    assert fold([first, third]) is None
    assert fold([third], fold([first, second])) == fold([first, second, third])
    assert fold([third], fold([first])) is None
    assert fold([], fold([first])) == fold([first])
    assert fold([first, third, Node(9, FIRST, {2: GONE}, Sent())]) == Recorded(9, FIRST, {2: GONE}, Sent())


@given(node)
def test_a_state_can_be_said_anew(one: Node) -> None:
    state = Recorded.nothing().after(one)
    assert fold([anew(state)]) == state
    assert Recorded.nothing().after(Node(2, FIRST, {1: STUB}, TOOLS)).after(anew(state)) == state


def test_of_a_new_conversation_nothing_was_decided() -> None:
    assert Recorded.nothing() == Recorded(0, Epoch(0, Level.NONE, "", 0), {}, Sent())
