"""What the notebooks and the command line call: one layer's run for one feed, from the job's parameters. `widgets` has
the notebooks of single tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ticdc_codec.batch import SchemaName
from ticdc_codec.errors import AttentionError, ConfigError, LakehouseError
from ticdc_codec.event import Column
from ticdc_codec.protocols import protocol_named
from ticdc_codec.traits import ProtocolTraits
from ticdc_lakehouse import job_parameters
from ticdc_lakehouse.bronze.landing import (
    KafkaSource,
    Landed,
    create_tables,
    has_committed_batch,
    land,
    landed_messages,
    messages_table,
)
from ticdc_lakehouse.catalog import Lake, Layer, deployed_lake  # noqa: F401 (analysts' notebooks import it from here)
from ticdc_lakehouse.config.feed import Feed, feed_file, load_feed
from ticdc_lakehouse.config.layer_settings import decoding_of, gold_config_of, thresholds_of
from ticdc_lakehouse.config.security import kafka_source_options
from ticdc_lakehouse.gold.feed_completeness import waits_for
from ticdc_lakehouse.gold.maintenance import Maintained, maintain
from ticdc_lakehouse.gold.naming import check_feed_name
from ticdc_lakehouse.gold.overrides import OverrideAction, override
from ticdc_lakehouse.gold.state import published_batch, published_zone
from ticdc_lakehouse.gold.time_zones import check_time_zones, check_zone
from ticdc_lakehouse.gold.windows import Applied, apply
from ticdc_lakehouse.log import configure_unless_done, timed
from ticdc_lakehouse.ops import alarm, feed_views, retention, status
from ticdc_lakehouse.ops.feed_tables import create_feed_tables
from ticdc_lakehouse.ops.load import Loaded, load
from ticdc_lakehouse.ops.load_options import LoadOptions, read_load_options
from ticdc_lakehouse.ops.verify.results import Verified
from ticdc_lakehouse.ops.verify.verification import VerifySettings, verify
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import Published, TableState
from ticdc_lakehouse.run_lock import exclusive_run
from ticdc_lakehouse.silver import events_table, external_schemas, quarantine
from ticdc_lakehouse.silver.decode_stream import Decoded, Decoding, check_not_lost, decode, stream
from ticdc_lakehouse.silver.decoding_zone import note_zone, noted_zone
from ticdc_lakehouse.silver.first_messages import check_protocol, check_same_protocol, note_protocol
from ticdc_lakehouse.silver.quarantine import Replayed, positions_of
from ticdc_lakehouse.tidb.session import DSN_FORM, Address, Secret, Snapshot, SnapshotAt, address_of

RUN_FAILURES = (LakehouseError, PySparkException, Py4JError, OSError)
"""What a run of one feed may raise while the other feeds continue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One feed in one lake."""

    lake: Lake
    feed: Feed
    secret: Secret
    continuous: bool = False
    max_offsets_per_trigger: int | None = None
    until_tso: int | None = None

    @classmethod
    def from_widgets(cls, spark: SparkSession, dbutils: Any) -> Run:
        """Returns the run that a notebook's widgets describe. Raises ConfigError for a parameter or feed file that is
        wrong."""
        configure_unless_done()
        return cls.from_parameters(spark, dbutils.widgets.getAll(), dbutils.secrets.get)

    @classmethod
    def from_parameters(cls, spark: SparkSession, parameters: Mapping[str, str], secret: Secret) -> Run:
        """Returns the run that job parameters describe: the names of ``resources/ticdc_feed.job.yml``."""
        path = feed_file(Path(job_parameters.given(parameters, "feeds_root")), job_parameters.given(parameters, "feed"))
        feed = load_feed(path, bootstrap_servers=parameters.get("bootstrap_servers") or None)
        lake = job_parameters.lake_from(spark, parameters)
        return cls(
            lake=lake,
            feed=feed,
            secret=secret,
            continuous=job_parameters.choice(parameters, "trigger", ("available_now", "continuous")) == "continuous",
            max_offsets_per_trigger=job_parameters.number(parameters, "max_offsets_per_trigger"),
            until_tso=job_parameters.number(parameters, "until_tso"),
        )

    def bronze(self) -> Landed:
        """Lands what Kafka has. Raises ConfigError if another process runs it, as do the other layers, and for a new
        feed whose name is taken."""
        source = KafkaSource(
            feed=self.feed.name,
            kafka_options={
                **self.feed.kafka_options,
                **kafka_source_options(self.feed.security, self.secret, on_databricks=self.lake.on_databricks),
            },
            starting_offsets=self.feed.starting_offsets,
            servers_setting=self.feed.servers_setting,
        )
        with self._exclusive(Layer.BRONZE), timed("bronze", "landed", feed=self.feed.name) as fields:
            check_feed_name(self.lake, self.feed.name)
            if not has_committed_batch(self.lake, self.feed.name):  # before: this run may fail, or never end
                create_tables(self.lake, self.feed.name)
                feed_views.show_landed_feeds(self.lake)
            landed = land(
                self.lake,
                source,
                continuous=self.continuous,
                max_offsets_per_trigger=self.max_offsets_per_trigger,
                last_used=self._last_used,
                is_waited_for=partial(waits_for, self.gold_config),
            )
            fields |= {"batches": landed.batches, "messages": landed.messages}
            return landed

    def _last_used(self, after: int) -> int:
        """Returns the newest bronze batch that silver or gold has; ``after`` if that is not above it."""
        lake, feed = self.lake, self.feed.name
        return max(published_batch(lake, feed, after), events_table.last_batch(lake, feed, after))

    def silver(self) -> Decoded:
        """Decodes what bronze has. Raises ConfigError if the protocol cannot be decoded continuously, and if the first
        messages are of another one."""
        if self._traits.external_schemas and self.continuous:
            raise ConfigError(
                f"feed {self.feed.name}: silver of protocol {self.feed.protocol} runs with trigger available_now: "
                "between runs it learns the schemas that rows need"
            )
        with self._exclusive(Layer.SILVER), timed("silver", "decoded", feed=self.feed.name) as fields:
            self._check_ran(Layer.BRONZE, messages_table(self.feed.name))
            decoded = self._decode()
            fields |= {"batches": decoded.batches, "events": decoded.events, "quarantined": decoded.quarantined}
            return decoded

    def _check_ran(self, layer: Layer, table: str) -> None:
        """Raises ConfigError if a layer has not run for the feed: it would have made the table."""
        if not self.lake.exists(layer, table):
            raise ConfigError(f"feed {self.feed.name}: {layer} has not run for this feed: run it first")

    def _decode(self) -> Decoded:
        decoding = self.decoding
        check_protocol(self.lake, decoding)
        self._check_zone()
        if self._traits.external_schemas:
            decoded = external_schemas.decode(self.lake, decoding)
        else:
            decoded = decode(self.lake, decoding, continuous=self.continuous)
        if decoded.events > (decoded.quarantined or 0):
            note_protocol(self.lake, decoding)
        return decoded

    def _check_zone(self) -> None:
        """Raises ConfigError if silver wrote texts of instants in another zone than the feed has now, or would write
        the first ones in one that Spark does not know."""
        if not self._traits.sends_instants:
            return
        checkpoint = stream(self.lake, self.feed.name)
        noted = noted_zone(checkpoint)
        former = noted or published_zone(self.lake, self.feed.name)
        check_zone(self.gold_config, former)
        # Before the first message the zone may still be corrected. A continuous run may get one at any time.
        if noted is None and (former or self.continuous or landed_messages(self.lake, self.feed.name)):
            check_time_zones(self.lake, self.gold_config)
            note_zone(checkpoint, self.gold_config.time_zone)

    def gold(self, known: Published | None = None) -> Applied:
        """Applies what is complete. ``known`` is the state that this process published last (`Applied.state`), if no
        run failed since."""
        with self._exclusive(Layer.GOLD), timed("gold", "applied", feed=self.feed.name) as fields:
            if known is None:
                self._check_ran(Layer.SILVER, events_table.table_name(self.feed.name))
                check_time_zones(self.lake, self.gold_config)
            applied = apply(
                self.lake, self.gold_config, until_tso=self.until_tso, known=known, source=self._row_snapshot_at()
            )
            feed_views.create_views(self.lake, self.feed.name)
            fields |= {"from_tso": applied.from_tso, "tso": applied.tso, "row_changes": applied.row_changes}
            fields |= {"tables": applied.merged, "blocked": len(applied.blocked), "waiting_on": applied.waiting_on}
            return applied

    def alarm(self) -> None:
        """Raises AttentionError if the feed passes a threshold of its section ``alarm``, with a sentence for each."""
        problems = alarm.problems(self.lake, self.feed.name, thresholds_of(self.feed), self.gold_config.retired)
        if problems:
            raise AttentionError(f"feed {self.feed.name} needs attention: {'; '.join(problems)}")

    def maintain(self) -> Maintained:
        """Deletes what is older than the feed's retention, compacts what stays, and renews the views over all feeds if
        the tables of one were dropped. Where another process runs bronze or silver, only the retention of that layer is
        put off."""
        with self._exclusive(Layer.GOLD), timed("ops", "maintained", feed=self.feed.name) as fields:
            maintained = maintain(self.lake, self.gold_config)
            feed_views.repair_views(self.lake)
            maintained = replace(maintained, put_off=tuple(self._retain()))
            fields |= {"since": maintained.since, "tables": maintained.compacted, "dropped": len(maintained.dropped)}
            return maintained

    def _retain(self) -> Iterator[str]:
        """Deletes what bronze and silver need not keep, where the feed has a retention. Yields why that was not done
        for a layer in which another process is at work."""
        days = {
            Layer.BRONZE: self.feed.bronze.retention_days,
            Layer.SILVER: self.feed.silver.retention_days,
        }
        for layer, retain in ((Layer.BRONZE, retention.retain_bronze), (Layer.SILVER, retention.retain_silver)):
            if (most := days[layer]) is None:
                continue
            try:
                with self._exclusive(layer):
                    retain(self.lake, self.feed.name, most)
            except ConfigError as error:
                yield str(error)

    def _create_tables(self) -> None:
        """Creates what commands need that may be used before the feed's first run. Raises ConfigError for a feed that
        bronze or silver has lost: the next run must still find that."""
        check_feed_name(self.lake, self.feed.name)
        check_not_lost(self.lake, self.feed.name)
        create_feed_tables(self.lake, self.feed.name)

    def quarantined(self) -> DataFrame:
        """Returns the messages that could not be decoded and that nothing was done about, with position, reason and
        detail.

        Creates nothing."""
        return quarantine.open_messages(self.lake, self.feed.name)

    def replay(self, messages: Sequence[str]) -> Replayed:
        """Decodes quarantined messages again; the next run of gold puts their rows in place.

        ``messages``: each one's ``topic/partition/offset``, or ``all``. Raises ConfigError for anything else, and if
        bronze or silver has lost the feed.
        """
        chosen = positions_of(messages)
        self._create_tables()
        decoding = self.decoding
        check_same_protocol(self.lake, decoding)
        self._check_zone()
        with timed("ops", "replayed", feed=self.feed.name) as fields:
            replayed = quarantine.replay(self.lake, decoding, chosen)
            fields |= {"decoded": replayed.decoded, "still_open": replayed.still_open}
            return replayed

    def dismiss(self, messages: Sequence[str], reason: str) -> int:
        """Records that quarantined messages, named as in ``replay``, will not be decoded, and why. Returns their
        number.

        Raises ConfigError as ``replay``, and if it is not said why.
        """
        chosen = positions_of(messages)
        self._create_tables()
        with timed("ops", "dismissed", feed=self.feed.name, reason=reason) as fields:
            fields["messages"] = dismissed = quarantine.dismiss(self.lake, self.feed.name, chosen, reason)
            return dismissed

    def override(self, table: str, action: str, reason: str) -> TableState:
        """Records what to do (`OverrideAction`) about the table ``database.table`` that is blocked, and lets the next
        run of gold try it again. Returns its state before. Raises ConfigError for another action, if the table is not
        blocked, or if no reason is given."""
        if action not in tuple(OverrideAction):
            raise ConfigError(f"action: expected one of {', '.join(OverrideAction)}, found {action!r}")
        logged = timed("ops", "override", feed=self.feed.name, table=table, action=action, reason=reason)
        with self._exclusive(Layer.GOLD), logged as fields:
            state = override(self.lake, self.feed.name, table, OverrideAction(action), reason)
            fields["tso"] = state.applied_tso
            return state

    def load(self, folder: str, options: LoadOptions | None = None) -> Loaded:
        """Loads tables of Dumpling's export in ``folder``, and brings them to where gold is.

        Raises ConfigError and ApplyError as `ops.load.load`, and ConfigError without a folder, and if silver has not
        run for the feed, or bronze or silver has lost it: the tables would lack every change since the export.
        """
        if not folder:
            raise ConfigError("folder: expected that of an export, found none")
        self._check_ran(Layer.SILVER, events_table.table_name(self.feed.name))
        self._create_tables()
        with self._exclusive(Layer.GOLD), timed("ops", "loaded", feed=self.feed.name, folder=folder) as fields:
            loaded = load(
                self.lake, self.gold_config, folder, options, until_tso=self.until_tso, source=self._row_snapshot_at()
            )
            fields |= {"tso": loaded.tso, "tables": len(loaded.rows), "rows": sum(loaded.rows.values())}
            return loaded

    def verify_source(
        self,
        dsn: str | None = None,
        tables: Sequence[str] = (),
        *,
        threads: int = 4,
        sleep: float = 0.0,
        repair: bool = False,
    ) -> Verified:
        """Compares the feed's tables, or some (``database.table``), with TiDB at the TSO that gold has published.

        ``dsn``: ``mysql://USER@HOST:4000/?secret=SCOPE/KEY``, the feed's `source` by default. What differs is written
        into ``ops.differences``; ``repair`` puts it in place as TiDB has it. Raises ConfigError as
        `ops.verify.verification.verify`, and if no TiDB is named.
        """
        settings = VerifySettings(tables=tuple(tables), threads=threads, sleep=sleep, repair=repair)
        snapshot_at = self._snapshot_at(dsn, "UTC")
        lock = self._exclusive(Layer.GOLD) if repair else nullcontext()
        with lock, timed("ops", "verified", feed=self.feed.name, repair=repair) as fields:
            verified = verify(self.lake, self.gold_config, snapshot_at, settings)
            fields |= {"tso": verified.tso, "tables": len(verified.tables), "different": len(verified.different)}
            return verified

    def _row_snapshot_at(self) -> SnapshotAt | None:
        """Returns snapshots that read rows as messages would have them, if the feed wants any read."""
        return self._snapshot_at(None, self.gold_config.time_zone) if self.feed.gold.reads_source else None

    def _snapshot_at(self, dsn: str | None, time_zone: str) -> SnapshotAt:
        """Returns snapshots of the TiDB that ``dsn`` or the feed names. Raises ConfigError if none is named."""
        address = source_address(self.feed, dsn, self.secret)
        return lambda tso: Snapshot(address=address, tso=tso, time_zone=time_zone)

    def _exclusive(self, layer: Layer) -> AbstractContextManager[None]:
        return exclusive_run(self.lake, self.feed.name, layer)

    def status(self) -> DataFrame:
        """Returns the feed's tables at the published watermark. Creates nothing."""
        return status.status_frame(self.lake, self.feed.name)

    @property
    def _traits(self) -> ProtocolTraits:
        return protocol_named(self.feed.protocol).traits

    @property
    def _schemas(self) -> Mapping[SchemaName, tuple[Column, ...]]:
        if self._traits.external_schemas:
            return external_schemas.learned(self.lake, self.feed.name)
        return {}

    @property
    def decoding(self) -> Decoding:
        """How the feed's messages are decoded. Reads the schemas that silver has learned, if the protocol needs any."""
        return decoding_of(self.feed, self._schemas)

    @property
    def gold_config(self) -> GoldConfig:
        """How the feed's changes become tables."""
        return gold_config_of(self.feed)


def source_address(feed: Feed, dsn: str | None, secret: Secret) -> Address:
    """Returns the TiDB that ``dsn`` or the feed names. Raises ConfigError if none is named, or the secret does not
    exist."""
    given = dsn or feed.source
    if given is None:
        raise ConfigError(f"feed {feed.name}: no TiDB is named: give its DSN, {DSN_FORM}, or the key source")
    return address_of(given, secret)


def load_options_from_widgets(dbutils: Any) -> LoadOptions:
    """Returns what a notebook's widgets ``time_zone`` and ``options`` say of an export. Raises ConfigError for what is
    no option."""
    return read_load_options(dbutils.widgets.get("options"), dbutils.widgets.get("time_zone") or None)
