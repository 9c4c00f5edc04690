"""What was decided for a conversation, found again and kept: the shell's half of `policies.recorded` (DESIGN 6).

A request asks once for what is known of its longest prefix. States that were used lately are held in memory, by the
chain key of the last message that they cover; what is not there is asked of the ledger, which has it from before a
restart, or from another replica. Before a request leaves, what it adds is written down; and where the ledger lost what
was written before, or could not take it, that is written again.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Literal

import msgspec

from policies.hidden import Hidden, spliced
from policies.identity import chain
from policies.plan import Plan
from policies.recorded import Epoch, Made, Node, Recorded, anew, decoded, encoded, fold
from policies.recovery import change, recovered
from policies.refs import Refs
from policies.request import ChatRequest, Item, Prompt
from proxy.chained import Chained, Head
from proxy.ledger import Entry, LedgerFault, Store
from proxy.originals import Originals, readable, refs_in
from proxy.planner import Call
from proxy.remembered import Held, Memory

ROLE = b'"assistant"'


Kept = Literal["kept", "again", "without refs"]
"""What came of writing a plan down. `again`: somebody else was first, and the request has to be planned on what stands.
`without refs`: nothing could be written, so that no way back may be promised."""


class Conversation:
    """One request's place in its conversation. Nothing is computed before it is asked for."""

    def __init__(self, memory: Memory, call: Call, request: ChatRequest) -> None:
        self._memory, self._ledger = memory, memory.ledger
        self._tenant, self._request = call.tenant, request
        self.chained = Chained(memory.hashes, call, request)
        self._known: Held | None = None
        self._built: list[bytes] = []  # links whose nodes are confirmed, or left, with the answer
        self.taken = False  # by the upstream, which answered with a 2xx
        self.head = b""  # the last link of what the client sent before, where it changed that

    @property
    def refs(self) -> Refs | None:
        """What names originals; None where there is no store for them."""
        return None if self._ledger is None else Refs(bytes.fromhex(self._tenant))

    @property
    def store(self) -> Store | None:
        return self._ledger

    @property
    def tenant(self) -> str:
        return self._tenant

    @property
    def links(self) -> Sequence[bytes]:
        """The chain keys of its messages; empty until something was asked."""
        return self.chained.links

    @property
    def id(self) -> str:
        """Of the conversation in the ledger."""
        return self.chained.id

    @property
    def unsettled(self) -> bool:
        """Something was written down that has to be confirmed, or taken back."""
        return bool(self._built)

    async def recall(self, prompt: Prompt) -> Recorded | None:
        """What is known of the longest known prefix; nothing of a conversation that is new. The same for the same
        request, however often it is asked."""
        if self._known is None and prompt.messages:
            await self.chained.place()
            self._known = await self._find(prompt)
        return self._known.state if self._known is not None else None

    async def keep(self, plan: Plan) -> Kept:
        """Write down what the plan adds, and what the ledger lacks, before it is sent."""
        held, node = self._known, plan.record
        if held is None:
            return "without refs" if plan.originals else "kept"
        state = held.state.after(node) if node is not None else held.state
        if held.behind and state.count and not (node is not None and node.whole):
            node = anew(state)
        added = False
        if node is not None:
            again = await self._behind(state.made.values()) if held.behind or held.state.moved else {}
            stands = await self._add(node, again | dict(plan.originals))
            if stands is None and plan.originals:
                return "without refs"
            if isinstance(stands, Node):
                self._known = Held.of(held.state.after(stands), self.links[-1])
                return "again"
            added = stands is not None
        self._build(held.but(state, behind=held.behind or node is not None), added=added)
        return "kept"

    def _build(self, held: Held, *, added: bool) -> None:
        """Requests that go on from here find `held`; the answer to this one settles all nodes that it builds on."""
        link, claims = self.links[-1], self._memory.claims
        self._built = claims.join(self.links[:-1] if added else self.links)
        if added:
            claims.added(link)
            self._built.append(link)
            held = msgspec.structs.replace(held, written=link, behind=False)
        self._memory.hold(link, held)

    async def _add(self, node: Node, originals: Mapping[str, bytes]) -> Node | Literal["added"] | None:
        """The node that stands in the ledger already, where it is another; None where nothing could be written."""
        if self._ledger is None:
            return None
        key = self.links[-1].hex()
        entries = [Entry("original", ref, text, self.id) for ref, text in originals.items()]
        entries.append(Entry("node", key, encoded(node), self.id))
        try:
            others = await self._ledger.add(self._tenant, entries)
            stands = readable(decoded, others, key)
            if stands is not None:
                return stands
            for entry in entries:  # what stands in its place was damaged: a ref has one original, and this is no node
                if entry.key in others:
                    await self._ledger.put(self._tenant, entry)
        except LedgerFault:  # counted where it happened; the process itself still remembers
            return None
        return "added"

    async def settle(self) -> None:
        """What was decided stands where the request was `taken`; what nobody got an answer for was not decided."""
        built, self._built = self._built, []
        if not built or self._ledger is None:
            return
        claims = self._memory.claims
        with suppress(LedgerFault):  # counted where it happened; what was written stands unconfirmed
            if self.taken:
                for link in built:
                    claims.confirm(link)
                await self._ledger.confirm(self._tenant, "node", [link.hex() for link in built])
                value = msgspec.msgpack.encode(self.chained.head)
                await self._ledger.put(self._tenant, Entry("head", self.chained.head_key, value, self.id))
                return
            left = {link: times for link in built if (times := claims.leave(link))}
            for link in left:
                self._memory.drop(link)
            for link, times in left.items():
                for _ in range(times):
                    await self._ledger.withdraw(self._tenant, "node", [link.hex()])

    async def record(self, hidden: Hidden) -> None:
        """Rounds that the client does not see, in the answer to this request. Raises LedgerFault."""
        self._memory.hold_round(self.links[-1], hidden)
        if self._ledger is not None:
            key = self.links[-1].hex()
            await self._ledger.add(self._tenant, [Entry("round", key, hidden.encode(), self.id)])
            await self._ledger.confirm(self._tenant, "round", [key])

    async def _find(self, prompt: Prompt) -> Held:
        covered, held = self._memory.state(self.links)
        if covered < len(self.links):
            held = await self._further(covered, held)
        last = next((at for at in range(len(self.links) - 1, 0, -1) if ROLE in prompt.messages[at].raw), 0)
        if covered < last and (held is None or held.state.count < last):
            held = await self._recovered() or held
        held = held or Held(Recorded.nothing())
        if not held.state.sent.own:
            return held
        state = await self._with_rounds(prompt, held.state, max(1, covered, held.state.count))
        return held.but(state, behind=held.behind)

    async def _further(self, covered: int, held: Held | None) -> Held | None:
        """What the ledger has of the links that memory does not cover; and whether it still has the newest of those
        that memory holds, which keeps them for as long as they are used."""
        if self._ledger is None:
            return held
        links = self.links[covered:]
        before = [held.written] if held is not None and held.written else []
        try:
            found = await self._ledger.get(self._tenant, "node", [link.hex() for link in (*before, *links)])
        except LedgerFault:
            return held
        if held is not None and before and before[0].hex() not in found:
            held = await self._again(held)
        nodes = {link: node for link in links if (node := readable(decoded, found, link.hex())) is not None}
        if not nodes:
            return held
        state = fold(nodes.values(), held.state if held is not None else None)
        if state is None:  # one of them is missing: they say nothing without it
            return held.but(held.state, behind=True) if held is not None else None
        return Held.of(state, max(nodes, key=links.index))

    async def _behind(self, made: Collection[Made]) -> dict[str, bytes]:
        """Originals to which `made` shows a way, for this conversation to keep them from now on."""
        if self._ledger is None:
            return {}
        return await Originals(self._ledger, self._tenant, self._request.prompt).behind(made)

    async def _again(self, held: Held) -> Held | None:
        """The ledger was damaged, or emptied: what it kept is to be written again. None where something of it is
        nowhere else, so that the conversation has to begin anew."""
        made = held.state.made.values()
        is_whole = (await self._behind(made)).keys() == refs_in(made)
        return held.but(held.state, behind=True) if is_whole else None

    async def _recovered(self) -> Held | None:
        """Where the client changed what it sent before: what was decided for those messages that are still there, in a
        declared epoch."""
        if self._ledger is None or len(self.links) < 2:
            return None
        try:
            key = self.chained.head_key
            head = readable(Head.decode, await self._ledger.get(self._tenant, "head", [key]), key)
            if head is None:
                return None
            old = head.each()
            if old == self.chained.hashes[: len(old)]:
                return None
            links = [link.hex() for link in chain(self.chained.root, old)]
            found = await self._ledger.get(self._tenant, "node", links)
        except LedgerFault:
            return None
        nodes = (readable(decoded, found, link) for link in links)
        state = fold(node for node in nodes if node is not None)
        pairs = recovered(dict(enumerate(old)), self.chained.hashes)
        if state is None or not pairs:
            return None
        made = {new: state.made[then] for new, then in pairs.items() if then in state.made}
        epoch = Epoch(state.epoch.number + 1, state.epoch.level, "client", len(self.links))
        there = await self._behind(made.values())
        made = {at: one for at, one in made.items() if refs_in([one]) <= there.keys()}
        self._memory.changed(change(old, self.chained.hashes, pairs))
        self.head = bytes.fromhex(links[-1])
        return Held.of(Recorded(max(pairs) + 1, epoch, made, state.sent, moved=True))

    async def _with_rounds(self, prompt: Prompt, state: Recorded, begin: int) -> Recorded:
        """The state with hidden rounds in front of, or inside, the assistant's messages from index `begin` on; in what
        memory covers they stand already."""
        links = self.links
        asked = {at: links[at - 1] for at in range(begin, len(prompt.messages))}
        asked = {at: link for at, link in asked.items() if ROLE in prompt.messages[at].raw}
        made: dict[int, Made] = {}
        for at, hidden in (await self._rounds(asked)).items():
            raws = spliced(hidden, prompt.messages[at].raw)
            if raws is not None:
                made[at] = _hidden(raws, prompt.messages[at])
        return msgspec.structs.replace(state, made={**state.made, **made}) if made else state

    async def _rounds(self, asked: Mapping[int, bytes]) -> dict[int, Hidden]:
        found = {at: self._memory.round(link) for at, link in asked.items()}
        missing = {link.hex(): at for at, link in asked.items() if found[at] is None}
        if missing and self._ledger is not None:
            try:
                stored = await self._ledger.get(self._tenant, "round", list(missing))
            except LedgerFault:
                stored = {}
            found.update({missing[key]: readable(Hidden.decode, stored, key) for key in stored})
        return {at: hidden for at, hidden in found.items() if hidden is not None}


def _hidden(raws: tuple[bytes, ...], item: Item) -> Made:
    return Made(raws, "read-back", "rounds in which the model read originals back", key=item.key)
