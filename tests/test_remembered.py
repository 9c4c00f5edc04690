"""What the process holds of conversations, and what it keeps alive in the ledger."""

from collections.abc import Sequence

import msgspec
import pytest
from support.ledgers import ALICE, Clock
from support.prompts import Message, calls, chat, planned, result, said, system, user

from policies.hidden import Hidden
from policies.levels import Level
from policies.plan import Plan
from policies.recorded import UNSAID, Epoch, Made, Node, Recorded, Sent
from policies.refs import Refs
from proxy.chained import Chained
from proxy.ledger import Entry, Limits
from proxy.ledger.memory import MemoryLedger
from proxy.planner import Call
from proxy.recall import Conversation, Kept
from proxy.remembered import ROUNDS_BYTES, STATES, STATES_BYTES, Claims, Held, Memory
from proxy.routing import Upstream

CALL = Call("ew_1", (), ALICE, Upstream("api.example", "http://a.test/v1"))
TEXT = "pressure 7 bar"
REF = Refs(bytes.fromhex(ALICE)).ref_of(TEXT)
TTL = 1_000.0  # seconds
STUB = Made((f'{{"role":"tool","tool_call_id":"c","content":"[gone, {REF}]"}}'.encode(),), "elide", "old", elided=True)
TALK = [user("Look."), calls(("c", "read")), result("c", TEXT), said("Well?"), user("Go on.")]
EPOCH = Epoch(1, Level.TOOL_RESULTS, "pressure", 5)


class Desk:
    """A process with a ledger, which lost nothing but what expired."""

    def __init__(self, ledger: MemoryLedger | None = None) -> None:
        self.clock = Clock()
        self.ledger = ledger or MemoryLedger(Limits(ttl=TTL), self.clock)
        self.memory = Memory(self.ledger, lambda _: None)

    async def turn(self, messages: Sequence[Message], at: int | None = None) -> tuple[Kept, Recorded | None]:
        """A request that is answered, some time after the one before. With `at` something is decided: that a stub
        stands for the message there."""
        self.clock.now += TTL * 0.6
        request = chat(list(messages))
        conversation = Conversation(self.memory, CALL, request)
        known = await conversation.recall(request.prompt)
        kept = await conversation.keep(decided(messages, known, at))
        conversation.taken = True
        await conversation.settle()
        return kept, known

    async def links(self, messages: Sequence[Message]) -> Sequence[bytes]:
        chained = Chained(self.memory.hashes, CALL, chat(list(messages)))
        await chained.place()
        return chained.links

    async def original(self) -> bytes | None:
        return (await self.ledger.get(ALICE, "original", [REF])).get(REF)

    async def damage(self, messages: Sequence[Message]) -> None:
        """The node that was written when these were all."""
        conversation = Conversation(self.memory, CALL, chat(list(messages)))
        await conversation.recall(chat(list(messages)).prompt)
        await self.ledger.put(ALICE, Entry("node", conversation.links[-1].hex(), b"damaged", conversation.id))


def decided(messages: Sequence[Message], known: Recorded | None, at: int | None) -> Plan:
    """A plan by which a stub is to stand for the message `at`, or which adds nothing."""
    made = planned(chat(list(messages)), 100_000)
    if at is None:
        return made
    whole = known is None or not known.count or known.moved
    since = UNSAID if known is None or whole else known.count
    node = Node(len(messages), EPOCH, {at: STUB}, Sent(own=True), whole=whole, since=since)
    return msgspec.structs.replace(made, record=node, originals={REF: TEXT.encode()})


@pytest.fixture
async def desk() -> Desk:
    made = Desk()
    await made.ledger.open()
    return made


async def test_originals_live_as_long_as_their_conversation_goes_on_though_nothing_new_is_decided(desk: Desk) -> None:
    assert await desk.turn(TALK, at=2) == ("kept", Recorded.nothing())
    messages = list(TALK)
    for _ in range(5):
        messages += [said("And?"), user("On.")]
        _, known = await desk.turn(messages)
        assert known is not None
        assert known.made == {2: STUB}
    assert await desk.original() == TEXT.encode()
    desk.clock.now += TTL * 1.2
    assert await desk.original() is None


async def test_what_expired_while_it_was_held_is_stored_again(desk: Desk) -> None:
    await desk.turn(TALK, at=2)
    desk.clock.now += TTL * 2
    assert await desk.original() is None
    _, known = await desk.turn([*TALK, said("And?"), user("On.")])
    assert known is not None
    assert known.made == {2: STUB}
    assert await desk.original() == TEXT.encode()


def crowded(memory: Memory, *, but: int) -> None:
    """As many large states as fit in all, less so many."""
    raw = b"x" * (STATES_BYTES // 8)
    for number in range(8 - but):
        state = msgspec.structs.replace(Recorded.nothing(), made={0: Made((raw,), "clip", "long")})
        memory.hold(b"other %d" % number, Held.of(state))


@pytest.mark.parametrize(("but", "expected"), [(0, 0), (1, len(TALK))])
async def test_what_other_conversations_push_out_of_memory_is_asked_of_the_ledger(
    desk: Desk, but: int, expected: int
) -> None:
    await desk.turn(TALK, at=2)
    links = await desk.links(TALK)
    assert desk.memory.state(links)[0] == len(TALK)
    crowded(desk.memory, but=but)
    assert desk.memory.state(links)[0] == expected
    messages = [*TALK, said("And?"), user("On.")]
    _, known = await desk.turn(messages)
    assert known is not None
    assert known.made == {2: STUB}
    assert desk.memory.state(await desk.links(messages))[0] == len(messages)


async def test_hidden_rounds_that_others_push_out_are_asked_of_the_ledger(desk: Desk) -> None:
    asked, hidden = (
        [user("Look.")],
        Hidden(before=(b'{"role":"user","content":"read"}',), visible="Seen.", text="Seen."),
    )
    conversation = Conversation(desk.memory, CALL, chat(asked))
    await conversation.recall(chat(asked).prompt)
    await conversation.record(hidden)
    link = (await desk.links(asked))[-1]
    for number in range(8):
        assert desk.memory.round(link) == hidden
        desk.memory.hold_round(b"%d" % number, Hidden(after=(b"x" * (ROUNDS_BYTES // 8),)))
    assert desk.memory.round(link) is not None
    for number in range(8):
        desk.memory.hold_round(b"%d more" % number, Hidden(after=(b"x" * (ROUNDS_BYTES // 8),)))
    assert desk.memory.round(link) is None
    stored = await desk.ledger.get(ALICE, "round", [link.hex()])
    assert Hidden.decode(stored[link.hex()]) == hidden
    messages = [*asked, said("Seen."), user("On.")]
    state = Recorded(1, EPOCH, {}, Sent(own=True))
    desk.memory.hold(link, Held.of(state))
    known = await Conversation(desk.memory, CALL, request := chat(messages)).recall(request.prompt)
    assert known is not None
    assert known.made[1].raws[0] == hidden.before[0]


async def test_a_state_that_nothing_was_added_to_is_held_once_however_many_requests_go_on_from_it(desk: Desk) -> None:
    await desk.turn(TALK, at=2)
    size, messages = desk.memory.size, list(TALK)
    assert size == len(STUB.raws[0])
    for _ in range(5):
        messages += [said("And?"), user("On.")]
        await desk.turn(messages)
    assert desk.memory.size == size
    await desk.turn([*messages, said("And?"), result("c", TEXT)], at=len(messages) + 1)
    assert desk.memory.size == 3 * size


async def test_a_conversation_whose_originals_are_nowhere_begins_anew(desk: Desk) -> None:
    other = [user("Look."), calls(("c", "read")), result("c", "no more than this"), said("Well?"), user("Go on.")]
    await desk.turn(other, at=0)
    desk.clock.now += TTL * 2
    assert await desk.turn([*other, said("And?"), user("On.")]) == ("kept", Recorded.nothing())


async def test_a_conversation_that_the_client_began_anew_keeps_the_originals_itself(desk: Desk) -> None:
    await desk.turn([system("It is 10:00."), *TALK], at=3)
    messages = [system("It is 10:01."), *TALK, said("And?"), user("On.")]
    _, known = await desk.turn(messages, at=3)
    assert known is not None
    assert known.moved
    assert known.made == {3: STUB}
    for _ in range(3):
        messages += [said("And?"), user("On.")]
        await desk.turn(messages)
    assert len(await desk.ledger.conversations(ALICE)) == 1
    assert await desk.original() == TEXT.encode()


async def test_who_comes_second_goes_on_from_what_the_first_decided(desk: Desk) -> None:
    request = chat(TALK)
    second = Conversation(desk.memory, CALL, request)
    assert await second.recall(request.prompt) == Recorded.nothing()
    await Desk(desk.ledger).turn(TALK, at=2)
    assert await second.keep(decided(TALK, Recorded.nothing(), 4)) == "again"
    stands = await second.recall(request.prompt)
    assert stands is not None
    assert stands.made == {2: STUB}
    assert await second.keep(decided(TALK, stands, None)) == "kept"
    assert not second.unsettled


async def test_what_builds_on_a_damaged_node_counts_as_unknown_and_is_written_anew(desk: Desk) -> None:
    longer = [*TALK, said("And?"), result("d", TEXT)]
    longest = [*longer, said("And?"), result("e", TEXT)]
    await desk.turn(TALK, at=2)
    await Desk(desk.ledger).turn(longer, at=6)
    await Desk(desk.ledger).turn(longest, at=8)
    last = [*longest, user("On.")]
    assert (await Desk(desk.ledger).turn(last))[1] == Recorded(9, EPOCH, dict.fromkeys((2, 6, 8), STUB), Sent(own=True))
    await desk.damage(longer)
    assert (await Desk(desk.ledger).turn(last))[1] == Recorded.nothing()
    assert (await desk.turn(last))[1] == Recorded(5, EPOCH, {2: STUB}, Sent(own=True))
    assert (await Desk(desk.ledger).turn(last))[1] == Recorded(5, EPOCH, {2: STUB}, Sent(own=True))


async def test_a_damaged_entry_is_replaced_by_the_next_in_its_place(desk: Desk) -> None:
    await desk.turn(TALK, at=2)
    await desk.damage(TALK)
    await desk.ledger.put(ALICE, Entry("original", REF, b"damaged", ""))
    assert await Desk(desk.ledger).turn(TALK, at=2) == ("kept", Recorded.nothing())
    assert await Desk(desk.ledger).turn(TALK) == ("kept", Recorded(5, EPOCH, {2: STUB}, Sent(own=True)))
    assert await desk.original() == TEXT.encode()


def test_a_node_is_withdrawn_by_the_last_who_leaves_it_as_often_as_it_was_added() -> None:
    claims = Claims()
    claims.added(b"one")
    claims.added(b"one")
    assert claims.join([b"one", b"two"]) == [b"one"]
    assert [claims.leave(b"one") for _ in range(4)] == [0, 0, 2, 0]
    assert claims.join([b"one"]) == []


def test_a_node_that_was_confirmed_is_withdrawn_by_nobody() -> None:
    claims = Claims()
    claims.added(b"one")
    assert claims.join([b"one"]) == [b"one"]
    claims.confirm(b"one")
    assert claims.leave(b"one") == 0


def test_the_states_that_were_used_last_are_held() -> None:
    memory = Memory(None, lambda _: None)
    links = [b"%d" % number for number in range(STATES + 1)]
    memory.hold(links[0], Held(Recorded.nothing(), b"first"))
    for link in links[1:-1]:
        memory.hold(link, Held(Recorded.nothing()))
    assert memory.state(links[:1]) == (1, Held(Recorded.nothing(), b"first"))
    memory.hold(links[-1], Held(Recorded.nothing()))
    assert memory.state(links[:2])[0] == 1
    assert memory.state(links[1:2]) == (0, None)
    memory.drop(links[0])
    assert memory.state(links[:1]) == (0, None)
