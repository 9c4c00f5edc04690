"""What an answer cost that took several rounds, and the usage chunk that only the proxy asked for."""

import re
from collections.abc import Sequence
from typing import Any

from proxy.exchange import Exchange
from proxy.headers import Header
from proxy.relay import relay
from proxy.sse import Splitter, Tap, Usage, data_of
from proxy.upstream import Put, Reply

COUNTED = ("prompt_tokens", "completion_tokens", "total_tokens")

_UNASKED = re.compile(rb'"choices"\s*:\s*\[\s*\]')
_TOLD = re.compile(rb'"usage"\s*:\s*\{')  # null where the chunk holds something else without choices, as a filter's


def summed(usages: Sequence[Usage]) -> Usage:
    """The usage of the last round with the completion tokens of all; the exact figures are in `edgewise` (DESIGN 1.9).

    `usages` are of the rounds, in order; of a single round it is the usage as it came."""
    *earlier, last = usages
    if not earlier:
        return last
    rounds = [{name: _number(usage.get(name)) for name in COUNTED} for usage in usages]
    sums = {name: sum(one[name] for one in rounds) for name in COUNTED}
    told = dict(last)
    for usage in earlier:
        told["completion_tokens_details"] = _added(
            told.get("completion_tokens_details"), usage.get("completion_tokens_details")
        )
    if told.get("completion_tokens_details") is None:
        told.pop("completion_tokens_details", None)
    told["completion_tokens"] = sums["completion_tokens"]
    told["total_tokens"] = rounds[-1]["prompt_tokens"] + sums["completion_tokens"]
    return {**told, "edgewise": {**sums, "rounds": rounds}}


def _added(one: Any, other: Any) -> Any:
    """Numbers of two objects added up by name; what is no number is as in the first."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return one
    return {
        name: value + _number(other.get(name)) if isinstance(value, int) and not isinstance(value, bool) else value
        for name, value in one.items()
    }


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def is_usage_alone(event: bytes) -> bool:
    """Whether it is the extra chunk that `stream_options.include_usage` asks for."""
    return b'"usage"' in event and all(found.search(data_of(event)) for found in (_UNASKED, _TOLD))


async def relay_quietly(reply: Reply, exchange: Exchange, headers: Sequence[Header], tap: Tap | None = None) -> bool:
    """A stream without the usage chunk that the client did not ask for; the tap sees it. See `relay`.

    What no tap can read goes as it is."""
    if tap is None:
        return await relay(reply, exchange, headers)
    return await relay(_Quiet(reply, tap), exchange, [header for header in headers if header[0] != b"content-length"])


class _Quiet:
    """See `Reply`."""

    def __init__(self, reply: Reply, tap: Tap) -> None:
        self.status = reply.status
        self.headers: Sequence[Header] = reply.headers
        self._reply = reply
        self._tap = tap
        self._splitter = Splitter()

    @property
    def ended(self) -> bool:
        return self._reply.ended

    async def read(self) -> bytes:
        """At most the one event that has not ended is held back."""
        while chunk := await self._reply.read():
            self._tap.feed(chunk)
            events = self._splitter.feed(chunk)
            if self._reply.ended:
                events.append(self._splitter.rest())
            if kept := b"".join([event for event in events if not is_usage_alone(event)]):
                return kept
        return self._splitter.rest()

    async def pour(self, put: Put) -> None:  # noqa: ARG002 - the protocol's signature; `read` has to look at each event
        return None

    def close(self) -> None:
        self._reply.close()
