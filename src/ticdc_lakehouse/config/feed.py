"""A feed: one changefeed's topics, as ``resources/feeds/<name>.yml`` describes them.

The file is checked whole; one ConfigError lists every mistake with file, key and what was expected.

    protocol: canal_json             sink-uri protocol; - and _ are the same
    time_zone: Asia/Shanghai         zone of the TiCDC server, in which TIMESTAMP texts are written
    options: {name: value, …}        what the sink-uri says beside the protocol (codec.options)
    kafka:
      bootstrap_servers: [host:port, …]
      topics: [name, …]              or topic_pattern: regular expression
      security: {option: value, …}   Kafka client options; what is secret as {secret: scope/key}
    tables:
      include: [database.table, …]   with * and ?; without it all
      exclude: [database.table, …]
    gold: {on_drop: keep, …}         what becomes of dropped tables and the like (config.policies)
    schema_file: tables.sql          CREATE TABLE of the tables that existed before the feed
    starting_offsets: earliest       or latest
    max_message_bytes: 16777216      a larger message goes to quarantine unread
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ticdc_lakehouse.codec import PROTOCOLS
from ticdc_lakehouse.codec.options import SinkOptions, option_names, sink_options
from ticdc_lakehouse.config.policies import Policies, policies
from ticdc_lakehouse.config.section import Section, read_section, stop_on, suggestion
from ticdc_lakehouse.config.table_filter import TableFilter, is_pattern
from ticdc_lakehouse.ddl.script import tables_from_sql
from ticdc_lakehouse.definition import Table
from ticdc_lakehouse.errors import ConfigError
from ticdc_lakehouse.policy import Mode

KEYS = (
    "protocol",
    "time_zone",
    "options",
    "kafka",
    "tables",
    "gold",
    "schema_file",
    "starting_offsets",
    "max_message_bytes",
)
KAFKA_KEYS = ("bootstrap_servers", "topics", "topic_pattern", "security")
STARTING_OFFSETS = ("earliest", "latest")
LARGEST_MESSAGE = 16 * 1024 * 1024

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_SERVER = re.compile(r"[^\s,/]+:[0-9]{1,5}")
_SECRET = re.compile(r"[^/\s]+/[^/\s]+")
_SECURITY_PREFIXES = ("security.", "sasl.", "ssl.")
_SECRET_OPTION = re.compile(r"password|jaas|secret|token|keystore\.key$")
# Addresses, although they speak of tokens.
_OPEN_OPTION = re.compile(r"\.url$")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretReference:
    """Where a secret is kept: a scope and a key, as Databricks names them."""

    scope: str
    key: str


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
    root = read_section(path, mistakes)
    stop_on(mistakes)
    feed = _feed(root, bootstrap_servers)
    stop_on(mistakes)
    return feed


def load_feeds(folder: Path, names: Iterable[str]) -> tuple[Feed, ...]:
    """The feeds of these names, in this order. Raises ConfigError that lists every mistake in all of them."""
    mistakes: list[str] = []
    known = sorted(path.stem for path in folder.glob("*.yml"))
    feeds = []
    for name in names:
        if name not in known:
            mistakes.append(f"{folder / name}.yml: no such feed; {suggestion(name, known)}")
            continue
        try:
            feeds.append(load_feed(folder / f"{name}.yml"))
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
    options, gold = _options(root, protocol), policies(root.section("gold"))
    _check_watermarks(root, protocol, options, gold)
    return Feed(
        name=name,
        protocol=protocol or "",
        sink_options=options,
        bootstrap_servers=_servers(kafka, bootstrap_servers),
        topics=_topics(kafka),
        topic_pattern=_topic_pattern(kafka),
        security=_security(kafka.section("security")),
        tables=_tables(root.section("tables")),
        policies=gold,
        schema_tables=_schema_tables(root),
        starting_offsets=root.word("starting_offsets", STARTING_OFFSETS) or "earliest",
        max_message_bytes=root.count("max_message_bytes", LARGEST_MESSAGE),
    )


def _protocol(root: Section) -> str | None:
    given = root.text("protocol")
    if given is None or given.replace("-", "_") in PROTOCOLS:
        return given and given.replace("-", "_")
    root.note("protocol", f"expected one of {', '.join(PROTOCOLS)}, found {given!r}")
    return None


def _options(root: Section, protocol: str | None) -> SinkOptions:
    """Each option is tried alone, so that all mistakes are found and not the first one."""
    section = root.section("options")
    taken: dict[str, object] = {}
    if protocol is None:
        return SinkOptions()
    for name, value in section.values.items():
        if name == "time-zone":
            section.note(name, "no option here; expected as the key time_zone")
        elif _taken(section, protocol, name, value):
            taken[name] = value
    zone = root.text("time_zone")
    if zone is not None and _taken(root, protocol, "time-zone", zone):
        taken["time-zone"] = zone
    return sink_options(protocol, taken)


def _check_watermarks(root: Section, protocol: str | None, options: SinkOptions, gold: Policies) -> None:
    if root.mistakes:  # the picture is not whole: first things first
        return
    extensible = protocol is not None and "enable-tidb-extension" in option_names(protocol)
    if extensible and not options.enable_tidb_extension and gold.mode is Mode.WATERMARKS:
        root.note(
            "gold.mode",
            "expected eventual, since TiCDC sends no watermarks without options.enable-tidb-extension: true; found "
            f"{gold.mode}",
        )


def _taken(section: Section, protocol: str, name: str, value: object) -> bool:
    try:
        sink_options(protocol, {name: value})
    except ConfigError as error:
        # The codec's message begins with the option's name, here the key stands before it.
        key = name if name in section.values else name.replace("-", "_")
        section.note(key, str(error).removeprefix(f"{name}: "))
        return False
    return True


def _servers(kafka: Section, override: str | None) -> tuple[str, ...]:
    given = kafka.values.get("bootstrap_servers") if override is None else override
    if given is None:
        kafka.require("bootstrap_servers")
        return ()
    servers = [part.strip() for part in given.split(",")] if isinstance(given, str) else given
    if isinstance(servers, list) and servers and all(_is_server(server) for server in servers):
        return tuple(servers)
    kafka.note("bootstrap_servers", f"expected host:port, a list of them or comma text, found {given!r}")
    return ()


def _is_server(server: object) -> bool:
    return (
        isinstance(server, str) and _SERVER.fullmatch(server) is not None and 0 < int(server.rpartition(":")[2]) < 65536
    )


def _topics(kafka: Section) -> tuple[str, ...]:
    if ("topics" in kafka.values) == ("topic_pattern" in kafka.values):
        found = "both" if "topics" in kafka.values else "neither"
        kafka.note("topics", f"expected either topics or topic_pattern, found {found}")
    topics = kafka.texts("topics")
    for topic in topics:
        if not _TOPIC.fullmatch(topic):
            kafka.note("topics", f"expected topic names of letters, digits, '.', '_' and '-', found {topic!r}")
    return topics


def _topic_pattern(kafka: Section) -> str | None:
    pattern = kafka.text("topic_pattern")
    try:
        re.compile(pattern or "")
    except re.error as error:
        kafka.note("topic_pattern", f"expected a regular expression, found {pattern!r}: {error}")
    return pattern


def _security(section: Section) -> dict[str, str | SecretReference]:
    options = {name: _security_value(section, name, value) for name, value in section.values.items()}
    return {name: value for name, value in options.items() if value is not None}


def _security_value(section: Section, name: str, value: object) -> str | SecretReference | None:
    if not name.startswith(_SECURITY_PREFIXES):
        section.note(name, f"expected a Kafka client option that begins with {', '.join(_SECURITY_PREFIXES)}")
    elif isinstance(value, Mapping):
        return _secret_reference(section, name, value)
    elif _SECRET_OPTION.search(name) and not _OPEN_OPTION.search(name):
        # What was found is not shown: it may be the secret.
        section.note(name, "expected a reference {secret: scope/key}, found a literal value")
    elif isinstance(value, bool):
        return str(value).lower()
    elif isinstance(value, str | int):
        return str(value)
    else:
        section.note(name, f"expected text or a reference {{secret: scope/key}}, found {value!r}")
    return None


def _secret_reference(section: Section, name: str, value: Mapping[object, object]) -> SecretReference | None:
    reference = value.get("secret")
    if set(value) != {"secret"} or not isinstance(reference, str) or not _SECRET.fullmatch(reference):
        section.note(name, f"expected {{secret: scope/key}}, found a mapping of {', '.join(map(str, value))}")
        return None
    scope, _, key = reference.partition("/")
    return SecretReference(scope=scope, key=key)


def _tables(section: Section) -> TableFilter:
    section.only(("include", "exclude"))
    include, exclude = section.texts("include"), section.texts("exclude")
    for key, patterns in (("include", include), ("exclude", exclude)):
        for pattern in patterns:
            if not is_pattern(pattern):
                section.note(key, f"expected database.table, each with * and ? as you like, found {pattern!r}")
    return TableFilter(include=include or ("*.*",), exclude=exclude)


def _schema_tables(root: Section) -> tuple[Table, ...]:
    name = root.text("schema_file")
    if name is None:
        return ()
    path = root.file.parent / name
    try:
        return tables_from_sql(path.read_text(encoding="utf-8"), source=str(path))
    except (OSError, UnicodeDecodeError) as error:
        root.note("schema_file", f"expected a readable file of CREATE TABLE statements: {error}")
    except ConfigError as error:
        root.note("schema_file", str(error))
    return ()
