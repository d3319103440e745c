"""``ticdc-lake inspect``: what messages are, for people."""

from __future__ import annotations

import argparse
import sys
from base64 import b64decode
from itertools import chain, islice
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from ticdc_codec.errors import ConfigError
from ticdc_codec.inspection import Inspector, Node, Style
from ticdc_codec.protocols import SPELLINGS, Pair
from ticdc_codec.recognition import recognise
from ticdc_local.cli.arguments import named_values, pairs_argument
from ticdc_local.cli.messages import messages_in, opened

_FIRST = 48
"""Messages by which the protocol of a file is recognised."""
_COLOURS = {
    Style.PLAIN: "",
    Style.HEAD: "bold",
    Style.NAME: "cyan",
    Style.TYPE: "magenta",
    Style.NOTE: "dim",
    Style.VALUE: "green",
    Style.OLD: "red",
    Style.NEW: "bold green",
    Style.BYTES: "yellow",
    Style.ERROR: "bold red",
}
_UNLIMITED_WIDTH = 1 << 16
"""Columns of an output that is not a terminal, so that no line is wrapped."""
EXAMPLES = """examples:
  ticdc-lake generate --workload shop --protocol craft --file - --rows 5 | ticdc-lake inspect
  kcat -b localhost:9092 -t crm -C -c 1 -e -q -f %s | ticdc-lake inspect --explain
  ticdc-lake inspect value.bin --key @key.bin --protocol open-protocol"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("--protocol", help=f"one of {SPELLINGS} (default: as the bytes show)")
    pairs_argument(parser, "--option", "a sink-uri option, or time-zone")
    parser.add_argument("--explain", action="store_true", help="show what each byte is")
    parser.add_argument("--key", metavar="BASE64|@FILE", help="the key of a file that is one message's value")
    parser.add_argument(
        "file", nargs="?", help="JSON lines as for decode or of kcat -J, JSON values one a line, or one value as it "
        "is in Kafka; default, and -: stdin"
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Prints a tree for each message; 1 if one does not decode, or there is no message."""
    with opened(options.file) as file:
        messages = iter(messages_in(file.read(), _key(options.key)))
    first = [*islice(messages, _FIRST)]
    inspector = Inspector(
        options.protocol,
        named_values(options.option, "--option"),
        others=recognise(first) if len(first) > 1 else None,
        explain=options.explain,
    )
    decoded = [_show(inspector, message, number) for number, message in enumerate(chain(first, messages), start=1)]
    if not decoded:
        print("there is no message to inspect", file=sys.stderr)
    return 0 if decoded and all(decoded) else 1


def _show(inspector: Inspector, message: Pair, number: int) -> bool:
    inspection = inspector.inspect(message, f"message {number}")
    print_tree(inspection.tree, sys.stdout)
    return inspection.decoded


def print_tree(node: Node, file: TextIO | None) -> None:
    """Prints the tree, wrapped at the terminal's width; in colours where rich finds a terminal without NO_COLOR.
    Nothing is printed where the shell closed standard output (``>&-``), of which Python makes None."""
    if file is None:
        return
    _Console(file=file, highlight=False, width=None if file.isatty() else _UNLIMITED_WIDTH).print(_branch(node))


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leaves the end to `ticdc_local.cli`; rich would end the process with code 1."""
        raise BrokenPipeError


def _branch(node: Node) -> Tree:
    line = Text(" ").join(Text(piece, style=_COLOURS[style]) for piece, style in node.pieces if piece)
    branch = Tree(line, guide_style="dim")
    branch.children += map(_branch, node.children)
    return branch


def _key(given: str | None) -> bytes | None:
    """Returns the bytes of ``--key``. Raises ConfigError."""
    if given is None:
        return None
    try:
        return Path(given[1:]).read_bytes() if given.startswith("@") else b64decode(given, validate=True)
    except (OSError, ValueError) as error:
        raise ConfigError(f"--key: expected base64 or @ and the name of a file: {error}") from None
