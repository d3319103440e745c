"""``ticdc-lake verify-stream``: a recorded stream through the whole pipeline, compared with TiDB's answers."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from ticdc_lakehouse.cli.place import named_values

_SHOWN = 20


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("folder", type=Path, help="folder with stream.json, message files and answers.jsonl.gz")
    parser.add_argument("--file", required=True, help="message file in it, such as craft.jsonl.gz")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="compare each Nth answer, and the last")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="a further feed option")
    parser.add_argument("--lake", type=Path, help="folder to leave the lake in (default: a temporary one)")


def run(options: argparse.Namespace) -> int:
    """Print each watermark and each differing cell; 1 if there is any."""
    given = named_values(options.option, "--option")
    if options.lake is not None:
        return _verify(options, given, options.lake)
    with tempfile.TemporaryDirectory(prefix="ticdc-lake-") as folder:
        return _verify(options, given, Path(folder))


def _verify(options: argparse.Namespace, given: dict[str, str], lake: Path) -> int:
    from ticdc_lakehouse.local.broker import Broker
    from ticdc_lakehouse.local.recorded import recorded_stream
    from ticdc_lakehouse.local.session import local_session
    from ticdc_lakehouse.local.verify import load_stream, verify

    stream = recorded_stream(options.folder, options.file, given)
    started = time.monotonic()
    with Broker(lake / "kafka") as broker:
        loaded = load_stream(local_session(lake), broker, stream, lake)
    print(f"{stream.messages}: loaded in {time.monotonic() - started:.1f} s", flush=True)
    equal = total = 0
    for verdict in verify(loaded, stream, options.every):
        total += 1
        equal += not verdict.differences
        state = "equal" if not verdict.differences else f"{len(verdict.differences)} differences"
        print(f"watermark {verdict.watermark}: {verdict.tables} tables, {verdict.rows} rows: {state}", flush=True)
        for difference in verdict.differences[:_SHOWN]:
            print(f"  {difference}")
        if len(verdict.differences) > _SHOWN:
            print(f"  and {len(verdict.differences) - _SHOWN} more")
    print(f"gold equals TiDB at {equal} of {total} watermarks ({time.monotonic() - started:.1f} s)")
    return 0 if equal == total else 1
