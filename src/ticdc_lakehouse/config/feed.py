"""A feed: one changefeed's topics, as ``resources/feeds/<name>.yml`` describes them.

The file is checked whole; one ConfigError lists every mistake with file, key and what was expected. `FeedFile` defines
the keys; docs/feeds.md and resources/feeds/feed.schema.json are made from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ticdc_codec.errors import ConfigError, suggestion
from ticdc_codec.options import LargeMessage, SinkOptions, has_watermarks
from ticdc_lakehouse.config.alarm import Alarm
from ticdc_lakehouse.config.document import document_of
from ticdc_lakehouse.config.feed_file import Bronze, FeedFile, Silver
from ticdc_lakehouse.config.gold import Gold
from ticdc_lakehouse.config.kafka import Kafka, Servers
from ticdc_lakehouse.config.keys import Key, read_struct
from ticdc_lakehouse.config.live import Live
from ticdc_lakehouse.config.name_clashes import clashes, known_names
from ticdc_lakehouse.config.security import SecretReference, check_security, read_security
from ticdc_lakehouse.config.sink_uri import read_options
from ticdc_lakehouse.config.table_filter import TableFilter
from ticdc_lakehouse.policy import Mode, Views
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.tidb.session import DSN_FORM, address_of

FEED_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
FEED_NAME_WORDS = "at most 40 letters a-z, digits and _, beginning with a letter"
VISIBLE = "[!.]*"
"""A pattern of file names: macOS leaves ``._crm.yml`` beside a file that it copies, Emacs ``.#crm.yml``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """One changefeed, checked."""

    name: str
    """The file's name without ``.yml``; part of table names."""
    protocol: str
    """With ``_``, as `ticdc_codec.protocols.PROTOCOLS` names it."""
    sink_options: SinkOptions
    bootstrap_servers: tuple[str, ...]
    """Each ``host:port``."""
    servers_are_parameter: bool = False
    """True if the parameter ``bootstrap_servers`` names the brokers in place of the file."""
    topics: tuple[str, ...]
    topic_pattern: str | None
    """Given exactly where ``topics`` is empty; a regular expression for whole topic names."""
    retired: tuple[str, ...]
    """Topics, and partitions as ``topic/3``, for which the watermark does not wait."""
    security: Mapping[str, str | SecretReference]
    """Options of the Kafka client; `config.security.kafka_source_options` resolves the references."""
    tables: TableFilter
    bronze: Bronze
    silver: Silver
    gold: Gold
    live: Live
    alarm: Alarm
    schema_tables: tuple[Table, ...]
    """The tables that existed before the feed."""
    source: str | None
    """DSN of the changefeed's TiDB."""
    starting_offsets: str
    """Where the first run begins: ``earliest`` or ``latest``."""
    max_message_bytes: int

    @property
    def begins_at_end(self) -> bool:
        """True if the feed reads nothing of what its topics held before its first run."""
        return self.starting_offsets == "latest"

    @property
    def servers_setting(self) -> str:
        """What names its brokers, for messages: a key of its file, or the parameter."""
        if self.servers_are_parameter:
            return "parameter bootstrap_servers"
        return f"kafka.bootstrap_servers in {self.name}.yml"

    @property
    def kafka_options(self) -> dict[str, str]:
        """Options of Spark's Kafka source, without security."""
        servers = {"kafka.bootstrap.servers": ",".join(self.bootstrap_servers)}
        if self.topic_pattern is not None:
            return servers | {"subscribePattern": self.topic_pattern}
        return servers | {"subscribe": ",".join(self.topics)}


def load_feed(path: Path, *, bootstrap_servers: str | None = None) -> Feed:
    """Loads the feed that a file describes; ``bootstrap_servers`` (separated by commas) overrides the file's.

    Raises ConfigError that lists every mistake, one a line.

    >>> feed = load_feed(Path("resources/feeds/shop_craft.yml"))
    >>> feed.name, feed.protocol, feed.topics, feed.gold.retention_days
    ('shop_craft', 'craft', ('shop-craft',), 30)
    """
    if bootstrap_servers is not None:
        _check_parameter(bootstrap_servers)
    document = document_of(path)
    if not isinstance(document.values, dict):
        raise ConfigError(f"{path}: expected a mapping of keys to values, found {document.values!r}")
    root = Key(file=path, mistakes=list(document.repeated))
    values = document.values if bootstrap_servers is None else _with_servers(document.values, bootstrap_servers)
    _check_name(root)
    feed = _feed(values, root)
    root.stop_on_mistakes(FeedFile.__struct_fields__)
    return replace(feed, servers_are_parameter=bootstrap_servers is not None)


def feed_file(folder: Path, name: str) -> Path:
    """Returns the file of a feed. Raises ConfigError, which names the existing feeds, if it does not exist."""
    path = folder / f"{name}.yml"
    if path.is_file():
        return path
    raise no_such_feed(path, (each.stem for each in folder.glob(f"{VISIBLE}.yml")))


def no_such_feed(path: Path, known: Iterable[str]) -> ConfigError:
    """Returns the error for a feed without a file. It names one with the ending .yaml, suggests the most similar name,
    or lists all feeds."""
    if path.with_suffix(".yaml").is_file():
        return ConfigError(f"{path.with_suffix('.yaml')}: expected the ending .yml; rename it to {path.name}")
    names = sorted(known)
    return ConfigError(
        f"{path}: no such feed; {suggestion(path.stem, names) if names else 'no feed files in this folder'}"
    )


def load_feeds(folder: Path, names: Iterable[str], *, bootstrap_servers: str | None = None) -> tuple[Feed, ...]:
    """Loads the feeds of these names, in this order. Raises one ConfigError for every mistake in all of them, and for
    tables that would get the same name."""
    mistakes: list[str] = []
    feeds = []
    for name in names:
        try:
            feeds.append(load_feed(feed_file(folder, name), bootstrap_servers=bootstrap_servers))
        except ConfigError as error:
            mistakes.append(str(error))
    mistakes += clashes(known_names(feed.name, feed.gold, feed.tables, feed.schema_tables) for feed in feeds)
    if mistakes:
        raise ConfigError("\n".join(dict.fromkeys(mistakes)))
    return tuple(feeds)


def _check_parameter(bootstrap_servers: str) -> None:
    try:
        Servers.parse(bootstrap_servers)
    except ValueError:
        expected = "host:port, several with commas between them"
        raise ConfigError(f"parameter bootstrap_servers: expected {expected}, found {bootstrap_servers!r}") from None


def _with_servers(values: Mapping[str, object], bootstrap_servers: str) -> dict[str, object]:
    kafka = values.get("kafka") or {}
    return {**values, "kafka": {**kafka, "bootstrap_servers": bootstrap_servers} if isinstance(kafka, dict) else kafka}


def _feed(values: Mapping[str, object], root: Key) -> Feed:
    """Returns the feed; complete only if no mistake was noted."""
    file = read_struct(FeedFile, values, root)
    kafka = file.kafka or Kafka(bootstrap_servers=Servers())
    options = read_options(file.options, file.protocol, file.time_zone, root / "options")
    security = read_security(kafka.security, root / "kafka" / "security")
    if file.kafka:
        kafka.check(values["kafka"], root / "kafka")
    tables = _schema_tables(file.schema_file, root / "schema_file")
    if not root.mistakes:
        check_security(security, root / "kafka" / "security")
        _check_together(values, file, options, tables, root)
    return Feed(
        name=root.file.stem,
        protocol=file.protocol,
        sink_options=options,
        bootstrap_servers=kafka.bootstrap_servers,
        topics=kafka.topics,
        topic_pattern=kafka.topic_pattern,
        retired=kafka.retired,
        security=security,
        tables=file.tables,
        bronze=file.bronze,
        silver=file.silver,
        gold=file.gold,
        live=file.live,
        alarm=file.alarm,
        schema_tables=tables,
        source=file.source,
        starting_offsets=file.starting_offsets,
        max_message_bytes=file.max_message_bytes,
    )


def _check_name(root: Key) -> None:
    name = root.file.stem
    if not FEED_NAME.fullmatch(name):
        root.note(f"expected a file name of {FEED_NAME_WORDS}, found {name!r}")


def _check_together(
    values: Mapping[str, object], file: FeedFile, options: SinkOptions, tables: Sequence[Table], root: Key
) -> None:
    """Notes settings that are valid one by one, but not together."""
    _check_source(file, root / "source")
    if file.tables.leaves_nothing:
        expected = "expected patterns that leave some of the tables that tables.include names"
        (root / "tables.exclude").note(f"{expected}, found {list(file.tables.exclude)}, which leave none")
    if file.gold.views is Views.NONE:
        _check_without_views(file.gold, root / "gold.views")
    if file.gold.reads_source and file.gold.mode is Mode.EVENTUAL:
        expected = "expected watermarks beside on_handle_key_only: source, which reads a row at its commit_ts"
        (root / "gold.mode").note(f"{expected}; found {file.gold.mode}")
    if file.gold.mode is Mode.WATERMARKS:
        _check_watermarks(values.get("gold"), file, options, root)
    if options.large_message_handle_option is LargeMessage.CLAIM_CHECK and options.claim_check_storage_uri is None:
        (root / "options.claim-check-storage-uri").note(
            "required key is missing: the folder or URI of the claim-check objects"
        )
    if options.output_raw_change_event and not options.output_old_value:
        (root / "options.output-old-value").note(
            "expected true beside output-raw-change-event: an UPDATE that changes a key does not say else which row it "
            "changed; found false"
        )
    for clash in clashes([known_names(root.file.stem, file.gold, file.tables, tables)]):
        (root / "gold.name").note(clash)


def _check_watermarks(gold: object, file: FeedFile, options: SinkOptions, root: Key) -> None:
    """Notes settings that mode ``watermarks`` does not allow; ``gold`` is the section as in the file."""
    if not has_watermarks(file.protocol, options):
        extension = "options.enable-tidb-extension: true"
        (root / "gold.mode").note(
            f"expected eventual, since TiCDC sends no watermarks without {extension}; found {file.gold.mode}"
        )
    if isinstance(gold, dict) and gold.get("tombstone_days") is not None:
        expected = "expected only beside gold.mode: eventual"
        (root / "gold.tombstone_days").note(f"{expected}, found it beside {file.gold.mode}")


def _check_source(file: FeedFile, source: Key) -> None:
    """Notes an invalid address of TiDB, and a missing one. An invalid one is not shown in full: it may hold a
    password."""
    if file.source is not None:
        try:
            address_of(file.source, lambda _scope, _key: "")
        except ConfigError as error:
            source.note(str(error).removeprefix("dsn: "))
    elif file.gold.reads_source:
        source.note(f"required key is missing beside on_handle_key_only: source: {DSN_FORM}")


def _check_without_views(gold: Gold, views: Key) -> None:
    """Notes settings that only a view can obey."""
    if gold.mode is Mode.EVENTUAL:
        views.note("expected pinned beside gold.mode: eventual, whose live tables hold deleted rows too; found none")
    if gold.shows_texts:
        views.note("expected pinned beside on_irregular: text, since only a view shows texts; found none")


def _schema_tables(name: str | None, key: Key) -> tuple[Table, ...]:
    if name is None:
        return ()
    path = key.file.parent / name
    try:
        # Editors on Windows begin a file with a byte order mark.
        return tables_from_sql(path.read_text(encoding="utf-8-sig"), source=str(path))
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or an invalid path
        key.note(f"expected a readable file of CREATE TABLE statements: {error}")
    except ConfigError as error:
        key.note(error)
    return ()
