"""``ticdc-lake``: the command line. One module a command; ``COMMANDS`` names them.

A command's module has ``arguments(parser)`` and ``run(options) -> exit code``. Each is imported when it is asked
for, so that ``decode`` does not wait for Spark.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from ticdc_lakehouse.errors import LakehouseError

COMMANDS = {
    "run": "run a job of the bundle on this machine",
    "status": "where each feed stands, and why a table stands still",
    "quarantine": "list, replay or dismiss messages that could not be decoded",
    "table": "pass over a DDL, or try again, where a table stands still",
    "maintain": "delete what is older than the feeds' retention, compact what stays",
    "generate": "a made-up changefeed in any protocol, into Kafka or a file",
    "decode": "decode messages (JSON lines) to events (JSON lines)",
    "inspect": "what messages are: protocol, events, values, every byte",
    "verify-stream": "recorded streams through the pipeline, gold compared with TiDB's answers",
    "demo": "Kafka, a feed of each protocol, the bundle's job, gold compared with TiDB's answers",
    "sql": "a Spark SQL prompt on the lake",
    "doctor": "check Python, Java, jars and ports",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; an error of ours is one line on stderr and exit code 2."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(prog="ticdc-lake", description="TiDB tables in the lakehouse.")
    choices = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        # Only the command that is called needs its arguments; the others are there for the list.
        added = choices.add_parser(name, help=summary, description=summary, add_help=given[:1] == [name])
        if given[:1] == [name]:
            command = _module(name)
            command.arguments(added)
    options = parser.parse_args(given)
    try:
        return int(_module(options.command).run(options))
    except LakehouseError as error:
        print(f"ticdc-lake {options.command}: {error}", file=sys.stderr)
        return 2


def _module(command: str):  # type: ignore[no-untyped-def]  # a module with `arguments` and `run`
    return importlib.import_module(f"{__name__}.{command.replace('-', '_')}")
