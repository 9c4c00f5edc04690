"""`edgewise serve` as a process of its own, which a test may kill."""

import asyncio
import os
import re
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from support.servers import Answer, Client, post, request

ADDRESS = re.compile(rb"listens on http://127\.0\.0\.1:(\d+) ")
KEPT = {key: value for key, value in os.environ.items() if not key.startswith(("EDGEWISE_", "PYTHON"))}
PATIENCE = 30  # seconds; only a test that hangs comes near


@dataclass
class Served:
    port: int
    process: Process
    log: Path

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        client = await Client.connect(self.port)
        try:
            yield client
        finally:
            await client.close()

    async def ask(self, raw: bytes) -> Answer:
        """On a connection of its own. Not complete where the process dies meanwhile; its status is 0 where nothing
        came."""
        try:
            client = await Client.connect(self.port)
        except ConnectionError:
            return Answer(0, [], b"", complete=False)
        try:
            await client.send(raw)
            return await client.answer()
        except (asyncio.IncompleteReadError, ConnectionError):
            return Answer(0, [], b"", complete=False)
        finally:
            await client.close()

    async def chat(self, body: object, *headers: tuple[str, str]) -> Answer:
        return await self.ask(post("/v1/chat/completions", body, *headers))

    async def get(self, path: str, *headers: tuple[str, str]) -> Answer:
        async with asyncio.timeout(PATIENCE):
            return await self.ask(request("GET", path, b"", *headers))

    async def kill(self) -> None:
        """SIGKILL: it does nothing more."""
        self.process.kill()
        await self.process.wait()


@asynccontextmanager
async def serving(upstream: str, ledger: Path, *, window: int, **settings: str) -> AsyncIterator[Served]:
    """On a port of the system's choice; `settings` by variable name without its prefix."""
    log = ledger.with_name(f"{ledger.name}.log")
    given = {"UPSTREAM": upstream, "LEDGER": str(ledger), "WINDOW": str(window), **settings}
    environment = KEPT | {f"EDGEWISE_{name.upper()}": value for name, value in given.items()}
    with log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "proxy.cli.main", "serve", "--port", "0",
            stdout=asyncio.subprocess.PIPE, stderr=errors, env=environment,
        )  # fmt: skip
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            found = ADDRESS.search(await process.stdout.readline())
        assert found is not None, log.read_text()
        yield Served(int(found[1]), process, log)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
