"""What Spark's JVM must find in the environment when it starts."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from ticdc_codec.errors import ConfigError
from ticdc_local.java import Java


def pyspark_folder() -> Path:
    """Where pyspark is installed; importing it is not needed to know. Raises ConfigError if it is not installed."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise ConfigError("pyspark is not installed; expected the packages of requirements.lock: make setup")
    return Path(found.origin).parent


@contextmanager
def spark_environment(java: Java) -> Iterator[None]:
    """Within it a Spark JVM may be started; afterwards ``os.environ`` is as it was.

    It overrides what another Spark on this machine may have left in the user's shell.
    """
    wanted = {
        "JAVA_HOME": str(java.spark_home()),
        "SPARK_HOME": str(pyspark_folder()),
        # Nothing of a folder that may be on this machine; and Java shares no classes where one is on the class path.
        "SPARK_CONF_DIR": str(files("ticdc_local") / "no_spark_conf"),
        # A laptop's host name often does not resolve, or resolves to a network that has gone.
        "SPARK_LOCAL_IP": "127.0.0.1",
        # Else the workers take whatever python3 is on PATH.
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": "pyspark-shell",
    }
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
