"""What upstreams billed, while the proxy runs: held in memory, kept in the ledger, asked when a decision is close.

`policies.counting.observed` is the state of one model at one upstream, `policies.counting.calibration` what is read out
of it. Nobody waits for either: bills are folded, fitted and written down in the background, a little at a time, and
what cannot be kept is counted and let go.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import NamedTuple

from prometheus_client import Metric
from prometheus_client.registry import Collector

from policies.counting.calibration import Calibration
from policies.counting.margins import EXACT
from policies.counting.memo import Memo
from policies.counting.observed import Anchor, Observation, State, agree, observe
from proxy.ledger import Entry, Ledger, LedgerFault
from proxy.metrics import Counts

PLACES = 128  # whose states are held, in each of two generations: 50 kB each at most
ANCHORS = 2_048  # likewise; 300 bytes each
LOOKED_AT = 64  # links, from the end, among which an anchor is looked for
WRITING = 64  # anchors at most that wait for the ledger
WAITING = 64  # bills of one place that wait to be folded; more than a state keeps would be lost anyway
EARLY = 16  # bills of a place that are folded nearly as they come
PAUSE, EARLY_PAUSE = 1.0, 0.05  # seconds between two folds, which take up to 12 ms
PATIENCE = 5.0  # seconds for what is left when the process ends

Miss = tuple[int, int]  # tokens counted, and by how many they fell short


class Place(NamedTuple):
    """A model at an upstream, as one tenant knows it: nothing is shared between tenants (DESIGN 1.10)."""

    tenant: str
    upstream: str
    model: str

    @property
    def key(self) -> str:
        """In the ledger."""
        told = "\0".join((self.upstream, self.model)).encode("utf-8", "surrogatepass")
        return blake2b(told, digest_size=16, person=b"edgewise usage 1").hexdigest()


class Known:
    """What is known of one place. `stored`: what the ledger had of it was read; `off`: something cost more than known
    rules say."""

    def __init__(self, state: State, *, stored: bool) -> None:
        self.state, self.stored = state, stored
        self.calibration, self.off = Calibration(), False
        self.agreed: list[Miss] = []

    def learn(self, counter: str, heard: Sequence[Observation]) -> None:
        """Fold what was heard, and fit. Takes some milliseconds: for a thread."""
        agreed, self.agreed = self.agreed, []
        state = agree(self.state, agreed, counter) if agreed else self.state
        for observation in heard:
            state = observe(state, observation, counter)
        self.state, self.calibration = state, Calibration.of(state, counter)
        self.off = any(tokens > seen.total * (1 + EXACT.share) + EXACT.constant for seen, tokens in state.points)

    def of(self, counter: str) -> Calibration:
        """What is known of the base counter of that name."""
        return self.calibration if self.calibration.counter == counter else Calibration.before(counter)


class Calibrating(Collector):
    """For all requests of a process. Everything but `close` is called on the event loop."""

    def __init__(self, ledger: Ledger, patience: float = PATIENCE) -> None:
        self._ledger, self._patience = ledger, patience
        self._places: Memo[Place, Known] = Memo(PLACES)
        self._anchors: Memo[bytes, Anchor] = Memo(ANCHORS)
        self._heard: dict[Place, tuple[str, list[Observation]]] = {}
        self._writing: set[asyncio.Task[None]] = set()
        self._working: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self._bills = Counts(
            "observed_bills",
            "Prompt tokens that upstreams billed, by what they taught: 'agreed' (the count was right), 'taken', "
            "'impossible', or 'lost'.",
            ("outcome",),
        )
        self._unkept = Counts("unkept_bills", "What was learned from bills and the ledger did not take.", ("what",))

    def collect(self) -> Iterator[Metric]:
        yield self._bills.family()
        yield self._unkept.family()

    async def settle(self) -> None:
        """Returns once everything that was heard is folded and written down, which goes without pauses."""
        self._hurry.set()
        while left := [task for task in (self._working, *self._writing) if task is not None and not task.done()]:
            await asyncio.wait(left)
        self._hurry.clear()

    async def close(self) -> None:
        """What was heard is written down, as far as that goes quickly."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                await self.settle()
        for task in (self._working, *self._writing):
            if task is not None:
                task.cancel()

    async def known(self, place: Place, counter: str) -> Known:
        """What is known of a place; of one that was not asked for lately, what the ledger has."""
        found = self._places.get(place)
        if found is not None:
            return found
        stored = await self._stored(place)
        known = Known(stored or State(), stored=stored is not None)
        if known.state.misses:
            await asyncio.to_thread(known.learn, counter, ())
        return self._places.get(place) or self._places.set(place, known)

    def agreed(self, place: Place, counter: str, counted: int, short: int) -> None:
        """A count by known rules was right: `short` tokens are within its margin. Costs next to nothing."""
        self._bills.add("agreed")
        known = self._places.get(place)
        if known is not None and known.state.misses:
            known.agreed.append((counted, short))
            if len(known.agreed) >= WAITING:
                self._hear(place, counter)

    def has_time(self, place: Place) -> bool:
        """A bill of that place would be learned from."""
        heard = self._heard.get(place)
        return len(heard[1]) < WAITING if heard is not None else len(self._heard) < PLACES

    def observe(self, place: Place, counter: str, observation: Observation) -> None:
        """A bill that teaches something about the base counter of that name."""
        heard = self._hear(place, counter) if place in self._heard or len(self._heard) < PLACES else None
        if heard is None or len(heard) >= WAITING:
            self.lose()
        else:
            heard.append(observation)

    def lose(self) -> None:
        """A bill came that nobody has the time to learn from."""
        self._bills.add("lost")

    async def anchor(self, tenant: str, links: Sequence[bytes]) -> Anchor | None:
        """The bill of the longest known prefix; `links` are the conversation's, one a message. The whole of it is none:
        the same request is counted the same when it comes again."""
        links = links[-LOOKED_AT:-1]
        held = next((at for at in range(len(links) - 1, -1, -1) if links[at] in self._anchors), -1)
        further = [link.hex() for link in links[held + 1 :]]
        try:
            found = await self._ledger.get(tenant, "usage", further) if further else {}
        except LedgerFault:
            found = {}
        decoded = (Anchor.decode(found[key]) for key in reversed(further) if key in found)
        anchor = next((one for one in decoded if one is not None), None)
        return anchor or (self._anchors.get(links[held]) if held >= 0 else None)

    def keep(self, tenant: str, conversation: str, link: bytes, anchor: Anchor, *, lasting: bool) -> None:
        """What the prompt that ends with `link` was billed. Not `lasting`: it stays in this process."""
        self._anchors.set(link, anchor)
        if not lasting:
            return
        if len(self._writing) >= WRITING:
            self._unkept.add("anchor")
            return
        entry = Entry("usage", link.hex(), anchor.encode(), conversation)
        task = asyncio.get_running_loop().create_task(self._put(tenant, entry, "anchor"))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _stored(self, place: Place) -> State | None:
        """None: the ledger cannot tell."""
        try:
            found = await self._ledger.get(place.tenant, "usage", [place.key])
        except LedgerFault:
            return None
        return State.decode(found[place.key]) if place.key in found else State()

    async def _put(self, tenant: str, entry: Entry, what: str) -> None:
        try:
            await self._ledger.put(tenant, entry)
        except LedgerFault:  # counted there too: the process itself still knows
            self._unkept.add(what)

    def _hear(self, place: Place, counter: str) -> list[Observation]:
        """Where a bill of the place is to be put."""
        heard = self._heard.get(place)
        if heard is None or heard[0] != counter:
            heard = self._heard[place] = counter, []
        if self._working is None or self._working.done():
            self._working = asyncio.get_running_loop().create_task(self._work())
        return heard[1]

    async def _work(self) -> None:
        """One place after another, so that however many there are, little of a processor goes into them."""
        while self._heard:
            place = next(iter(self._heard))
            known = await self.known(place, self._heard[place][0])
            counter, heard = self._heard.pop(place)
            await self._learn(place, known, counter, heard)
            with suppress(TimeoutError):
                async with asyncio.timeout(PAUSE if len(known.state.misses) >= EARLY else EARLY_PAUSE):
                    await self._hurry.wait()

    async def _learn(self, place: Place, known: Known, counter: str, heard: Sequence[Observation]) -> None:
        if not known.stored and (stored := await self._stored(place)) is not None:
            known.stored = True
            if len(stored.misses) > len(known.state.misses):
                known.state = stored
        refused = known.state.refused
        await asyncio.to_thread(known.learn, counter, heard)
        impossible = max(0, known.state.refused - refused)
        self._bills.add_each({"impossible": impossible, "taken": len(heard) - impossible})
        if known.stored:
            await self._put(place.tenant, Entry("usage", place.key, known.state.encode(), ""), "state")
