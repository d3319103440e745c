"""The Spark session that stands in for a Databricks cluster: one process, two cores, Delta, Kafka, 1 GB of heap."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.job_parameters import READS_ONLY_CONF, ROOT_CONF
from ticdc_lakehouse.sql.text import quoted
from ticdc_local.jars import Group, class_path
from ticdc_local.java import OPTION_VARIABLES, Java, find_java, serial_collector
from ticdc_local.launch import CONNECT_VARIABLES, archive_file, end_jvm, reading_options, spark_environment
from ticdc_local.temporary import temporary_folder

CORES = 2

# The JVM's best compiler comes ten times later than usual: on a few thousand rows most of what it compiles, plans and
# generated code, is used too rarely to be worth it. It took 45 % of the CPU time, and takes half of that.
_COMPILER = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)

# Young objects are nearly all that a small window makes: room for them, there from the start, halves the collections,
# and with this much for classes no full one comes while they are loaded. 6 % of the CPU time of sixteen windows.
_HEAP = ("-Xms700m", "-Xmn320m", "-XX:MetaspaceSize=256m")

_LOGGING = f"-Dlog4j2.configurationFile={(Path(__file__).parent / 'log4j2.properties').as_uri()}"

SETTINGS = {
    "spark.master": f"local[{CORES}]",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # A folder of a lake is one of this machine.
    "spark.hadoop.fs.defaultFS": "file:///",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Spark writes out every plan for the UI, also without one: 3 % of a small round as it is usually formatted.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Derby serves one process only: a second one blocks, then fails. Tables are registered by their folders instead.
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
    # Else a table that was not written for longer than its retention cannot be read at the version that is published.
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
    # Else the registration of a folder that another run renames at this moment makes a table without columns there.
    "spark.databricks.delta.createEmptySchemaTable.enabled": "false",
    # As many tasks as pay on two cores; Spark's 200 and Delta's 50 are meant for clusters.
    "spark.sql.shuffle.partitions": str(2 * CORES),
    "spark.databricks.delta.snapshotPartitions": "1",
    # Delta remembers tables with their query plans, ten thousand of them: in 1 GB of heap a long session ends full.
    "spark.databricks.delta.delta.log.cacheSize": "100",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(2 * CORES),
    # Java code made and compiled for each query costs more than it saves, up to some 100,000 rows: a window of three
    # small tables takes half the time without, one of 100,000 changes the same.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Join small shuffled parts into one task, rather than keep every core busy with next to nothing.
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    # A laptop's tables are small: to rewrite a touched file costs a MERGE less than a deletion vector beside it.
    "spark.databricks.delta.merge.deletionVectors.persistent": "false",
    # A Python worker holds one Arrow batch in and one out, so this bounds its memory: by count where messages are
    # small, by bytes where they are large.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(8 * 1024 * 1024),
    # Parquet looks at a page's size every 100 rows by default: 100 messages of 16 MB do not fit in a heap.
    "spark.hadoop.parquet.page.size.row.check.min": "1",
    # Read at once, a row group of 128 MB is as much memory outside the heap for each of Hadoop's reading threads, which
    # keep it. At 1 GB such a thread dies, and its query waits five minutes for it, then fails. It reads no faster.
    "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",
}


def local_session(
    lake_root: Path, *, app_name: str = "ticdc-lake", scratch: Path | None = None, java_options: Sequence[str] = ()
) -> SparkSession:
    """Returns the process's Spark session, started if necessary (about 3 s).

    A process has one JVM: a second call returns the same session, which forgets the names of another lake's tables.
    With ``scratch``, which has Spark's warehouse and scratch folders then, it leaves the folder of the lake as it is.
    Else they are in ``lake_root`` or, where that can only be read, in a temporary folder.
    Raises ConfigError without a usable Java or without the right jars, where Java does not start, and where
    ``lake_root`` cannot be a folder.
    """
    root = lake_root.absolute()
    before = _lake_before()
    java = find_java()
    settings = SETTINGS | _places(root, scratch, java, java_options)
    conf = SparkConf().setAppName(app_name).setAll([*settings.items()])
    with spark_environment(java), _signal_handler_kept():
        _start_java(conf)
        session = SparkSession.builder.config(conf=conf).getOrCreate()
    for name in CONNECT_VARIABLES:  # PySpark's functions look at them as long as the process runs
        os.environ.pop(name, None)
    _set_active(session)
    if before not in (None, str(root)):
        forget_lake(session)
    return session


def _start_java(conf: SparkConf) -> None:
    """Starts the process's JVM if there is none. What it prints, as Delta's VACUUM does, comes to stderr through this
    process, which can silence it: stdout is for results. Raises ConfigError if it does not start."""
    if SparkContext._gateway is not None:
        return
    printed, output = os.pipe()
    threading.Thread(target=_copy_to_stderr, args=(printed,), name="java-output", daemon=True).start()
    try:
        gateway = launch_gateway(conf, {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
    except PySparkRuntimeError:
        given = [name for name in OPTION_VARIABLES if os.environ.get(name)]
        advice = f"; look at {' and '.join(given)}, from which it takes options" if given else ""
        raise ConfigError(f"Java ended before Spark had started; what it printed says why{advice}") from None
    finally:
        os.close(output)
    SparkContext._ensure_initialized(gateway=gateway)


def end_java() -> None:
    """Ends the process's JVM, if there is one, and waits until it has: it writes an archive of its classes then."""
    if SparkContext._gateway is not None:
        end_jvm(SparkContext._gateway)


def _copy_to_stderr(pipe: int) -> None:
    """Copies what arrives in a pipe until its other end is closed; drops it where the shell closed stderr (2>&-)."""
    with open(pipe, "rb", buffering=0) as printed, suppress(OSError):
        while text := printed.read(65536):
            if sys.stderr is not None:
                os.write(2, text)


def _lake_before() -> str | None:
    """Returns the folder of the lake that the process's session has, if there is a session. It is the first one that
    was made, whichever is active in this thread."""
    session = SparkSession._instantiatedSession
    try:
        return None if session is None else session.conf.get(ROOT_CONF, None)
    except PySparkRuntimeError:
        return None


def forget_lake(session: SparkSession) -> None:
    """Makes the session's catalog forget the tables of its lake, whose files stay: it can have another one."""
    for schema in session.sql("SHOW SCHEMAS IN spark_catalog").collect():
        if schema[0].partition("_")[0] in set(Layer):
            session.sql(f"DROP SCHEMA spark_catalog.{quoted(schema[0])} CASCADE")


def _set_active(session: SparkSession) -> None:
    """Makes a session that another thread may have started active in this thread: `toTable` looks for the catalog in
    the settings of the thread's active session, and without one takes Delta's table for a mere folder."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)


def session_settings(lake_root: Path) -> dict[str, str]:
    """Returns the settings of such a session except its master: for a server of Spark Connect, or for executors of
    their own."""
    settings = SETTINGS | _places(lake_root.absolute(), None, find_java())
    return {name: value for name, value in settings.items() if name != "spark.master"}


@contextmanager
def _signal_handler_kept() -> Iterator[None]:
    """Keeps the process's handler of SIGINT, in whose place PySpark puts its own."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)


def _places(lake_root: Path, scratch: Path | None, java: Java, java_options: Sequence[str] = ()) -> dict[str, str]:
    own = scratch or own_folder(lake_root)
    jars = class_path(Group.SPARK)
    classes = reading_options(archive_file(java, jars))
    return {
        # By this ticdc_lakehouse.entry knows that tables are in this folder, not in a catalog's storage.
        ROOT_CONF: str(lake_root),
        READS_ONLY_CONF: "false" if scratch is None else "true",  # else a later session keeps that of the one before
        "spark.driver.extraJavaOptions": " ".join(
            (_LOGGING, *_COMPILER, *_HEAP, *serial_collector(), *classes, *java_options)
        ),
        "spark.executor.extraJavaOptions": _LOGGING,
        "spark.sql.warehouse.dir": str(own / "warehouse"),
        "spark.local.dir": str(own / "scratch"),
        "spark.driver.extraClassPath": jars,
        "spark.executor.extraClassPath": jars,
    }


def own_folder(lake_root: Path) -> Path:
    """Returns the folder of Spark's own files: the lake, or a temporary one where the lake can only be read. Raises
    ConfigError if the lake is no folder and cannot be created."""
    try:
        (lake_root / "scratch").mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=lake_root / "scratch"):
            return lake_root
    except OSError as error:
        if not lake_root.is_dir():
            raise ConfigError(f"{lake_root}: expected a folder that can be written: {error.strerror}") from None
    return temporary_folder()
