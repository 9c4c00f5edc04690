"""`edgewise check` and `policies`: what a policy says, in the order in which its steps run."""

import argparse
import dataclasses
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from policies.jsonraw import dumps
from policies.policy import Policy, PolicyError
from policies.policy_rules import LevelRule
from policies.step import Step
from proxy.cli.commands import Fault
from proxy.cli.tables import Paint
from proxy.policyfile import presets
from proxy.policyshelf import Shelf

UNSAID = ("name", "leaf")  # fields of a step that are no configuration
LONGEST = 60  # characters of a value that is shown whole


def check(options: argparse.Namespace) -> int:
    """Read one policy, with all that its routes lead to. Raises Fault."""
    policy = _read(options.policy)
    print(f"policy {policy.name} is valid")
    for line in (*_head(policy), *_body(policy)):
        print(f"  {line}")
    return 0


def _head(policy: Policy) -> Iterator[str]:
    yield f"on_refuse = {policy.on_refuse}"
    for name in ("window", "output_reserve"):
        if (tokens := getattr(policy, name)) is not None:
            yield f"{name} = {tokens}"
    if policy.margin is not None:
        yield f"margin = {policy.margin.share or policy.margin.constant}"
    if policy.against == "window":
        yield "levels are of the whole window"


def _body(policy: Policy) -> Iterator[str]:
    for level, rule in policy.levels.items():
        yield f"level {level.value}: {_rule(rule)}"
    for index, one in enumerate(policy.buckets):
        yield f"bucket {index}: {_listed(_fields(one, ()))}"
    for index, step in enumerate(policy.steps):
        yield f"step {index} {step.name}: {_listed(_parameters(step))}"
    for index, route in enumerate(policy.routes):
        yield f"route {index}: {_listed(_fields(route, ()))}"


def policies(options: argparse.Namespace) -> int:
    """The presets and the given files: name, source, steps with their parameters. Raises Fault."""
    paint = Paint.of(sys.stdout)
    for name in [*presets(), *options.policies]:
        policy, source = _read(name), _source(name)
        if options.json:
            steps = [{"use": step.name} | _parameters(step) for step in policy.steps]
            told = {"name": policy.name, "source": source, "digest": policy.digest, "steps": steps}
            sys.stdout.buffer.write(dumps(told) + b"\n")
            continue
        print(f"{paint(policy.name, 'bold')}  {source}")
        width = max((len(step.name) for step in policy.steps), default=0)
        for index, step in enumerate(policy.steps, 1):
            print(f"  {index:>2} {step.name:<{width}}  {_listed(_parameters(step))}")
        print()
    return 0


def _read(name: str) -> Policy:
    try:
        return Shelf.load(name).main
    except PolicyError as error:
        raise Fault(str(error)) from None


def _source(name: str) -> str:
    return str(presets()[name]) if name in presets() else str(Path(name).resolve())


def _rule(rule: LevelRule) -> str:
    alone = "" if rule.alone_to is None else f", alone to {rule.alone_to:g}"
    if rule.large is None:
        return f"enter {rule.enter:g}, free to {rule.free_to:g}{alone}"
    enter, free_to = rule.large
    return f"enter {rule.enter:g} (much room: {enter:g}), free to {rule.free_to:g} ({free_to:g}){alone}"


def _parameters(step: Step) -> dict[str, Any]:
    return _fields(step, UNSAID)


def _fields(one: Any, unsaid: tuple[str, ...]) -> dict[str, Any]:
    """What is set, as a policy file would say it."""
    values = {field.name: getattr(one, field.name) for field in dataclasses.fields(one) if field.name not in unsaid}
    return {name: _plain(value) for name, value in values.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return _fields(value, ()) if dataclasses.is_dataclass(value) else value


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {_value(value)}" for name, value in values.items())


def _value(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return f"{{{_listed(value)}}}"
    text = str(value)
    if len(text) > LONGEST:
        return f"{text[:40]!r}... ({len(text)} characters)"
    return repr(text) if "\n" in text else text
