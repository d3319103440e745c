"""A feed: one changefeed's topics, as ``resources/feeds/<name>.yml`` describes them.

The file is checked whole; one ConfigError lists every mistake with file, key and what was expected.

    protocol: canal_json             sink-uri protocol; - and _ are the same
    time_zone: Asia/Shanghai         zone of the TiCDC server, in which TIMESTAMP texts are written
    options: {name: value, …}        what the sink-uri says beside the protocol (codec.options, config.sink_uri)
    kafka:
      bootstrap_servers: [host:port, …]
      topics: [name, …]              or topic_pattern: regular expression
      security: {option: value, …}   Kafka client options; what is secret as {secret: scope/key} (config.security)
    tables:
      include: [database.table, …]   with * and ?; without it all
      exclude: [database.table, …]
    gold: {on_drop: keep, …}         what becomes of dropped tables and the like (config.policies)
    bronze: {retention_days: 60}     for how long messages are kept (default: without end)
    silver: {retention_days: 60}     for how long changes are kept (default: without end)
    schema_file: tables.sql          CREATE TABLE of the tables that existed before the feed (ddl.script)
    starting_offsets: earliest       or latest
    max_message_bytes: 16777216      a larger message goes to quarantine unread
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ticdc_codec.errors import ConfigError
from ticdc_codec.options import LargeMessage, SinkOptions, option_names
from ticdc_codec.protocols import PROTOCOLS
from ticdc_lakehouse.config.kafka import servers, topic_pattern, topics
from ticdc_lakehouse.config.policies import Policies, policies, retention_days
from ticdc_lakehouse.config.section import Section, read_section, stop_on, suggestion
from ticdc_lakehouse.config.security import SecretReference, security
from ticdc_lakehouse.config.sink_uri import read_options
from ticdc_lakehouse.config.table_filter import TableFilter, pattern_mistake
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.script import tables_from_sql

KEYS = (
    "protocol",
    "time_zone",
    "options",
    "kafka",
    "tables",
    "bronze",
    "silver",
    "gold",
    "schema_file",
    "starting_offsets",
    "max_message_bytes",
)
KAFKA_KEYS = ("bootstrap_servers", "topics", "topic_pattern", "security")
STARTING_OFFSETS = ("earliest", "latest")
LARGEST_MESSAGE = 16 * 1024 * 1024
MOST_BYTES = 2**31 - 1
"""What Kafka and Spark can hold in one value."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """One changefeed, checked."""

    name: str
    """The file's name without ``.yml``; part of table names."""
    protocol: str
    """With ``_``, as `codec.PROTOCOLS` names it."""
    sink_options: SinkOptions
    bootstrap_servers: tuple[str, ...]
    """Each ``host:port``."""
    topics: tuple[str, ...] = ()
    topic_pattern: str | None = None
    """Given exactly where ``topics`` is empty; a regular expression for whole topic names."""
    security: Mapping[str, str | SecretReference] = field(default_factory=dict)
    """Options of the Kafka client; `security_options` resolves them."""
    tables: TableFilter = field(default_factory=TableFilter)
    policies: Policies = field(default_factory=Policies)
    bronze_retention_days: int | None = None
    """For how many days bronze keeps messages; None: without end."""
    silver_retention_days: int | None = None
    """For how many days silver keeps changes; None: without end."""
    schema_tables: tuple[Table, ...] = ()
    """The tables that existed before the feed."""
    starting_offsets: str = "earliest"
    """Where the first run begins: ``earliest`` or ``latest``."""
    max_message_bytes: int = LARGEST_MESSAGE

    @property
    def kafka_options(self) -> dict[str, str]:
        """Options of Spark's Kafka source, without security."""
        servers = {"kafka.bootstrap.servers": ",".join(self.bootstrap_servers)}
        if self.topic_pattern is not None:
            return servers | {"subscribePattern": self.topic_pattern}
        return servers | {"subscribe": ",".join(self.topics)}


def load_feed(path: Path, *, bootstrap_servers: str | None = None) -> Feed:
    """The feed that a file describes; ``bootstrap_servers`` (comma text) takes the place of what it says.

    Raises ConfigError that lists every mistake, one a line.
    """
    mistakes: list[str] = []
    feed = _feed(read_section(path, mistakes), bootstrap_servers)
    stop_on(mistakes)
    return feed


def feed_file(folder: Path, name: str) -> Path:
    """The file of a feed. Raises ConfigError if there is none, with the feeds that there are."""
    path = folder / f"{name}.yml"
    if path.is_file():
        return path
    if path.with_suffix(".yaml").is_file():
        raise ConfigError(f"{path.with_suffix('.yaml')}: expected the ending .yml")
    raise no_such_feed(path, (each.stem for each in folder.glob("*.yml")))


def no_such_feed(path: Path, known: Iterable[str]) -> ConfigError:
    """The error for a feed whose file is not there: it names the feed that was probably meant, or all there are."""
    names = sorted(known)
    return ConfigError(
        f"{path}: no such feed; {suggestion(path.stem, names) if names else 'no feed files in this folder'}"
    )


def load_feeds(folder: Path, names: Iterable[str], *, bootstrap_servers: str | None = None) -> tuple[Feed, ...]:
    """The feeds of these names, in this order. Raises ConfigError that lists every mistake in all of them."""
    mistakes: list[str] = []
    feeds = []
    for name in names:
        try:
            feeds.append(load_feed(feed_file(folder, name), bootstrap_servers=bootstrap_servers))
        except ConfigError as error:
            mistakes.append(str(error))
    stop_on(mistakes)
    return tuple(feeds)


def security_options(feed: Feed, secret: Callable[[str, str], str]) -> dict[str, str]:
    """Options of Spark's Kafka source that hold the feed's security; ``secret(scope, key)`` gives a secret's text."""
    return {
        f"kafka.{name}": secret(value.scope, value.key) if isinstance(value, SecretReference) else value
        for name, value in feed.security.items()
    }


def _feed(root: Section, bootstrap_servers: str | None) -> Feed:
    """The feed; it is whole only if no mistake was noted."""
    name = root.file.stem
    if not _NAME.fullmatch(name):
        expected = "a file name of at most 40 letters a-z, digits and _, beginning with a letter"
        root.mistakes.append(f"{root.file}: expected {expected}, found {name!r}")
    root.only(KEYS)
    root.require("protocol", "time_zone")
    protocol = _protocol(root)
    kafka = root.section("kafka")
    kafka.only(KAFKA_KEYS)
    options, gold = read_options(root, protocol), policies(root.section("gold"))
    _check_together(root, protocol, options, gold)
    return Feed(
        name=name,
        protocol=protocol or "",
        sink_options=options,
        bootstrap_servers=servers(kafka, bootstrap_servers),
        topics=topics(kafka),
        topic_pattern=topic_pattern(kafka),
        security=security(kafka.section("security")),
        tables=_tables(root.section("tables")),
        policies=gold,
        bronze_retention_days=_layer_retention(root.section("bronze")),
        silver_retention_days=_layer_retention(root.section("silver")),
        schema_tables=_schema_tables(root),
        starting_offsets=root.word("starting_offsets", STARTING_OFFSETS) or "earliest",
        max_message_bytes=root.count("max_message_bytes", LARGEST_MESSAGE, most=MOST_BYTES),
    )


def _protocol(root: Section) -> str | None:
    given = root.text("protocol")
    if given is None or given.replace("-", "_") in PROTOCOLS:
        return given and given.replace("-", "_")
    root.note("protocol", f"expected one of {', '.join(PROTOCOLS)}, found {given!r}")
    return None


def _check_together(root: Section, protocol: str | None, options: SinkOptions, gold: Policies) -> None:
    """Notes settings that are right one by one, but not beside each other."""
    if protocol is None or root.mistakes:  # the picture is not whole: first things first
        return
    if gold.mode is Mode.WATERMARKS:
        if "enable-tidb-extension" in option_names(protocol) and not options.enable_tidb_extension:
            extension = "options.enable-tidb-extension: true"
            root.note(
                "gold.mode",
                f"expected eventual, since TiCDC sends no watermarks without {extension}; found {gold.mode}",
            )
        if root.section("gold").values.get("tombstone_days") is not None:
            root.note("gold.tombstone_days", f"expected only beside gold.mode: eventual, found it beside {gold.mode}")
    if options.large_message_handle_option is LargeMessage.CLAIM_CHECK and options.claim_check_storage_uri is None:
        root.note(
            "options.claim-check-storage-uri", "required key is missing: the folder or URI of the claim-check objects"
        )


def _tables(section: Section) -> TableFilter:
    section.only(("include", "exclude"))
    include, exclude = section.texts("include"), section.texts("exclude")
    for key, patterns in (("include", include), ("exclude", exclude)):
        for pattern in patterns:
            mistake = pattern_mistake(pattern)
            if mistake is not None:
                section.note(key, f"{mistake}, found {pattern!r}")
    return TableFilter(include=include or ("*.*",), exclude=exclude)


def _layer_retention(section: Section) -> int | None:
    section.only(("retention_days",))
    return retention_days(section)


def _schema_tables(root: Section) -> tuple[Table, ...]:
    name = root.text("schema_file")
    if name is None:
        return ()
    path = root.file.parent / name
    try:
        # Editors on Windows begin a file with a byte order mark.
        return tables_from_sql(path.read_text(encoding="utf-8-sig"), source=str(path))
    except (OSError, ValueError) as error:  # ValueError: no UTF-8, or a path that is none
        root.note("schema_file", f"expected a readable file of CREATE TABLE statements: {error}")
    except ConfigError as error:
        root.note("schema_file", str(error))
    return ()
