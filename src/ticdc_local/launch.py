"""What Spark's JVM must find when it starts: the environment, and an archive of Spark's classes (class-data sharing).

`set_up` makes the archive once: to read and check some 15,000 classes is a third of the CPU time that a process with
Spark needs before its first results. Java uses an archive only with the very class path and Java that it was made with.
Without one everything runs, slower.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ticdc_codec.errors import ConfigError
from ticdc_local.java import Java

CONNECT_VARIABLES = ("SPARK_REMOTE", "SPARK_CONNECT_MODE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_API_MODE")
"""Environment variables that make PySpark take any session for a client of Spark Connect."""
_CLASS_PATH_VARIABLES = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH")
"""What they name is on the class path: with a cluster's core-site.xml a lake's folder would be one of HDFS."""


def pyspark_folder() -> Path:
    """Returns where pyspark is installed; importing it is not needed to know. Raises ConfigError if it is not
    installed."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ConfigError("pyspark is not installed; expected the packages of requirements.lock: make setup")
    return Path(spec.origin).parent


@contextmanager
def spark_environment(java: Java) -> Iterator[None]:
    """Lets a Spark JVM be started within it; afterwards ``os.environ`` is as it was.

    It overrides what another Spark on this machine may have left in the user's shell.
    """
    variables = {
        "JAVA_HOME": str(java.spark_home()),
        "SPARK_HOME": str(pyspark_folder()),
        # Nothing of a folder that may be on this machine; and Java shares no classes where one is on the class path.
        "SPARK_CONF_DIR": str(files("ticdc_local") / "no_spark_conf"),
        # A laptop's host name often does not resolve, or resolves to a network that has gone.
        "SPARK_LOCAL_IP": "127.0.0.1",
        # Otherwise workers run the python3 that is first on PATH.
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": "pyspark-shell",
    }
    unset = (*CONNECT_VARIABLES, *_CLASS_PATH_VARIABLES)
    before = {name: os.environ.get(name) for name in (*variables, *unset)}
    os.environ.update(variables)
    for name in unset:
        os.environ.pop(name, None)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def end_jvm(gateway: Any) -> None:
    """Ends the JVM that PySpark's ``launch_gateway`` started, and waits until it has."""
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def archive_file(java: Java, jars: str) -> Path:
    """Returns where the archive for this Java and class path of jars lies, in Python's environment; it need not
    exist."""
    made_for = (java.executable, java.executable.stat().st_mtime_ns, jars, pyspark_folder())
    key = hashlib.sha256(repr(made_for).encode()).hexdigest()[:12]
    return Path(sys.prefix) / "share" / "ticdc-lakehouse" / f"classes-{key}.jsa"


def reading_options(archive: Path) -> tuple[str, ...]:
    """Returns Java's options to use an archive; none if it does not exist. Java silently ignores one that does not
    fit."""
    return (f'"-XX:SharedArchiveFile={archive}"', _QUIET) if archive.is_file() else ()


def writing_options(archive: Path) -> tuple[str, ...]:
    """Returns Java's options to write an archive of all classes that it has used when it ends."""
    return f'"-XX:ArchiveClassesAtExit={archive}"', _QUIET


_QUIET = "-Xlog:cds*=off"
