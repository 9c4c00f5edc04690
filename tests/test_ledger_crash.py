"""kill -9 while two hundred requests write: what was told to be stored is there."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

from proxy.ledger import Limits
from proxy.ledger.sqlite import SqliteLedger

WRITER = """
import asyncio, os, sys
from pathlib import Path
from proxy.ledger import Entry, Limits
from proxy.ledger.sqlite import SqliteLedger

async def main(directory, begin):
    ledger = SqliteLedger(Path(directory), Limits())
    await ledger.open()
    async def write(which):
        for turn in range(1000):
            key = f"{begin}-{which}-{turn}"
            await ledger.add("a" * 32, [Entry("original", key, key.encode() * 50, "c1")])
            os.write(1, f"{key}\\n".encode())
    await asyncio.gather(*(write(which) for which in range(200)))

asyncio.run(main(*sys.argv[1:]))
"""


def test_all_that_was_added_outlives_a_kill(tmp_path: Path) -> None:
    said: list[str] = []
    for begin in range(3):
        command = [sys.executable, "-c", WRITER, str(tmp_path), str(begin)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            said += [writer.stdout.readline() for _ in range(300 + 150 * begin)]
            writer.send_signal(signal.SIGKILL)
            said += writer.stdout.readlines()
        assert writer.returncode == -signal.SIGKILL
    keys = [line.removesuffix("\n") for line in said if line.endswith("\n")]
    assert len(keys) >= 1350

    async def found() -> dict[str, bytes]:
        ledger = SqliteLedger(tmp_path, Limits())
        await ledger.open()
        try:
            return await ledger.get("a" * 32, "original", keys)
        finally:
            await ledger.close()

    assert asyncio.run(found()) == {key: key.encode() * 50 for key in keys}
