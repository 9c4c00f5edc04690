"""What was decided for the prefix of a conversation, so that the next request sends the same bytes again (DESIGN 6).

A client re-sends its whole history and keeps no state for us. A `Node` is what one request added to that state, kept
under the chain key of its last message; the nodes on the way of a request add up to a `Recorded`, which is replayed.
Nodes are small and never change: what a request did is told by itself and those before it, and a branch has its own.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b

import msgspec

from policies.levels import Level

FRONT = -1  # the index of what stands before all messages
UNSAID = -1


class Epoch(msgspec.Struct, frozen=True, array_like=True):
    """A declared point at which bytes that were sent before may change. `opened` is how many messages the request had,
    `freed` tokens; `because`: "pressure", "forced" (it did not fit), "client" (which changed its own prefix)."""

    number: int
    level: Level
    because: str
    opened: int
    freed: int = 0


class Made(msgspec.Struct, frozen=True, array_like=True):
    """What stands for one received message: `raws` in its order, none where it was dropped, several where a hidden
    round or a repair stands behind it. `bare` is the message before text of ours was merged into it, b"" where that is
    what was received."""

    raws: tuple[bytes, ...]
    step: str
    because: str
    bare: bytes = b""
    merged: tuple[tuple[str, int], ...] = ()  # bucket, tokens
    elided: bool = False
    shortened: bool = False
    key: bytes = b""  # digest of the received message, by which it is known again where the prefix changed


class Sent(msgspec.Struct, frozen=True, array_like=True):
    """How tools are sent, by digest of the received one: what stands for it (b"": left out). `offered` is the digest
    of all that the client offered, `own` whether ours is offered beside them."""

    offered: bytes = b""
    tools: dict[bytes, bytes] = {}
    own: bool = False


class Node(msgspec.Struct, frozen=True, array_like=True):
    """What one request of `count` messages added. With `whole`, it says everything anew: an epoch begins with it. Tools
    are said then alone."""

    count: int
    epoch: Epoch
    made: dict[int, Made]
    sent: Sent
    policy: str = ""  # its digest
    whole: bool = True
    reminded: int = FRONT  # index of the message that holds the newest reminder
    calibration: bytes = b""  # how the upstream counts, as known when an epoch began; b"": nothing was known
    since: int = UNSAID  # messages of the state that it adds to, unless it is whole


class Recorded(msgspec.Struct, frozen=True):
    """The state of a conversation after `count` of its messages; 0: nothing was decided yet."""

    count: int
    epoch: Epoch
    made: Mapping[int, Made]
    sent: Sent
    reminded: int = FRONT
    calibration: bytes = b""  # in force until the next epoch
    moved: bool = False  # the client changed its own prefix: what still applies stands in an epoch of its own

    @classmethod
    def nothing(cls) -> "Recorded":
        """A conversation that will be remembered, and of which nothing was decided so far."""
        return cls(0, Epoch(0, Level.NONE, "", 0), {}, Sent())

    def after(self, node: Node) -> "Recorded":
        """The state once `node` was added to it."""
        made = node.made if node.whole else {**self.made, **node.made}
        sent = node.sent if node.whole else self.sent
        calibration = node.calibration if node.whole else self.calibration
        return Recorded(node.count, node.epoch, made, sent, node.reminded, calibration)


def fold(nodes: Iterable[Node], state: Recorded | None = None) -> Recorded | None:
    """The state that nodes on the way of a request add up to, from `state` on; they stand in the order of their
    messages. None where no epoch begins among them, or where one is missing that a later one builds on."""
    for node in nodes:
        if node.whole or (state is not None and node.since in (state.count, UNSAID)):
            state = (state or Recorded.nothing()).after(node)
        else:
            state = None
    return state


def anew(state: Recorded) -> Node:
    """A node that says all of a state, for where those that it came from are lost."""
    return Node(state.count, state.epoch, dict(state.made), state.sent, "", True, state.reminded, state.calibration)


_ENCODER, _DECODER = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(Node)
CHECK = 8  # bytes of a digest: a store may be damaged in a way that still decodes


def encoded(node: Node) -> bytes:
    value = _ENCODER.encode(node)
    return _check(value) + value


def decoded(value: bytes) -> Node:
    """Raises msgspec.DecodeError for what is none."""
    if _check(value[CHECK:]) != value[:CHECK]:
        raise msgspec.DecodeError("not what was encoded")
    return _DECODER.decode(value[CHECK:])


def _check(value: bytes) -> bytes:
    return blake2b(value, digest_size=CHECK).digest()
