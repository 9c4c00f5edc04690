"""What the process holds of all conversations, so that most requests ask the ledger for little (DESIGN 6)."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from policies.hidden import Hidden
from policies.identity import CanonicalHashes
from policies.recorded import Recorded
from policies.recovery import Change
from proxy.bounded import Bounded
from proxy.ledger import Store

STATES = 512  # conversations, or branches of one, whose state is held in memory
STATES_BYTES = 64 << 20  # of all of them; what two states share, one grown from the other, counts for both
ROUNDS_BYTES = 16 << 20  # of hidden rounds


class Held(msgspec.Struct, frozen=True):
    """A state, and what the ledger has of it. `written`: the link of its newest node there, b"" where there is none;
    `behind`: decisions came after that, which could not be written. `size`: bytes of what stands for messages and
    tools."""

    state: Recorded
    written: bytes = b""
    behind: bool = False
    size: int = 0

    @classmethod
    def of(cls, state: Recorded, written: bytes = b"", *, behind: bool = False) -> "Held":
        return cls(state, written, behind, _weight(state))

    def but(self, state: Recorded, *, behind: bool) -> "Held":
        """Weighs a state that is another one, which takes as long as it has decisions."""
        if state is not self.state:
            return Held.of(state, self.written, behind=behind)
        return self if behind == self.behind else Held(state, self.written, behind, self.size)


def _weight(state: Recorded) -> int:
    said = sum([len(raw) for made in state.made.values() for raw in (*made.raws, made.bare)])
    return said + sum(map(len, state.sent.tools.values()))


class Claims:
    """Nodes that were written and that no answer confirmed so far: for each, how many requests under way build on it,
    and how often it was added. One that nobody got an answer for is withdrawn by the last who leaves it."""

    def __init__(self) -> None:
        self._open: dict[bytes, tuple[int, int]] = {}

    def added(self, link: bytes) -> None:
        users, adds = self._open.get(link, (0, 0))
        self._open[link] = users + 1, adds + 1

    def join(self, links: Iterable[bytes]) -> list[bytes]:
        """Those of them that are not confirmed; the caller builds on them."""
        joined = [link for link in links if link in self._open] if self._open else []
        for link in joined:
            users, adds = self._open[link]
            self._open[link] = users + 1, adds
        return joined

    def confirm(self, link: bytes) -> None:
        self._open.pop(link, None)

    def leave(self, link: bytes) -> int:
        """How often it has to be withdrawn: not at all where it was confirmed, or others build on it."""
        if link not in self._open:
            return 0
        users, adds = self._open[link]
        if users > 1:
            self._open[link] = users - 1, adds
            return 0
        del self._open[link]
        return adds


class Memory:
    """What the process remembers of all conversations. `ledger` None: nothing outlives it, nothing is shared."""

    def __init__(self, ledger: Store | None, changed: Callable[[Change], None]) -> None:
        self.ledger, self.changed = ledger, changed
        self.hashes, self.claims = CanonicalHashes(), Claims()
        self._states: Bounded[bytes, Held] = Bounded(STATES, STATES_BYTES)
        self._rounds: Bounded[bytes, Hidden] = Bounded(STATES, ROUNDS_BYTES)

    @property
    def size(self) -> int:
        """Bytes of all states."""
        return self._states.size

    def state(self, links: Sequence[bytes]) -> tuple[int, Held | None]:
        """The state of the longest prefix that is held, and its length in messages."""
        for count in range(len(links), 0, -1):
            found = self._states.get(links[count - 1])
            if found is not None:
                return count, found
        return 0, None

    def hold(self, link: bytes, held: Held) -> None:
        self._states.hold(link, held, held.size)

    def drop(self, link: bytes) -> None:
        self._states.drop(link)

    def hold_round(self, link: bytes, hidden: Hidden) -> None:
        messages = (*hidden.before, *[sibling.raw for sibling in hidden.siblings], *hidden.after)
        size = sum(map(len, messages)) + len(hidden.visible) + len(hidden.text)
        self._rounds.hold(link, hidden, size)

    def round(self, link: bytes) -> Hidden | None:
        return self._rounds.get(link)
