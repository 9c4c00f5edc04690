"""`edgewise count` and `plan`."""

import argparse
import dataclasses
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from policies.jsonraw import dumps
from policies.plan import Plan
from policies.policy import Policy, PolicyError
from policies.report import Report
from policies.request import BadRequest, ChatRequest
from proxy.cli.progress import Progress
from proxy.cli.reading import Read, requests
from proxy.cli.tables import Paint, buckets_table, clean, figure, spans_table
from proxy.engine import Engine
from proxy.objects import count_object, plan_object
from proxy.policyfile import load
from proxy.policyshelf import Shelf
from proxy.promptfiles import Prompt, PromptError
from proxy.promptfiles import load as load_prompts
from proxy.refusals import message
from proxy.settings import Settings, SettingsError

CANNOT = 1  # exit code: a request could not be read, or cannot be made to fit


class Fault(Exception):
    """Wrong usage. The message is one line: place, fault, remedy."""


Planned = Callable[[ChatRequest], Plan]
Shown = Callable[[Read, ChatRequest, Plan], None]


def count(options: argparse.Namespace) -> int:
    engine, window = _engine(options, None)
    show = _print_count_object if options.json else _print_count
    return _each(options, lambda request: engine.count(request, window), show)


def plan(options: argparse.Namespace) -> int:
    engine, window = _engine(options, options.policy)
    show = _print_plan_object if options.json else _print_plan
    return _each(options, lambda request: engine.plan_sync(request, window), show)


def policy_of(name_or_path: str) -> Policy:
    """Raises Fault."""
    try:
        return load(name_or_path)
    except PolicyError as error:
        raise Fault(str(error)) from None


def shelf_of(settings: Settings) -> Shelf:
    """All policies that the settings name, and those that routes lead to. Raises Fault."""
    try:
        return Shelf.load(settings.policy, settings.policies)
    except PolicyError as error:
        raise Fault(str(error)) from None


def prompts_of(settings: Settings) -> dict[str, Prompt]:
    """Raises Fault."""
    try:
        return load_prompts(settings.prompts)
    except PromptError as error:
        raise Fault(str(error)) from None


def settings_of(**overrides: object) -> Settings:
    """Raises Fault."""
    try:
        return Settings.load(**overrides)
    except SettingsError as error:
        raise Fault(str(error)) from None


def _engine(options: argparse.Namespace, policy: str | None) -> tuple[Engine, int | None]:
    """And the window of `--window` in tokens, which goes before the policy's; None: that of each request's model."""
    settings = settings_of(policy=policy, window=options.window)
    loaded = policy_of(settings.policy)
    given = options.window if isinstance(options.window, int) else None
    return Engine(settings, dataclasses.replace(loaded, window=given or loaded.window)), given


def _each(options: argparse.Namespace, planned: Planned, show: Shown) -> int:
    """Plan and show the requests of the file; the exit code."""
    code, progress = 0, Progress("requests")
    with _opened(options.file) as source:
        for read in requests(source, "stdin" if options.file == "-" else options.file):
            progress.hide()
            fault, made = read, None
            try:
                made = planned(read.request) if read.request is not None else None
            except BadRequest as error:
                fault = Read(read.place, None, str(error))
            if read.request is None or made is None:
                code = CANNOT
                _say_fault(fault, as_json=options.json)
            else:
                show(read, read.request, made)
                code = CANNOT if made.refusal is not None and options.command is plan else code
            progress.step()
    progress.hide()
    return code


@contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        with Path(name).open("rb") as source:
            source.peek(1)  # a folder opens, but does not read
            yield source
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Fault(f"{name}: {error.strerror}; give a file that can be read, or - for standard input") from None


def _say_fault(read: Read, *, as_json: bool) -> None:
    print(f"edgewise: {read.place}: {read.fault}", file=sys.stderr)
    if as_json:  # one object a request, also for one that is none
        error = {"message": read.fault, "type": "invalid_request_error", "param": None, "code": None}
        _out(dumps({"error": error}))


def _print_count_object(_: Read, __: ChatRequest, made: Plan) -> None:
    _out(count_object(made))


def _print_plan_object(_: Read, request: ChatRequest, made: Plan) -> None:
    _out(plan_object(request, made))


def _print_count(read: Read, request: ChatRequest, made: Plan) -> None:
    report, paint = Report.of(made), Paint.of(sys.stdout)
    print(paint(" · ".join(_title(read, request, report)), "bold"))
    print(spans_table(report, paint, planned=False), end="\n\n")
    print(buckets_table(report, paint, planned=False), end="\n\n")


def _print_plan(read: Read, request: ChatRequest, made: Plan) -> None:
    report, paint = Report.of(made), Paint.of(sys.stdout)
    title = [*_title(read, request, report), f"level {report.level.value}"]
    print(paint(" · ".join(title), "bold"))
    print(spans_table(report, paint), end="\n\n")
    print(buckets_table(report, paint), end="\n\n")
    if made.refusal is not None:
        print(paint(f"cannot fit: {message(made.refusal, report)}", "red"), end="\n\n")
        print(f"edgewise: {read.place}: cannot be made to fit {figure(made.refusal.limit)} tokens", file=sys.stderr)
    elif report.limit is None:
        model = clean(request.model)
        print(f"edgewise: {read.place}: the window of model '{model}' is not known; give --window N", file=sys.stderr)


def _title(read: Read, request: ChatRequest, report: Report) -> list[str]:
    parts = [read.place, clean(request.model) or "no model", f"counted by {report.counter}"]
    parts.append("exact" if report.exact else "estimated")
    if report.limit is not None:
        parts.append(f"limit {figure(report.limit)} of a window of {figure(report.window or 0)}")
    return parts


def _out(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()  # whoever pipes requests in may wait for each answer
