"""The planner inside the proxy: window, counter and budget for each request, threads where counting is work, and what
is told of it afterwards."""

import asyncio
import logging
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx2
import msgspec
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from policies.annotated import NoteReader
from policies.compaction import Compaction
from policies.plan import Plan, untouched
from policies.request import BadRequest, ChatRequest, Prompt
from proxy.access import Access
from proxy.bills import Bills
from proxy.context_api import Context, install
from proxy.discovery import Discovery, Windows
from proxy.driver import Driver
from proxy.engine import Engine
from proxy.errors import JSON, Refusal, refusal_of
from proxy.history import History
from proxy.learning import Learning
from proxy.memories import Memories
from proxy.metrics import Metrics
from proxy.observe import About, Ending, Record, headers
from proxy.planner import Call, Outcome
from proxy.policyfile import load
from proxy.policyshelf import Shelf
from proxy.promptfiles import load as load_prompts
from proxy.readback.offering import readback_of
from proxy.refusals import Answer as Refused
from proxy.refusals import answer
from proxy.reuse import CACHED, Sending
from proxy.routing import Upstream
from proxy.servercount import ServerCount
from proxy.sessions import session_of
from proxy.settings import Settings
from proxy.sidemodel import Questions, SideModel
from proxy.telling import Telling
from proxy.wanted import Wanted
from proxy.watched import Looked, Watched

LOOK_SECONDS = 1.0  # between two looks at files of policies and prompts
TRIES = 3  # plans of one request at most, where another writer was first or the ledger cannot be written
INLINE_BYTES = 16_000  # of text that was not seen before: counting more than that goes to the thread (FACTS 1)

Told = Mapping[str, str]  # request headers of the control plane

log = logging.getLogger("edgewise")


class Note(msgspec.Struct, frozen=True):
    """What `finished` needs of a planned request; times in seconds of the monotonic clock."""

    record: Record
    upstream: Upstream
    started: float
    planned: float
    learning: Learning
    sent: Prompt
    sending: Sending | None = None  # where a provider's cache may hold it


class Asked(msgspec.Struct, frozen=True):
    """An upstream's control plane: what it tells of its windows, and how it counts."""

    discovery: Discovery
    counts: ServerCount


def planner_of(settings: Settings) -> "Planning":
    """The planner that `settings` describe. Raises PolicyError and PromptError."""
    return Planning(settings, Engine(settings, load(settings.policy)))


class Planning:
    """One engine for all requests; see `proxy.planner.Planner` for what each method promises."""

    def __init__(self, settings: Settings, engine: Engine, client: httpx2.AsyncClient | None = None) -> None:
        self.engine, self.metrics = engine, Metrics(settings.tool_metrics)
        self._telling = Telling(self.metrics, History())
        self._settings, self._access = settings, settings.access
        self._shelf = Watched(lambda seen: Shelf.load(settings.policy, settings.policies, seen))
        self._prompts = Watched(lambda seen: load_prompts(settings.prompts, seen))
        self._notes = NoteReader()
        self.memories = Memories(settings, self.metrics)
        self.bills = Bills(self.memories.ledger)
        self._compaction = Compaction.of()
        self._windows = Windows(engine.overrides, engine.table)
        self._client = client or httpx2.AsyncClient(follow_redirects=False, trust_env=False)
        self._side = self._side_model()
        self._asked: dict[Upstream, Asked] = {}
        self._thread = ThreadPoolExecutor(1, "planning")
        self._ready = False

    def install(self, api: FastAPI, access: Access, registry: CollectorRegistry) -> None:
        registry.register(self._telling)
        self.memories.register(registry)
        self.bills.register(registry)
        if self._side is not None:
            registry.register(self._side.metrics)
        settings = self._settings
        plan, count, original = self._sketch, self._sum, self.memories.original
        local, most = settings.is_loopback, settings.max_body_bytes
        install(api, Context(access, self._telling.history, plan, count, original, local, most))

    async def open(self) -> None:
        """Loads the encoding that most models have, in the thread; until then `ready` is False."""
        await self.memories.open()
        self._loading = asyncio.create_task(self._load())
        self._watching = asyncio.create_task(self._watch())

    async def close(self) -> None:
        self._telling.settle()
        await self.bills.close()
        await self.memories.close()
        self._loading.cancel()
        self._watching.cancel()
        for asked in self._asked.values():
            await asked.discovery.aclose()
        await self._client.aclose()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def ready(self) -> bool:
        return self._ready

    async def plan(self, request: ChatRequest, call: Call) -> Outcome:
        started = time.perf_counter()
        try:
            wanted = Wanted.of(call, request.model, self._shelf.value, self._settings)
            request = self._notes.bare(request)
            conversation = self.memories.conversation(call, request, wanted.mode)
            learning = self.bills.learning(call, request.model, conversation, wanted.mode)
            made = await self._planned(request, call, wanted, learning)
        except (Refusal, BadRequest) as fault:
            refused = fault if isinstance(fault, Refusal) else refusal_of(fault)
            return Outcome(b"", (), Refused(refused.status, [JSON, *refused.headers], refused.body))
        about = About(
            id=call.id,
            at=time.time(),
            tenant=call.tenant,
            upstream=call.upstream.name,
            model=request.model,
            stream=request.stream,
            mode=wanted.mode,
            session=session_of(request, call, made.received),
        )
        record = Record.of(about, made)
        self._telling.planned(record)
        shown = headers(record) if self._settings.report_headers else []
        sent = request.prompt if record.observing else made.prompt
        sending = None
        if record.report.received_total >= CACHED:
            spans = made.received if record.observing else made.sent
            sending = Sending(about, conversation, request.prompt, sent, spans)
        note = Note(record, call.upstream, started, time.perf_counter(), learning, sent, sending)
        if sent is request.prompt and (made.refusal is None or record.observing):
            return Outcome(request.body, shown, note=note)
        if made.refusal is None:
            outcome = self.bills.outcome(request, sent, call.upstream.name)
            counter = learning.counter(self.engine.counter(request.model))
            back = readback_of(made, request, counter, conversation)
            return msgspec.structs.replace(outcome, headers=shown, note=note, readback=back)
        told = answer(request, made, wanted.policy.on_refuse, about.id, int(about.at))
        return Outcome(b"", shown, told, note)

    def answered(self, outcome: Outcome, status: int) -> None:
        if isinstance(outcome.note, Note) and 200 <= status < 300:
            self.memories.taken(outcome.note.learning.conversation)

    def finished(self, outcome: Outcome, status: int, usage: dict[str, Any] | None) -> None:
        note = outcome.note
        if not isinstance(note, Note):
            return
        upstream = None if outcome.refusal is not None else time.perf_counter() - note.planned
        self.memories.left(note.learning.conversation)
        self._telling.finished(note.record, Ending(status, usage, note.planned - note.started, upstream), note.sending)
        if usage is not None:
            note.learning.billed(self.engine.counter(note.record.about.model), note.sent, note.record, usage)

    def learn(self, outcome: Outcome, error: bytes) -> None:
        if isinstance(outcome.note, Note):
            self._of(outcome.note.upstream).discovery.learn(outcome.note.record.about.model, error)

    async def _sketch(self, request: ChatRequest, window: int | None, tenant: str, asked: str | None) -> Plan:
        """For the API: a plan that nothing is forwarded for."""
        policy = self._shelf.value.choose(request.model, tenant, asked)
        loop, sync = asyncio.get_running_loop(), self.engine.plan_sync
        return await loop.run_in_executor(self._thread, sync, request, window, policy)

    async def _sum(self, request: ChatRequest) -> Plan:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self.engine.count, request, None)

    def _told(self, call: Call) -> Told:
        """What speaks for the caller at the upstream's control plane: just what goes with the chat request, so that an
        inbound key of ours stays here."""
        speaking = [header for header in call.headers if header[0] in (b"authorization", b"api-key", b"x-api-key")]
        sent = self._access.credentials(speaking, call.headers, call.upstream)
        return {name.decode(): value.decode("latin-1") for name, value in sent}

    async def _planned(self, request: ChatRequest, call: Call, wanted: Wanted, learning: Learning) -> Plan:
        asked, told = self._of(call.upstream), partial(self._told, call)
        found = await asked.discovery.found(told)
        window = self._windows.of(request.model, asked.discovery.window(request.model, found))
        if not self.engine.answers_at_once(request.model):
            await asyncio.to_thread(self.engine.load, request.model)
        is_work = self._is_work(request)
        counts, speaking = (asked.counts, told()) if found.counting else (None, {})
        driver = Driver(counts, speaking, self._questions(call, wanted), learning)
        try:
            refs, ask_server = learning.conversation.refs, driver.counts is not None
            left = TRIES
            while True:
                left -= 1
                refs = refs if left else None  # the last is sent whatever comes of it
                steps = self.engine.planning(request, window, wanted.policy, ask_server=ask_server, refs=refs)
                made = self._as_asked(request, await driver.drive(steps, self._thread, is_work=is_work))
                kept = "kept" if made.refusal is not None else await learning.conversation.keep(made)
                if kept == "kept" or not left:
                    return driver.billed(made)
                refs = None if kept == "without refs" else refs
        except BadRequest:
            raise  # the client's fault, not the planner's
        except Exception as error:  # planning broke: the last steps alone may still make it fit (DESIGN 1.7)
            log.error("%s: planning broke (%s), the last steps are tried", call.id, type(error).__name__)
            self.metrics.fell_back("emergency")
            return driver.billed(await asyncio.to_thread(self.engine.last_resort, request, window, wanted.policy))

    def _as_asked(self, request: ChatRequest, made: Plan) -> Plan:
        """The client's own compaction is about the whole history: it passes untouched wherever the window holds it."""
        window = made.budget.window
        if (made.prompt is request.prompt and made.refusal is None) or window is None:
            return made
        if made.received_total > window - made.budget.reserve or not self._compaction.asked_in(request.prompt):
            return made
        return untouched(made, request.prompt)

    def _is_work(self, request: ChatRequest) -> bool:
        """Counting it, or asking the side model, which may have to be told all of it, would keep others waiting."""
        if len(request.body) <= INLINE_BYTES:
            return False
        return self._side is not None or self.engine.counter(request.model).new_bytes(request.prompt) > INLINE_BYTES

    def _side_model(self) -> SideModel | None:
        lane = self._settings.lane
        if lane is None:
            return None
        return SideModel(
            lane, self._prompts.value, self._client, lambda text: self.engine.counter(lane.model).text(text)
        )

    def _questions(self, call: Call, wanted: Wanted) -> Questions | None:
        """Where traffic is only observed it is not delayed either: nobody is asked."""
        if self._side is None or wanted.mode == "observe":
            return None
        return Questions(self._side, call.tenant)

    async def _watch(self) -> None:
        """Files of policies and prompts that change are read again, in a thread of its own."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await asyncio.to_thread(self._look)

    def _look(self) -> None:
        self._told_of(self._shelf)
        self.engine.policy = self._shelf.value.main
        if self._told_of(self._prompts) == "loaded" and self._side is not None:
            self._side.use(self._prompts.value)

    def _told_of(self, watched: Watched[Any]) -> Looked:
        looked = watched.look()
        if looked == "invalid":
            log.warning("%s; what was read before stays in force", watched.fault)
        if looked != "same":
            self.metrics.reloaded(looked)
        return looked

    def _of(self, upstream: Upstream) -> Asked:
        found = self._asked.get(upstream)
        if found is None:
            discovery = Discovery(upstream.base, self._client)
            found = self._asked[upstream] = Asked(discovery, ServerCount(discovery, self._client))
        return found

    async def _load(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self.engine.load, "")
        self.engine.counter("")
        self._ready = True
