"""What was decided for a conversation, found again and kept: the shell's half of `policies.recorded` (DESIGN 6).

A request asks once for what is known of its longest prefix. States that were used lately are held in memory, by the
chain key of the last message that they cover; what is not there is asked of the ledger, which has it from before a
restart, or from another replica. Before a request leaves, what it adds is written down.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Literal

import msgspec

from policies.hidden import Hidden, spliced
from policies.identity import CanonicalHashes, chain, model_family, root
from policies.plan import Plan
from policies.recorded import Epoch, Made, Node, Recorded, decoded, encoded, fold
from policies.recovery import Change, change, recovered
from policies.refs import Refs
from policies.request import ChatRequest, Item, Prompt
from proxy.ledger import Entry, LedgerFault, Store
from proxy.planner import Call
from proxy.sessions import named

STATES = 512  # conversations, or branches of one, whose state is held in memory
HASHED_INLINE = 256 * 1024  # bytes of messages; hashing more for the first time is work
ROLE = b'"assistant"'


class Head(msgspec.Struct, frozen=True, array_like=True):
    """The last request of a conversation that was written down: the canonical hash of each message."""

    hashes: bytes  # 16 bytes each

    def each(self) -> list[bytes]:
        return [self.hashes[at : at + 16] for at in range(0, len(self.hashes), 16)]


Kept = Literal["kept", "again", "without refs"]
"""What came of writing a plan down. `again`: somebody else was first, and the request has to be planned on what stands.
`without refs`: nothing could be written, so that no way back may be promised."""


class Memory:
    """What the process remembers of all conversations. `ledger` None: nothing outlives it, nothing is shared."""

    def __init__(self, ledger: Store | None, changed: Callable[[Change], None]) -> None:
        self.ledger, self.changed = ledger, changed
        self.hashes = CanonicalHashes()
        self._states: OrderedDict[bytes, Recorded] = OrderedDict()
        self._rounds: OrderedDict[bytes, Hidden] = OrderedDict()

    def state(self, links: Sequence[bytes]) -> tuple[int, Recorded | None]:
        """The state of the longest prefix that is held, and its length in messages."""
        for count in range(len(links), 0, -1):
            found = self._states.get(links[count - 1])
            if found is not None:
                self._states.move_to_end(links[count - 1])
                return count, found
        return 0, None

    def hold(self, link: bytes, state: Recorded) -> None:
        self._states[link] = state
        self._states.move_to_end(link)
        while len(self._states) > STATES:
            self._states.popitem(last=False)

    def drop(self, link: bytes) -> None:
        self._states.pop(link, None)

    def hold_round(self, link: bytes, hidden: Hidden) -> None:
        self._rounds[link] = hidden
        while len(self._rounds) > STATES:
            self._rounds.popitem(last=False)

    def round(self, link: bytes) -> Hidden | None:
        return self._rounds.get(link)


class Conversation:
    """One request's place in its conversation. Nothing is computed before it is asked for."""

    def __init__(self, memory: Memory, call: Call, request: ChatRequest) -> None:
        self._memory, self._ledger = memory, memory.ledger
        self._tenant, self._call, self._request = call.tenant, call, request
        self.refs = None if memory.ledger is None else Refs(bytes.fromhex(call.tenant))
        self._root = b""
        self._links: list[bytes] = []
        self._hashes: list[bytes] = []
        self._known: Recorded | None = None
        self._written: list[str] = []

    @property
    def store(self) -> Store | None:
        return self._ledger

    @property
    def tenant(self) -> str:
        return self._tenant

    @property
    def links(self) -> list[bytes]:
        """The chain keys of its messages; empty until something was asked."""
        return self._links

    @property
    def id(self) -> str:
        """Of the conversation in the ledger: how it begins, up to its first message that instructs nobody."""
        return self._links[min(1, len(self._links) - 1)].hex() if self._links else ""

    @property
    def unsettled(self) -> bool:
        """Something was written down that has to be confirmed, or taken back."""
        return bool(self._written)

    async def recall(self, prompt: Prompt) -> Recorded | None:
        """What is known of the longest known prefix; nothing of a conversation that is new. The same for the same
        request, however often it is asked."""
        if self._known is None and prompt.messages:
            await self._place(prompt)
            self._known = await self._find(prompt)
        return self._known

    async def keep(self, plan: Plan) -> Kept:
        """Write down what the plan adds, before it is sent."""
        state, node = self._known, plan.record
        if state is None:
            return "without refs" if plan.originals else "kept"
        if node is not None:
            others = await self._add(node, plan.originals)
            if others is None and plan.originals:
                return "without refs"
            key = self._links[-1].hex()
            if others and key in others:
                self._known = state.after(decoded(others[key]))
                return "again"
            self._written = [] if others is None else [key]
            state = state.after(node)
        self._memory.hold(self._links[-1], state)
        return "kept"

    async def _add(self, node: Node, originals: Mapping[str, bytes]) -> dict[str, bytes] | None:
        """What stands in the ledger already; None where nothing could be written."""
        if self._ledger is None:
            return None
        entries = [Entry("original", ref, text, self.id) for ref, text in originals.items()]
        entries.append(Entry("node", self._links[-1].hex(), encoded(node), self.id))
        try:
            return await self._ledger.add(self._tenant, entries)
        except LedgerFault:  # counted where it happened; the process itself still remembers
            return None

    async def settle(self, *, sent: bool) -> None:
        """The upstream answered: `sent` with a 2xx. What nobody got an answer for was not decided."""
        if not self._written:
            return
        if not sent:
            self._memory.drop(self._links[-1])
        with suppress(LedgerFault):  # counted where it happened; what was written stands unconfirmed
            await self._settle(self._ledger, sent=sent)

    async def _settle(self, ledger: Store | None, *, sent: bool) -> None:
        if ledger is None:
            return
        if not sent:
            await ledger.withdraw(self._tenant, "node", self._written)
            return
        await ledger.confirm(self._tenant, "node", self._written)
        value = msgspec.msgpack.encode(Head(b"".join(self._hashes)))
        await ledger.put(self._tenant, Entry("head", self._head_key(), value, self.id))

    async def record(self, hidden: Hidden) -> None:
        """Rounds that the client does not see, in the answer to this request. Raises LedgerFault."""
        self._memory.hold_round(self._links[-1], hidden)
        if self._ledger is not None:
            key = self._links[-1].hex()
            await self._ledger.add(self._tenant, [Entry("round", key, hidden.encode(), self.id)])
            await self._ledger.confirm(self._tenant, "round", [key])

    async def _place(self, prompt: Prompt) -> None:
        size = sum(len(item.raw) for item in prompt.messages)
        hashes = self._memory.hashes
        if size > HASHED_INLINE:
            self._hashes = await asyncio.to_thread(hashes.of, prompt.messages)
        else:
            self._hashes = hashes.of(prompt.messages)
        self._root = root(self._tenant, self._call.upstream.name, model_family(self._request.model))
        self._links = chain(self._root, self._hashes)

    async def _find(self, prompt: Prompt) -> Recorded:
        covered, state = self._memory.state(self._links)
        if covered < len(self._links):
            state = await self._further(covered, state)
        last = max((at for at, item in enumerate(prompt.messages) if ROLE in item.raw), default=0)
        if covered < last and (state is None or state.count < last):
            state = await self._recovered() or state
        state = state or Recorded.nothing()
        return await self._with_rounds(prompt, state) if state.sent.own else state

    async def _further(self, covered: int, state: Recorded | None) -> Recorded | None:
        """What the ledger has of the links that memory does not cover."""
        if self._ledger is None:
            return state
        keys = [link.hex() for link in self._links[covered:]]
        try:
            found = await self._ledger.get(self._tenant, "node", keys)
        except LedgerFault:
            return state
        nodes = [decoded(found[key]) for key in keys if key in found]
        if state is None:
            return fold(nodes)
        for node in nodes:
            state = state.after(node)
        return state

    async def _recovered(self) -> Recorded | None:
        """Where the client changed what it sent before: what was decided for those messages that are still there, in a
        declared epoch."""
        if self._ledger is None or len(self._links) < 2:
            return None
        try:
            key = self._head_key()
            value = (await self._ledger.get(self._tenant, "head", [key])).get(key)
            if value is None:
                return None
            old = _head(value).each()
            if old == self._hashes[: len(old)]:
                return None
            links = [link.hex() for link in chain(self._root, old)]
            found = await self._ledger.get(self._tenant, "node", links)
        except LedgerFault:
            return None
        state = fold(decoded(found[link]) for link in links if link in found)
        pairs = recovered(dict(enumerate(old)), self._hashes)
        if state is None or not pairs:
            return None
        self._memory.changed(change(old, self._hashes, pairs))
        made = {new: state.made[then] for new, then in pairs.items() if then in state.made}
        epoch = Epoch(state.epoch.number + 1, state.epoch.level, "client", len(self._links))
        return Recorded(max(pairs) + 1, epoch, made, state.sent, moved=True)

    async def _with_rounds(self, prompt: Prompt, state: Recorded) -> Recorded:
        """The state with hidden rounds in front of, or inside, the assistant's messages that came since."""
        made = dict(state.made)
        asked = {at: self._links[at - 1] for at in range(max(1, state.count), len(prompt.messages))}
        asked = {at: link for at, link in asked.items() if ROLE in prompt.messages[at].raw}
        for at, hidden in (await self._rounds(asked)).items():
            raws = spliced(hidden, prompt.messages[at].raw)
            if raws is not None:
                made[at] = _hidden(raws, prompt.messages[at])
        return state if len(made) == len(state.made) else msgspec.structs.replace(state, made=made)

    async def _rounds(self, asked: Mapping[int, bytes]) -> dict[int, Hidden]:
        found = {at: self._memory.round(link) for at, link in asked.items()}
        missing = {link.hex(): at for at, link in asked.items() if found[at] is None}
        if missing and self._ledger is not None:
            try:
                stored = await self._ledger.get(self._tenant, "round", list(missing))
            except LedgerFault:
                stored = {}
            found.update({missing[key]: Hidden.decode(value) for key, value in stored.items()})
        return {at: hidden for at, hidden in found.items() if hidden is not None}

    def _head_key(self) -> str:
        """By the name that the client gave, else by its first message behind the instructions."""
        label = named(self._request, self._call).encode("utf-8", "surrogatepass") or b"".join(self._hashes[1:2])
        return chain(self._root, [label])[0].hex()


def _hidden(raws: tuple[bytes, ...], item: Item) -> Made:
    return Made(raws, "read-back", "rounds in which the model read originals back", key=item.key, hidden=True)


def _head(value: bytes) -> Head:
    return msgspec.msgpack.decode(value, type=Head)
