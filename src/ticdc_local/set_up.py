"""``make jars``: fetches the jars and makes the archive of their classes, so that no command has to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
from pyspark.sql import SparkSession

from ticdc_codec.errors import LakehouseError
from ticdc_local.jars import Group, class_path, jar_files, jars_folder
from ticdc_local.java import find_java
from ticdc_local.launch import archive_file, writing_options
from ticdc_local.session import end_java, local_session
from ticdc_local.signals import INTERRUPTED, SIGNALS, say_interrupted

_MAKING_SECONDS = 600


def make_archive() -> Path:
    """Returns the archive of Spark's classes, created unless it exists. Raises OSError or SubprocessError where that
    fails."""
    archive = archive_file(find_java(), class_path(Group.SPARK))
    if not archive.is_file():
        archive.parent.mkdir(parents=True, exist_ok=True)
        # Written aside and renamed: another process may be starting Spark.
        draft = archive.with_name(f"{os.getpid()}-{archive.name}")
        command = [sys.executable, "-m", __spec__.name, str(draft)]
        subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL, timeout=_MAKING_SECONDS)
        draft.replace(archive)
    return archive


def _use_spark(draft: Path) -> None:
    """Uses, in a session that writes the archive when it ends, what a run uses: streams, Python workers, MERGE."""
    with tempfile.TemporaryDirectory() as folder:
        session = local_session(Path(folder) / "lake", java_options=writing_options(draft))
        source, target, checkpoint = (str(Path(folder) / name) for name in ("source", "target", "checkpoint"))
        for path in (source, target):
            session.range(9).selectExpr("id", "CAST(id AS STRING) AS text").write.format("delta").save(path)
        _stream(session, source, target, checkpoint)
        session.sql(
            f"MERGE INTO delta.`{target}` t USING (SELECT id, max_by(text, id) AS text FROM delta.`{source}` "
            "GROUP BY id) s ON t.id = s.id WHEN MATCHED AND s.id = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET * "
            "WHEN NOT MATCHED THEN INSERT *"
        )
        session.stop()
        end_java()


def _stream(session: SparkSession, source: str, target: str, checkpoint: str) -> None:
    def unchanged(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        return batches

    rows = session.readStream.format("delta").load(source).mapInArrow(unchanged, "id LONG, text STRING")
    writer = rows.writeStream.format("delta").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start(target).awaitTermination()


def _make_archive_if_possible() -> None:
    try:
        print(f"Spark's classes in {make_archive()}")
    except (OSError, subprocess.SubprocessError) as error:
        print(f"no archive of Spark's classes, which only makes Spark start faster: {error}", file=sys.stderr)


def _end(*_: object) -> NoReturn:
    """Ends the process from within, so that no folder is left half full; of a KeyboardInterrupt py4j prints a trace."""
    say_interrupted("jars", program="make")
    sys.exit(INTERRUPTED)


def main() -> int:
    """Fetches, checks and makes everything; with an argument, only the archive (in a process of its own)."""
    if len(sys.argv) > 1:
        _use_spark(Path(sys.argv[1]))
        return 0
    try:
        for group in Group:
            print(f"{len(jar_files(group))} jars of {group} in {jars_folder()}")
        _make_archive_if_possible()
    except (LakehouseError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    for number in SIGNALS:
        signal.signal(number, _end)
    sys.exit(main())
