"""Prompts and keys stay where they belong: out of logs, metrics and a sealed ledger, and of other tenants' reach
(DESIGN 1.10)."""

import json
import logging
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.faulty import messages_of, proxied, refs_of, until_settled
from support.lasting import body, refs_in, talk
from support.prompts import Message
from support.servers import Answer, Proxy
from support.upstream import OK, Act, Upstream, response, scripted

SEAL = "seal-" + "0123456789abcdef" * 2
KEY = "sk-canary-5e2f90b1c4"
TEXT = "canary-text-77ab31"
MINE = ("authorization", f"Bearer {KEY}")
THEIRS = ("authorization", "Bearer sk-somebody-else")
SAID = {"role": "assistant", "content": f"{TEXT} said"}
ANSWER = {"choices": [{"index": 0, "message": SAID, "finish_reason": "stop"}], "usage": {"prompt_tokens": 5_000}}
WRONG = ({"messages": [{"role": TEXT}]}, {"messages": TEXT}, {"messages": [[[TEXT]]]}, {"messages": [], "tools": TEXT})
REFUSES = [response(400, json.dumps({"error": {"message": f"{TEXT} is too long", "type": "x"}}).encode())]


def secret(rounds: int) -> list[Message]:
    """The canary stands in each message and in each argument."""
    messages: list[Message] = json.loads(
        json.dumps(talk(TEXT, rounds)).replace('"{}"', json.dumps(json.dumps({"q": TEXT})))
    )
    return messages


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def holding(of: dict[str, bytes], secret: str) -> list[str]:
    """Names of what holds it, as it is or in base 64 at any offset."""
    raw = secret.encode()
    forms = [raw, *(b64encode(b" " * at + raw)[4:-4] for at in range(3)), raw.hex().encode()]
    return [name for name, data in of.items() if any(form in data for form in forms)]


@pytest.fixture
def told() -> Iterator[list[str]]:
    """What is written to the log, at its most talkative."""
    lines: list[str] = []
    logger = logging.getLogger("edgewise")
    level = logger.level

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    keep = Keep()
    logger.addHandler(keep)
    logger.setLevel(logging.DEBUG)
    yield lines
    logger.removeHandler(keep)
    logger.setLevel(level)


async def converse(proxy: Proxy, upstream: Upstream) -> set[str]:
    """Turns that are answered, refused, and wrong; the refs that arrived upstream."""
    answered: list[Act] = [response(200, json.dumps(ANSWER).encode())]
    for rounds in (14, 15, 20):
        upstream.scripts[:] = [answered]
        assert (await proxy.chat(body(secret(rounds)), MINE)).status == 200
    upstream.scripts[:] = [REFUSES]
    assert (await proxy.chat(body(secret(21)), MINE)).status == 400
    upstream.scripts[:] = [answered]
    for wrong in WRONG:
        await proxy.chat({"model": "gpt-4o", **wrong}, MINE)
    await proxy.get(f"/context/results/{TEXT}", MINE)
    await until_settled(proxy)
    return refs_of(upstream, TEXT)


@pytest.mark.parametrize("seal", [None, SEAL])
async def test_no_file_of_the_ledger_holds_a_key_and_no_sealed_one_a_text(seal: str | None, tmp_path: Path) -> None:
    async with scripted([OK]) as upstream:
        async with proxied(upstream, tmp_path / "ledger", ledger_key=seal) as proxy:
            assert await converse(proxy, upstream)
            open_files = files(tmp_path / "ledger")
        closed = files(tmp_path / "ledger")
    assert set(open_files) == {"ledger.db", "ledger.db-wal", "ledger.db-shm"}
    for found in (open_files, closed):
        assert holding(found, KEY) == []
        assert holding(found, SEAL) == []
        assert bool(holding(found, TEXT)) is (seal is None)


async def test_no_log_line_and_no_metric_holds_a_text_or_a_key(told: list[str], tmp_path: Path) -> None:
    more = {"ledger_key": SEAL, "tool_metrics": ("read_log",)}
    async with scripted([OK]) as upstream, proxied(upstream, tmp_path / "ledger", **more) as proxy:
        await converse(proxy, upstream)
        metrics = (await proxy.get("/metrics")).body.decode()
    assert "edgewise_ledger_entries_total" in metrics
    assert len(told) >= 4
    for secret_one in (TEXT, KEY, SEAL):
        assert secret_one not in metrics
        assert not [line for line in told if secret_one in line]


async def test_another_tenant_is_told_of_nothing(tmp_path: Path) -> None:
    async with scripted([OK]) as upstream, proxied(upstream, tmp_path / "ledger") as proxy:
        refs = await converse(proxy, upstream)
        for ref in refs:
            found: list[Answer] = [await proxy.get(f"/context/results/{ref}", *who) for who in ((MINE,), (THEIRS,), ())]
            assert [one.status for one in found] == [200, 404, 404]
            assert TEXT.encode() in found[0].body
            assert all(TEXT.encode() not in one.body for one in found[1:])
        await proxy.chat(body(secret(20)), THEIRS)
        assert refs_in(messages_of(upstream))
        assert not refs_in(messages_of(upstream)) & refs
