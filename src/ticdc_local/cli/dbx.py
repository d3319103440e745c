"""``ticdc-lake dbx``: the bundle's jobs as a deployment file of dbx."""

from __future__ import annotations

import argparse

from ticdc_local.cli.arguments import named_values, pairs_argument, project_argument, project_root
from ticdc_local.runner.dbx import FILE, deployment_text

WORKSPACE = "/Repos/data/ticdc-lakehouse"

EXAMPLES = """examples:
  ticdc-lake dbx
  ticdc-lake dbx --workspace /Repos/data/lake --var catalog=lab"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    project_argument(parser)
    parser.add_argument(
        "--workspace",
        default=WORKSPACE,
        metavar="PATH",
        help=f"folder of the workspace that holds notebooks and feed files (default: {WORKSPACE})",
    )
    pairs_argument(parser, "--var", "a variable of the bundle")


def run(options: argparse.Namespace) -> int:
    """Writes the file."""
    root = project_root(options)
    text = deployment_text(root, options.workspace, named_values(options.var, "--var"))
    (root / FILE).parent.mkdir(exist_ok=True)
    (root / FILE).write_text(text, encoding="utf-8")
    print(f"{FILE}: written; `make dbx-check` reads it with dbx")
    return 0
