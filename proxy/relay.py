"""A response on its way to the client: bytes through as they come, and nothing when nobody is left to read them."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, cast

from proxy.bodies import Receive
from proxy.errors import BrokenOff
from proxy.exchange import Departure, Exchange, Outlet
from proxy.headers import Header
from proxy.sse import Tap
from proxy.upstream import Put, Reply

UNBUFFERED = (b"x-accel-buffering", b"no")  # nginx in front of us would hold events back


async def relay(reply: Reply, exchange: Exchange, headers: Sequence[Header], tap: Tap | None = None) -> bool:
    """Each upstream read is sent at once, by the server's outlet where there is one. False when the upstream broke off:
    then the response is left incomplete, which makes the server cut the client's connection as well, never a clean end.
    """
    send = exchange.send
    await exchange.start(reply.status, headers)
    put = _put(exchange.outlet, tap)
    try:
        while chunk := await reply.read():
            ended = reply.ended
            await send({"type": "http.response.body", "body": chunk, "more_body": not ended})
            if tap is not None:
                tap.feed(chunk)
            if ended:
                return True
            if put is not None:
                await reply.pour(put)
    except BrokenOff:
        return False
    await send({"type": "http.response.body", "body": b""})
    return True


def _put(outlet: Outlet | None, tap: Tap | None) -> Put | None:
    if outlet is None or tap is None:
        return None if outlet is None else outlet.put
    write, feed = outlet.put, tap.feed

    def put(chunk: bytes) -> bool:
        more = write(chunk)
        feed(chunk)
        return more

    return put


async def attended(
    work: Coroutine[Any, Any, None],
    receive: Receive,
    ready: asyncio.Event | None = None,
    departure: Departure | None = None,
) -> bool:
    """Do `work` while somebody looks whether the client is still there: the server, where it offers `departure`, else a
    task that sits on `receive()` (once `ready` is set, where someone else reads the body first).

    When the client leaves, `work` is cancelled wherever it waits, and False comes back. A bare ASGI app is not told
    otherwise (FACTS 2). `work` must not wait for anything after its last send.
    """
    task = cast("asyncio.Task[Any]", asyncio.current_task(None if departure is None else departure.loop))
    watch = None
    if departure is None:
        departure = Departure()
        watch = asyncio.get_running_loop().create_task(_watch(receive, ready, departure))
    departure.watch(task.cancel)
    try:
        await work
    except asyncio.CancelledError:
        if not departure.happened:
            raise  # the server is shutting down
        task.uncancel()
        return False
    finally:
        departure.unwatch()
        if watch is not None:
            watch.cancel()
    return True


async def _watch(receive: Receive, ready: asyncio.Event | None, departure: Departure) -> None:
    if ready is not None:
        await ready.wait()
    while (await receive())["type"] != "http.disconnect":
        pass
    departure.happen()
