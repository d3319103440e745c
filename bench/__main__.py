"""``python -m bench [NAME …] [--rows N]``: the benchmarks of these `NAMES`, or all; 1 if a target is missed."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from bench import codec, planning
from bench.report import Target

NAMES = (
    *("codec", "planning", "memory", "loop", "silver", "gold", "tables", "fixed_cost"),
    *("pipeline", "history", "large_table", "sustained", "verify_source"),
)
"""In the order of their runs."""


def main() -> int:
    """Run the benchmarks that were asked for."""
    parser = argparse.ArgumentParser(prog="bench", description="Benchmarks with yardsticks of the same run.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all if none is given")
    parser.add_argument(
        "--rows",
        type=int,
        default=1_000_000,
        help="row changes of silver and memory; gold takes a tenth, tables and pipeline a fifth, sustained half, the "
        "loop three times as many, large_table and verify_source ten times",
    )
    parser.add_argument(
        "--dsn", help="a TiDB that verify_source may write into, without a password: mysql://root@127.0.0.1:4000/"
    )
    options = parser.parse_args()
    names = options.names or [name for name in NAMES if options.dsn or name != "verify_source"]
    if unknown := [name for name in names if name not in NAMES]:
        parser.error(f"expected any of {', '.join(NAMES)}, found {unknown[0]!r}")
    if "verify_source" in names and not options.dsn:
        parser.error("verify_source: --dsn is missing")
    found = codec.main() if "codec" in names else []
    found += planning.main() if "planning" in names else []
    on_spark = [name for name in NAMES if name in names and name not in ("codec", "planning")]
    if on_spark:
        found += _on_spark(on_spark, options.rows, options.dsn)
    print()
    for target in found:
        print(target)
    return 0 if all(target.met for target in found) else 1


def _on_spark(names: list[str], rows: int, dsn: str) -> list[Target]:
    # Codec and planning alone must not wait for Spark.
    from bench import (  # noqa: PLC0415
        fixed_cost,
        gold,
        history,
        large_table,
        loop,
        memory,
        pipeline,
        silver,
        sustained,
        tables,
        verify_source,
    )
    from bench.fresh_process import measured  # noqa: PLC0415

    runs: dict[str, Callable[[], list[Target]]] = {
        "silver": lambda: measured(silver.main, rows),
        "gold": lambda: measured(gold.main, max(1000, rows // 10)),
        "tables": lambda: measured(tables.main, max(1000, rows // 5)),
        "fixed_cost": lambda: measured(fixed_cost.main),
        "pipeline": lambda: pipeline.main(max(1000, rows // 5)),
        "history": lambda: measured(history.main),
        "large_table": lambda: measured(large_table.main, 10 * rows),
        "sustained": lambda: measured(sustained.main, max(1000, rows // 2)),
        "loop": lambda: measured(loop.main, max(30, 3 * rows // loop.RATE)),
        "memory": lambda: measured(memory.main, rows),
        "verify_source": lambda: measured(verify_source.main, 10 * rows, dsn),
    }
    return [target for name in names for target in runs[name]()]


if __name__ == "__main__":
    raise SystemExit(main())
