"""``ticdc-lake doctor``: whether this machine has what the project needs."""

from __future__ import annotations

import argparse

from ticdc_local.cli.arguments import lake_root, place_arguments
from ticdc_local.doctor import Finding, examine


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    place_arguments(parser)
    parser.add_argument("--spark", action="store_true", help="also start a Spark session and count to ten")


def run(options: argparse.Namespace) -> int:
    """Print a line a finding; 1 if one is not good."""
    findings = examine(lake_root(options), start_spark=options.spark)
    print(text_of(findings))
    return 0 if all(finding.good for finding in findings) else 1


def text_of(findings: list[Finding]) -> str:
    """A line a finding: whether it is good, what was looked at, what was found."""
    width = max(len(finding.subject) for finding in findings)
    return "\n".join(f"{'good' if f.good else 'BAD ':4}  {f.subject:{width}}  {f.detail}" for f in findings)
