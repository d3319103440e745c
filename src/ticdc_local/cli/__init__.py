"""``ticdc-lake``: the command line. One module a command; ``COMMANDS`` names them.

A command's module has ``arguments(parser)``, ``run(options) -> exit code`` and ``EXAMPLES`` for its help. Each is
imported when it is called, so that ``decode`` does not wait for Spark.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Collection, Sequence
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path
from typing import NoReturn

from ticdc_codec.errors import ApplyError, AttentionError, LakehouseError, PublishedMeanwhileError, suggestion
from ticdc_lakehouse import log
from ticdc_local.cli import interrupt, notice
from ticdc_local.cli.arguments import lake_root, one_of
from ticdc_local.signals import INTERRUPTED

COMMANDS = {
    "run": "run a job of the bundle on this machine",
    "feed": "write a feed's file; check what a run of it needs, and its first messages",
    "kafka": "run the bundled Kafka broker until Ctrl-C",
    "status": "show how far each feed is, and why a table is blocked",
    "report": "write one HTML page about the lake: plots, blocked tables, the catalogue",
    "quarantine": "list, show, replay or dismiss messages that could not be decoded",
    "table": "skip a DDL, or try again, where a table is blocked",
    "load": "load rows from before the changefeed: an export of Dumpling",
    "maintain": "delete what is older than the feeds' retention, compact what stays",
    "generate": "write a generated changefeed in any protocol to Kafka or a file",
    "decode": "decode messages (JSON lines) to events (JSON lines)",
    "inspect": "show what messages are: protocol, events, values, every byte",
    "verify-source": "compare gold with TiDB itself, at the published TSO; --repair gives rows TiDB's values",
    "verify-stream": "run recorded streams through the pipeline, and compare gold with TiDB's answers",
    "demo": "run the bundle's job on a feed of each protocol, and compare gold with TiDB's answers",
    "sql": "open a Spark SQL prompt on the lake, or run statements",
    "dbx": "write the bundle's jobs as a deployment file for dbx (for teams that still deploy with it)",
    "completion": "print the script by which bash, zsh or fish completes this command after Tab",
    "doctor": "check Python, Java, jars, ports, and each feed's file, secrets, brokers and topics",
}
LOCAL = {"confluent_kafka", "delta", "deltalake", "pandas", "py4j", "pyspark", "rich", "shtab"}
"""What the extra ``local`` in pyproject.toml brings; ``decode`` does without, ``inspect`` needs only rich of it."""
_BEFORE_COMMAND = ("-h", "--help", "--version")
_READER_GONE = 128 + 13
"""The exit code of shells for SIGPIPE."""
NEEDS_ATTENTION = 3
"""The exit code where layers did their work and left more than a feed's section alarm tolerates."""
EXAMPLES = """examples:
  ticdc-lake doctor                 is this machine ready?
  ticdc-lake feed new crm           a feed of your own; every step prints the next command
  ticdc-lake run --help             each command's arguments, examples and exit codes"""
EXIT_CODES = f"""exit codes:
  0    done
  1    something failed or differs, a table could not follow, another run published meanwhile, or the machine refused,
       such as a full disk
  2    an argument, a setting, a file, a broker or the machine is not as needed; mostly nothing was begun
  {NEEDS_ATTENTION}    run: the job or notebook ran, but a feed needs attention, as section alarm of its feed file says
  {INTERRUPTED}  ended by SIGINT or SIGTERM; what was published before stays, run it again
  {_READER_GONE}  the reader of the output is gone (… | head)"""


_Help = argparse.RawDescriptionHelpFormatter


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit code (`EXIT_CODES`). ``arguments`` None: those of the process, which SIGINT
    and SIGTERM then end."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        interrupt.end_on_signals(given[0] if given else "")
    try:
        return _main(given)
    finally:
        interrupt.wait_if_ending()


def _main(given: list[str]) -> int:
    _print_any_character()
    try:
        code = _run(given)
        print(end="", flush=True)  # what cannot be written must be known here, not when Python ends
    except BrokenPipeError:
        code = _READER_GONE
    except OSError as error:
        print(f"ticdc-lake {given[0]}: {str(error) or type(error).__name__}", file=sys.stderr)
        code = 1
    except _spark_errors() as error:
        from ticdc_local.cli.job_text import spark_text

        print(f"ticdc-lake {given[0]}: {spark_text(error, _lake(given))}", file=sys.stderr)
        code = 1
    else:
        return code
    _give_up_output()
    return code


def _lake(given: list[str]) -> Path | None:
    """Returns the folder of the lake that a command line means; None for a command without one."""
    options = parsed(given)
    return lake_root(options) if "lake" in options else None


def _spark_errors() -> tuple[type[Exception], ...]:
    """Returns the errors of Spark and of the calls of its JVM; none where no command has imported Spark."""
    if "pyspark" not in sys.modules:
        return ()
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError


def _print_any_character() -> None:
    """Lets a terminal in another encoding than UTF-8 show what it cannot print as ``\\u…``."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def parsed(given: list[str]) -> argparse.Namespace:
    """Returns the options of a command line. Ends the process where it is wrong, or asks for help."""
    # Only the command that is called needs its arguments; the others are there for the list.
    parser = full_parser(given[:1])
    for command in given[:1]:
        if command.startswith("-") and command not in _BEFORE_COMMAND:
            parser.error(f"expected COMMAND first, found {command}: a command's arguments come after it")
        if not command.startswith("-") and command not in COMMANDS:
            parser.error(f"no such command: {command}; {suggestion(command, COMMANDS)}")
    return parser.parse_args(given)


class _Parser(argparse.ArgumentParser):
    """Names a mistake in one line, like every command; argparse prints the whole usage before it."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n{self.prog} --help lists its arguments\n")


class _CommandParser(_Parser):
    """Refuses unknown arguments; argparse leaves that to the parser of all commands."""

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        parsed_options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            nearest = suggestion(unknown[0].partition("=")[0], self._option_string_actions)
            self.error(f"no such argument: {' '.join(unknown)}; {nearest}")
        return parsed_options, unknown


def full_parser(called: Collection[str]) -> argparse.ArgumentParser:
    """Returns the parser of all commands; of those in ``called`` with their arguments."""
    parser = _Parser(
        prog="ticdc-lake",
        description="TiDB tables in the lakehouse.",
        epilog=f"{EXAMPLES}\n\n{EXIT_CODES}",
        formatter_class=_Help,
    )
    _version_argument(parser)
    choices = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_CommandParser)
    for name, summary in COMMANDS.items():
        is_called = name in called
        added = choices.add_parser(
            name, help=summary, description=summary, add_help=is_called, formatter_class=_Help, epilog=EXIT_CODES
        )
        if is_called:
            module = _module(name)
            module.arguments(added)
            _log_arguments(added)
            _version_argument(added)
            added.epilog = f"{module.EXAMPLES}\n\n{EXIT_CODES}"
    return parser


def _version_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--version", action="version", version=f"ticdc-lake {version('ticdc-lakehouse')}")


def _log_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--log-level",
        default="warning",
        choices=("debug", "info", "warning", "error"),
        help="what is logged to stderr (default: warning)",
    )
    parser.add_argument("--verbose", action="store_const", const="info", dest="log_level", help="--log-level info")
    parser.add_argument("--quiet", action="store_true", help="print only the result: no progress, no hints")
    parser.add_argument(
        "--log-format",
        type=one_of(log.Format),
        default=log.Format.TEXT,
        choices=tuple(log.Format),
        help="format of log lines (default: text)",
    )


def _run(given: list[str]) -> int:
    try:
        options = parsed(given)
        log.configure(options.log_level, options.log_format)
        notice.configure(quiet=options.quiet)
        return int(_module(options.command).run(options))
    except LakehouseError as error:
        problem, code = str(error), _exit_code(error)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in LOCAL:
            raise
        problem = f"{error.name} is not installed: pip install 'ticdc-lakehouse[local]' brings what a laptop needs"
        code = 2
    print(f"ticdc-lake {given[0]}: {problem}", file=sys.stderr)
    return code


def _exit_code(error: LakehouseError) -> int:
    """Returns the exit code of a command that an error ends. What is raised only by work that has begun is no mistake
    of the command line."""
    if isinstance(error, AttentionError):
        return NEEDS_ATTENTION
    return 1 if isinstance(error, (ApplyError, PublishedMeanwhileError)) else 2


def _give_up_output() -> None:
    """Drops unwritten output: Python would write it at its end, and print its own error."""
    try:
        print(end="", flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _module(command: str):  # type: ignore[no-untyped-def]  # a module with `arguments` and `run`
    return importlib.import_module(f"{__name__}.{command.replace('-', '_')}")
