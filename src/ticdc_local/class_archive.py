"""An archive of Spark's classes (Java's class-data sharing), which `set_up` makes once: to read and check some 15,000
classes is a third of the CPU time that a process with Spark needs before its first results.

Java uses an archive only with the very class path and Java that it was made with. Without one everything runs, slower.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from ticdc_local.java import Java
from ticdc_local.launch import pyspark_folder


def archive_file(java: Java, jars: str) -> Path:
    """Where the archive for this Java and class path of jars lies, in Python's environment; it need not be there."""
    made_for = (java.executable, java.executable.stat().st_mtime_ns, jars, pyspark_folder())
    key = hashlib.sha256(repr(made_for).encode()).hexdigest()[:12]
    return Path(sys.prefix) / "share" / "ticdc-lakehouse" / f"classes-{key}.jsa"


def reading_options(archive: Path) -> tuple[str, ...]:
    """Java's options to use an archive; none if it is not there. Java says nothing if the archive does not fit."""
    return (f'"-XX:SharedArchiveFile={archive}"', _QUIET) if archive.is_file() else ()


def writing_options(archive: Path) -> tuple[str, ...]:
    """Java's options to write an archive of all classes that it has used when it ends."""
    return f'"-XX:ArchiveClassesAtExit={archive}"', _QUIET


_QUIET = "-Xlog:cds*=off"
