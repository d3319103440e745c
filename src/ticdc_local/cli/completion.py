"""``ticdc-lake completion``: what a shell completes after Tab, as a script for it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import shtab

from ticdc_codec.protocols import PROTOCOLS, spelling
from ticdc_local.cli import COMMANDS, full_parser
from ticdc_local.cli.arguments import local_path
from ticdc_testkit.workload import WORKLOADS

SHELLS = ("bash", "zsh", "fish")
FEEDS = "ls resources/feeds 2>/dev/null | grep -x '[^.]*[.]yml' | cut -d. -f1"
"""A shell's own command, since one of Python would keep whoever presses Tab waiting for its imports. Without $, which
fish looks at in shtab's quotes."""
CHOICES = {"protocol": [*map(spelling, PROTOCOLS)], "workload": [*WORKLOADS]}
"""Words that a command looks up by itself."""
EXAMPLES = """examples:
  source <(ticdc-lake completion bash)                   in ~/.bashrc
  ticdc-lake completion zsh > ~/.zfunc/_ticdc-lake       with fpath+=~/.zfunc before compinit in ~/.zshrc
  ticdc-lake completion fish > ~/.config/fish/completions/ticdc-lake.fish"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("shell", choices=SHELLS, help="what the script is for")


def run(options: argparse.Namespace) -> int:
    """Prints the script."""
    parser = full_parser([*COMMANDS])
    for action in _actions(parser):
        if action.dest in CHOICES:
            action.choices = CHOICES[action.dest]
        elif action.dest in ("feed", "name"):
            action.complete = shtab.cmd(FEEDS)  # type: ignore[attr-defined]
        elif action.type is local_path or action.dest in ("file", "folder"):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, options.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yields the arguments of a parser, and of its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
