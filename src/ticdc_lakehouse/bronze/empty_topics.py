"""Empty topics: those that Kafka never had a message in. No watermark comes there that would show how far it is read.

Kafka is asked for their ends once more, when all that a run landed is read. A topic that is still empty then had no row
when the watermarks of the others were read: bronze notes so (``listing``), and gold need not wait for the next run.

That is optional: where it fails, a warning says so, and a later batch shows what this one did not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from ticdc_lakehouse import stream_checkpoint
from ticdc_lakehouse.bronze.micro_batch import MicroBatches, TopicPartition
from ticdc_lakehouse.catalog import Lake
from ticdc_lakehouse.error_text import first_line, java_root_cause
from ticdc_lakehouse.log import warn
from ticdc_lakehouse.sql.text import literal


def confirm_empty_topics(
    lake: Lake,
    feed: str,
    batches: MicroBatches,
    is_waited_for: Callable[[TopicPartition], bool],
    ends_now: Callable[[], Mapping[TopicPartition, int]],
) -> None:
    """Notes for the newest batch which topics were still empty when it and all before it were read. Warns if Kafka does
    not answer, or Spark fails: maintenance may rewrite the table of offsets meanwhile.

    ``ends_now`` returns the end offsets that Kafka has; it is asked only if there is an empty topic beside others, not
    yet noted as such. Only topics count that have a partition for which ``is_waited_for`` is true.
    """
    try:
        _confirm(lake, batches, is_waited_for, ends_now)
    except (PySparkException, Py4JError) as error:
        # All is landed by now. What keeps bronze from reading or writing ends its next run.
        warn("bronze", "empty topics not confirmed", feed=feed, reason=java_root_cause(error) or first_line(error))


def _confirm(
    lake: Lake,
    batches: MicroBatches,
    is_waited_for: Callable[[TopicPartition], bool],
    ends_now: Callable[[], Mapping[TopicPartition, int]],
) -> None:
    number = stream_checkpoint.planned(batches.checkpoint)
    ends = {} if number is None else stream_checkpoint.planned_offsets(batches.checkpoint, number)
    waited_for = {partition[0] for partition in ends if is_waited_for(partition)}
    empty = empty_topics(ends) & waited_for
    if number is None or not empty or empty == waited_for:
        return
    batch = batches.first_batch + number
    unconfirmed = f"batch = {batch} AND listing <= {batch} AND {_of(empty)}"
    if lake.rows(f"SELECT 1 AS row FROM {batches.offsets_table} WHERE {unconfirmed} LIMIT 1"):
        still_empty = empty & empty_topics(ends_now())
        if still_empty:
            noted = f"batch = {batch} AND {_of(still_empty)}"
            lake.spark.sql(f"UPDATE {batches.offsets_table} SET listing = {batch + 1} WHERE {noted}").collect()


def empty_topics(ends: Mapping[TopicPartition, int]) -> set[str]:
    """Returns the topics whose partitions all end at offset 0."""
    return {topic for topic, _ in ends} - {topic for (topic, _), end in ends.items() if end > 0}


def _of(topics: set[str]) -> str:
    return f"topic IN ({', '.join(map(literal, sorted(topics)))})"
