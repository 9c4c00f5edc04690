"""The `edgewise` command: arguments in, exit codes out. What the commands do is in `commands`, `serving` and `demo`."""

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version

from proxy.cli.commands import Fault, count, plan
from proxy.cli.policycommands import check, policies
from proxy.settings import SettingsError

EPILOG = """\
exit codes:
  0    all went well: every request was read, and every one fits or is made to fit
  1    a request could not be read, or cannot be made to fit
  2    wrong usage: an option, a file, a setting or a policy
  130  interrupted
"""

UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}  # seconds

Command = Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code. Messages go to stderr, results to stdout."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal of another encoding shows a question mark
    options = parser().parse_args(arguments)
    command: Command = options.command
    try:
        code = command(options)
        sys.stdout.flush()
        return code
    except (Fault, SettingsError) as fault:
        print(f"edgewise: {fault}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # whoever read has seen enough; without this, Python would complain when it flushes at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # as a shell reports a program that SIGPIPE ended


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="edgewise",
        description="An OpenAI-compatible proxy that makes every prompt fit its budget, and says what it did.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"edgewise {version('edgewise')}")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _serve(
        _command(
            commands,
            "serve",
            _run_serve,
            "run the proxy",
            "Settings come from EDGEWISE_... variables; options go before them. With no upstream one is embedded.",
        )
    )
    _count(_command(commands, "count", count, "what requests cost, by span and bucket", _FILE))
    _plan(_command(commands, "plan", plan, "what would be done with requests, before and after", _FILE))
    one = _command(
        commands, "check", check, "read a policy and say what is in it", "A policy is a preset or a TOML file."
    )
    one.add_argument("policy", metavar="POLICY", help="name of a preset, or a file")
    _policies(
        _command(
            commands,
            "policies",
            policies,
            "the presets, and policies of your own, step by step",
            "Without POLICY the presets alone.",
        )
    )
    _ledger(commands.add_parser("ledger", help="what is kept of conversations: list, show, purge"))
    _demo(
        _command(
            commands,
            "demo",
            _run_demo,
            "forty turns of an incident, through a real proxy on loopback",
            "Needs no network and no model.",
        )
    )
    return top


_FILE = (
    "FILE holds one chat completion request as JSON, or many as JSONL; '-' is standard input. The body of a line of a "
    "batch file counts as a request."
)


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, run: Command, text: str, more: str
) -> argparse.ArgumentParser:
    made = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}. {more}")
    made.set_defaults(command=run)
    return made


def _count(made: argparse.ArgumentParser) -> None:
    made.add_argument("file", metavar="FILE")
    made.add_argument(
        "--window", type=_window, metavar="N", help="window in tokens, or 'auto' (default): that of the model"
    )
    made.add_argument("--json", action="store_true", help="print one JSON object a request")


def _plan(made: argparse.ArgumentParser) -> None:
    _count(made)
    made.add_argument("--policy", metavar="NAME|FILE", help="policy to plan by (default: EDGEWISE_POLICY, or balanced)")


def _policies(made: argparse.ArgumentParser) -> None:
    made.add_argument("policies", metavar="POLICY", nargs="*", help="a file to list beside the presets")
    made.add_argument("--json", action="store_true", help="print one JSON object a policy")


def _serve(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--upstream", metavar="URL", help="base URL of the upstream, as a client would be given it, ending in /v1"
    )
    made.add_argument("--host", metavar="H", help="address to listen on (default 127.0.0.1)")
    made.add_argument("--port", type=int, metavar="P", help="port to listen on (default 8400; 0: the system chooses)")
    made.add_argument(
        "--window", type=_window, metavar="N|auto", help="window in tokens, or 'auto': that of each model"
    )
    made.add_argument("--policy", metavar="NAME|FILE", help="policy (default balanced)")
    made.add_argument("--mode", choices=("observe", "enforce"), help="observe: count and report, change nothing")


def _ledger(made: argparse.ArgumentParser) -> None:
    made.description = "What is kept of conversations, at EDGEWISE_LEDGER."
    commands = made.add_subparsers(title="commands", required=True, metavar="COMMAND")
    listed = _command(commands, "list", _run_ledger, "conversations, the one used last first", "Times are UTC.")
    shown = _command(commands, "show", _run_ledger, "what is kept of one conversation", "Contents are not shown.")
    purged = _command(commands, "purge", _run_ledger, "remove conversations", "A proxy may be running meanwhile.")
    shown.add_argument("id", metavar="ID", help="of the conversation, or the beginning of it")
    for one in (listed, purged):
        one.add_argument("--tenant", metavar="T", help="only those of this tenant")
    purged.add_argument(
        "--older-than", type=_age, metavar="AGE", help="only those not used for so long, as in 90s, 30m, 12h, 7d"
    )
    purged.add_argument("--all", action="store_true", help="all of all tenants")
    for name, one in {"list": listed, "show": shown, "purge": purged}.items():
        one.add_argument("--json", action="store_true", help="print JSON objects, one a line")
        one.set_defaults(ask=name)


def _demo(made: argparse.ArgumentParser) -> None:
    made.add_argument("--window", type=_whole, default=16_000, metavar="N", help="window in tokens (default 16000)")
    made.add_argument("--json", action="store_true", help="print one JSON object a turn, and the summary")


def _window(text: str) -> int | str:
    return text if text == "auto" else _whole(text)


def _whole(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of tokens above 0")
    return int(text)


def _age(text: str) -> float:
    """Seconds."""
    if not text[:-1].isdecimal() or text[-1] not in UNITS:
        raise argparse.ArgumentTypeError(f"'{text}' is no age; write a number and s, m, h or d, as in 7d")
    return float(text[:-1]) * UNITS[text[-1]]


def _run_serve(options: argparse.Namespace) -> int:
    from proxy.cli.serving import serve  # noqa: PLC0415 - counting needs no web server

    return serve(options)


def _run_ledger(options: argparse.Namespace) -> int:
    from proxy.cli.ledgercommands import COMMANDS  # noqa: PLC0415 - the same

    return COMMANDS[options.ask](options)


def _run_demo(options: argparse.Namespace) -> int:
    from proxy.cli.demo import demo  # noqa: PLC0415 - the same

    return demo(options)


if __name__ == "__main__":
    sys.exit(main())
