"""Refuses to land messages after something was restored from an older copy: bronze's checkpoint, its tables, or both.

Numbers of batches would be given again, and gold would pass by what comes under a number that it has seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse import stream_checkpoint
from ticdc_lakehouse.bronze.micro_batch import MicroBatches
from ticdc_lakehouse.catalog import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredCopyCheck:
    """Compares a feed's checkpoint of bronze with its tables, and both with silver and gold."""

    lake: Reader
    feed: str
    batches: MicroBatches
    last_used: Callable[[int], int]
    """Returns the newest batch that silver or gold has after the given one, else the given one."""

    def run(self) -> None:
        """Raises ConfigError if the checkpoint ends before bronze's tables; if the tables lack a batch that the
        checkpoint has committed; or if both end before silver or gold."""
        way_out = "bronze continues where its tables end"
        stream_checkpoint.refuse_older(f"feed {self.feed}: bronze", self.batches.checkpoint, self._batch_after, way_out)

    def _batch_after(self, _query: str, last: int) -> int | None:
        """Returns the newest batch of the query that the tables have; None if they have none after ``last``."""
        # Asked first: another run may append meanwhile.
        committed = stream_checkpoint.next_batch(self.batches.checkpoint) - 1
        since = {self.batches.messages_table: last + 1, self.batches.offsets_table: max(committed, 0)}
        batches = (
            f"SELECT max(batch) AS batch FROM {table} WHERE batch >= {self.batches.first_batch + first}"
            for table, first in since.items()
        )
        [row] = self.lake.rows(f"SELECT max(batch) AS batch FROM ({' UNION ALL '.join(batches)})")
        newest = None if row["batch"] is None else int(row["batch"]) - self.batches.first_batch
        if newest is None:
            self._refuse_older_tables(committed)
        if newest is None or newest <= last:
            self._refuse_both_older(self.last_used(self.batches.first_batch + last))
        return newest

    def _refuse_older_tables(self, committed: int) -> None:
        """Raises ConfigError if the newest batch that the checkpoint has committed read any partition: the tables,
        which lack it, are older. A batch in which the pattern matched no topic adds nothing to them."""
        if committed >= 0 and stream_checkpoint.planned_offsets(self.batches.checkpoint, committed):
            raise ConfigError(
                f"feed {self.feed}: bronze lacks batch {self.batches.first_batch + committed}, with which its "
                f"checkpoint {self.batches.checkpoint} ends: its tables were restored from an older copy, and what "
                f"came since would be missing. Delete that folder and silver_{self.feed} beside it: bronze continues "
                "where its tables end, and silver decodes anew what bronze keeps"
            )

    def _refuse_both_older(self, used: int) -> None:
        """Raises ConfigError if silver or gold has the batch ``used``, and the checkpoint ends before it: new batches
        would have numbers that they have seen."""
        newest = stream_checkpoint.planned(self.batches.checkpoint)  # another run may have planned it meanwhile
        last = self.batches.first_batch + (-1 if newest is None else newest)
        if used > last:
            raise ConfigError(
                f"feed {self.feed}: bronze and its checkpoint {self.batches.checkpoint} end with batch {last}, silver "
                f"or gold has batch {used}: both were restored from an older copy, and gold would pass by what comes "
                f"now. Delete that folder and silver_{self.feed} beside it: bronze continues where its tables end, "
                f"with batch {used + 1}, and silver decodes anew what bronze keeps"
            )
