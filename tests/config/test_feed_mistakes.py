"""Mistakes in feed files: each is named with its file, its key and what was expected; all at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from feed_file import RIGHT, mistakes, written

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.config.feed import load_feeds

TEMPLATE = "expected letters a-z, digits, _ and the placeholders {feed}, {database}, {table}"
# name of the mistake -> what replaces what in RIGHT, and the one line that must be said of it.
MISTAKES = {
    "unknown key": ("protocol:", "protocl: x\nprotocol:", "protocl: unknown key; did you mean protocol?"),
    "unknown key, nothing alike": (
        "protocol:",
        "zzz: 1\nprotocol:",
        "zzz: unknown key; expected one of alarm, bronze, gold, kafka, ",
    ),
    "no protocol": ("protocol: canal-json", "", "protocol: required key is missing"),
    "protocol": (
        "canal-json",
        "avro",
        "protocol: expected one of craft, canal-json, debezium, open-protocol, simple, found 'avro'",
    ),
    "protocol no text": (
        "canal-json",
        "[craft]",
        "protocol: expected one of craft, canal-json, debezium, open-protocol, simple, found ['craft']",
    ),
    "no time zone": ("time_zone: Asia/Shanghai", "", "time_zone: required key is missing"),
    "time zone": ("Asia/Shanghai", "Asia/Shanghay", "time_zone: expected an IANA time zone"),
    "time zone of the machine": (
        "Asia/Shanghai",
        "localtime",
        "time_zone: expected an IANA time zone such as Asia/Shanghai, which is the same on every machine, found "
        "'localtime'",
    ),
    "time zone that is none": ("Asia/Shanghai", "Factory", "time_zone: expected an IANA time zone such as Asia/"),
    "time zone of another file": (
        "kafka:",
        "gold: {ddl_time_zone: posixrules}\nkafka:",
        "gold.ddl_time_zone: expected an IANA time zone such as Asia/Shanghai, which is the same on every machine",
    ),
    "time zone as option": (
        "{enable-tidb-extension: true}",
        "{time-zone: UTC}",
        "options.time-zone: no option here; expected as the key time_zone",
    ),
    "option of no protocol": (
        "enable-tidb-",
        "tidb-",
        "options.tidb-extension: no option of canal-json; did you mean ",
    ),
    "option of another protocol": (
        "enable-tidb-extension: true",
        "craft-float: trust",
        "options.craft-float: no option of canal-json; expected one of ",
    ),
    "option's value": ("true}", "maybe}", "options.enable-tidb-extension: expected true or false, found 'maybe'"),
    "options no mapping": ("{enable-tidb-extension: true}", "[a]", "options: expected a mapping of keys to values"),
    "bootstrap servers": (
        "[a.example:9092, b.example:9092]",
        "a.example",
        "kafka.bootstrap_servers: expected host:port, a list of them or comma text, found 'a.example'",
    ),
    "bootstrap host": (
        "[a.example:9092, b.example:9092]",
        "kafka-1..example.com:9092",
        "kafka.bootstrap_servers: expected host:port, a list of them or comma text, found 'kafka-1..example.com:9092'",
    ),
    "long bootstrap host": (
        "[a.example:9092, b.example:9092]",
        f"[a.example:9092, '{'b' * 64}.example:9092']",
        "kafka.bootstrap_servers: expected host:port",
    ),
    "bootstrap port": ("[a.example:9092, b.example:9092]", "a:70000", "kafka.bootstrap_servers: expected host:port"),
    "no bootstrap servers": (
        "bootstrap_servers: [a.example:9092, b.example:9092]",
        "security: {}",
        "kafka.bootstrap_servers: required key is missing",
    ),
    "topics and pattern": (
        "topics: [one, two]",
        "topics: [one]\n  topic_pattern: a",
        "kafka.topics: expected either topics or topic_pattern, found both",
    ),
    "neither topics nor pattern": (
        "topics: [one, two]",
        "",
        "kafka.topics: expected either topics or topic_pattern, found neither",
    ),
    "topics no list": ("[one, two]", "one", "kafka.topics: expected a list of texts, found 'one'"),
    "topic name": ("[one, two]", "[one, 't w o']", "kafka.topics: expected topic names of letters, digits"),
    "topic that is no name": ("[one, two]", "[one, ..]", "kafka.topics: expected topic names of letters, digits"),
    "topic twice": ("[one, two]", "[one, two, one]", "kafka.topics: expected each topic once, found 'one' 2 times"),
    "topics without a value": (
        "[one, two]",
        "~",
        "kafka.topics: expected either topics or topic_pattern, found neither",
    ),
    "empty list of topics": (
        "[one, two]",
        "[]",
        "kafka.topics: expected a list of texts, found an empty one; remove the key, or give it a text",
    ),
    "retired without a value": (
        "topics: [one, two]",
        "topics: [one]\n  retired: # [two/3]",
        "kafka.retired: expected a list of texts, found nothing; remove the key, or give it a text",
    ),
    "retired partition without a number": (
        "topics: [one, two]",
        "topics: [one]\n  retired: [one, two/x]",
        "kafka.retired: expected topics, or partitions such as shop-changes/3",
    ),
    "retired partition with a leading zero": (
        "topics: [one, two]",
        "topics: [one]\n  retired: [one/0, one/03]",
        "kafka.retired: expected topics, or partitions such as shop-changes/3, without leading zeros, found 'one/03'",
    ),
    "retired twice": (
        "topics: [one, two]",
        "topics: [one]\n  retired: [one/3, one, one/3]",
        "kafka.retired: expected each topic or partition once, found 'one/3' 2 times",
    ),
    "retired topic of no such name": (
        "topics: [one, two]",
        "topics: [one, two]\n  retired: [two/3, tow/3]",
        "kafka.retired: expected topics of the feed, or their partitions, found 'tow/3'",
    ),
    "retired topic outside of the pattern": (
        "topics: [one, two]",
        "topic_pattern: shop_.*\n  retired: [shop_a/1, my_shop_a]",
        "kafka.retired: expected topics of the feed, or their partitions, found 'my_shop_a'",
    ),
    "pattern without a value": (
        "topics: [one, two]",
        "topic_pattern: ~",
        "kafka.topics: expected either topics or topic_pattern, found neither",
    ),
    "pattern with too large a number": (
        "topics: [one, two]",
        "topic_pattern: 'a{99999999999}'",
        "kafka.topic_pattern: expected a regular expression, found 'a{99999999999}'",
    ),
    "topic pattern": (
        "topics: [one, two]",
        "topic_pattern: 'a('",
        "kafka.topic_pattern: expected a regular expression, found 'a('",
    ),
    "unknown Kafka key": ("topics: [", "topic: x\n  topics: [", "kafka.topic: unknown key; did you mean topics?"),
    "literal password": (
        "topics: [one, two]",
        "topics: [one]\n  security: {ssl.key.password: hunter2}",
        "kafka.security.ssl.key.password: expected a reference {secret: scope/key}, found a literal value",
    ),
    "literal jaas": (
        "topics: [one, two]",
        "topics: [one]\n  security: {sasl.jaas.config: hunter2}",
        "kafka.security.sasl.jaas.config: expected a reference {secret: scope/key}, found a literal value",
    ),
    "secret reference": (
        "topics: [one, two]",
        "topics: [one]\n  security: {sasl.jaas.config: {secret: hunter2}}",
        "kafka.security.sasl.jaas.config: expected {secret: scope/key}, found a mapping of secret",
    ),
    "secret reference with two slashes": (
        "topics: [one, two]",
        "topics: [one]\n  security: {sasl.jaas.config: {secret: a/hunter2/c}}",
        "kafka.security.sasl.jaas.config: expected {secret: scope/key}, found a mapping of secret to a text with 2 "
        "slashes; it needs one, between scope and key",
    ),
    "secret reference without a slash": (
        "topics: [one, two]",
        "topics: [one]\n  security: {sasl.jaas.config: {secret: hunter2}}",
        "kafka.security.sasl.jaas.config: expected {secret: scope/key}, found a mapping of secret to a text with no "
        "slashes; it needs one, between scope and key",
    ),
    "secret reference with a space": (
        "topics: [one, two]",
        "topics: [one]\n  security: {sasl.jaas.config: {secret: 'a/hunter2 '}}",
        "kafka.security.sasl.jaas.config: expected {secret: scope/key}, found a mapping of secret to a text with "
        "spaces, or with nothing before or after its slash",
    ),
    "secret reference that is no text": (
        "topics: [one, two]",
        "topics: [one]\n  security: {sasl.jaas.config: {secret: [a]}}",
        "kafka.security.sasl.jaas.config: expected {secret: scope/key}, found a mapping of secret to something "
        "else than a text",
    ),
    "security option": (
        "topics: [one, two]",
        "topics: [one]\n  security: {group.id: x}",
        "kafka.security.group.id: expected a Kafka client option that begins with security.,",
    ),
    "security value": (
        "topics: [one, two]",
        "topics: [one]\n  security: {security.protocol: [a]}",
        "kafka.security.security.protocol: expected text or a reference",
    ),
    "tables to include without a value": (
        "kafka:",
        "tables:\n  include:\n#  - shop.*\nkafka:",
        "tables.include: expected a list of texts, found nothing; remove the key, or give it a text",
    ),
    "tables to exclude without a value": (
        "kafka:",
        "tables: {exclude: ~}\nkafka:",
        "tables.exclude: expected a list of texts, found nothing; remove the key, or give it a text",
    ),
    "no table to include": (
        "kafka:",
        "tables: {include: []}\nkafka:",
        "tables.include: expected a list of texts, found an empty one; remove the key, or give it a text",
    ),
    "table pattern": (
        "kafka:",
        "tables: {include: [orders]}\nkafka:",
        "tables.include: expected database.table, each with * and ? as you like, found 'orders'",
    ),
    "table pattern that excludes": (
        "kafka:",
        "tables: {include: ['*.*', '!test.*']}\nkafka:",
        "tables.include: expected a pattern without !: tables.exclude says what is left out, found '!test.*'",
    ),
    "table pattern in quotes": (
        "kafka:",
        "tables: {exclude: ['`a`.`b`']}\nkafka:",
        "tables.exclude: expected no quotes, brackets or slashes, but * and ?, such as shop.order_*",
    ),
    "table pattern with a set": (
        "kafka:",
        "tables: {include: ['db[12].t']}\nkafka:",
        "tables.include: expected no quotes, brackets or slashes, but * and ?, such as shop.order_*",
    ),
    "table pattern with a space": (
        "kafka:",
        "tables: {include: [' shop.*']}\nkafka:",
        "tables.include: expected no spaces around the names, such as shop.order_*, found ' shop.*'",
    ),
    "tables that are all excluded": (
        "kafka:",
        "tables: {exclude: ['a.*', '*.*']}\nkafka:",
        "tables.exclude: expected patterns that leave some of the tables that tables.include names, found "
        "['a.*', '*.*'], which leave none",
    ),
    "table key": ("kafka:", "tables: {includes: [a.b]}\nkafka:", "tables.includes: unknown key; did you mean include?"),
    "schema file": ("kafka:", "schema_file: no.sql\nkafka:", "schema_file: expected a readable file of CREATE TABLE"),
    "schema file that is no path": (
        "kafka:",
        'schema_file: "a\\0b"\nkafka:',
        "schema_file: expected a readable file of CREATE TABLE statements: embedded null byte",
    ),
    "schema statement": ("kafka:", "schema_file: feed.yml\nkafka:", "schema_file: "),
    "starting offsets": (
        "kafka:",
        "starting_offsets: newest\nkafka:",
        "starting_offsets: expected one of earliest, latest, found 'newest'",
    ),
    "message size": (
        "kafka:",
        "max_message_bytes: 16MB\nkafka:",
        "max_message_bytes: expected a whole number from 1 to 2147483647, found '16MB'",
    ),
    "message size that no value has": (
        "kafka:",
        "max_message_bytes: 2147483648\nkafka:",
        "max_message_bytes: expected a whole number from 1 to 2147483647, found 2147483648",
    ),
    "message size in base 8": (
        "kafka:",
        "max_message_bytes: 010\nkafka:",
        "expected a readable YAML file: expected a number without leading zeros and colons; what is text needs quotes "
        "(line 5, column 20)",
    ),
    "alarm key": ("kafka:", "alarm: {late: 1m}\nkafka:", "alarm.late: unknown key; expected one of behind, "),
    "alarm without a unit": (
        "kafka:",
        "alarm: {behind: 30}\nkafka:",
        "alarm.behind: expected a time such as 90s, 30m, 6h or 2d, found 30",
    ),
    "alarm of no time": (
        "kafka:",
        "alarm: {behind: 0m}\nkafka:",
        "alarm.behind: expected a time such as 90s, 30m, 6h or 2d, found '0m'",
    ),
    "alarm below nothing": (
        "kafka:",
        "alarm: {quarantine: -1}\nkafka:",
        "alarm.quarantine: expected 0 or a positive whole number, found -1",
    ),
    "live key": (
        "kafka:",
        "live: {properties: {}}\nkafka:",
        "live.properties: unknown key; did you mean ",
    ),
    "property without a dot": (
        "kafka:",
        "live: {table_properties: {owner: me}}\nkafka:",
        "live.table_properties.owner: expected a property's name with a dot in it, such as delta.",
    ),
    "property that finds tables": (
        "kafka:",
        "live: {table_properties: {ticdc.id: t}}\nkafka:",
        "live.table_properties.ticdc.id: expected another property than those by which gold finds its tables, found ",
    ),
    "property of another key": (
        "kafka:",
        "live: {tables: {a.b: {table_properties: {delta.logRetentionDuration: interval 1 day}}}}\nkafka:",
        "live.tables.a.b.table_properties.delta.logRetentionDuration: expected gold.retention_days in its place",
    ),
    "property in another case": (
        "kafka:",
        "live: {table_properties: {DELTA.appendonly: true}}\nkafka:",
        "live.table_properties.DELTA.appendonly: expected another property: live tables are merged into, found ",
    ),
    "property of a list": (
        "kafka:",
        "live: {table_properties: {delta.checkpointInterval: [1]}}\nkafka:",
        "live.table_properties.delta.checkpointInterval: expected a text, a number, true or false, found [1]",
    ),
    "property without a value": (
        "kafka:",
        "live: {table_properties: {delta.checkpointInterval: }}\nkafka:",
        "live.table_properties.delta.checkpointInterval: expected a text, a number, true or false, found None",
    ),
    "gold key": ("kafka:", "gold: {modes: x}\nkafka:", "gold.modes: unknown key; did you mean mode?"),
    "gold no mapping": (
        "kafka:",
        "gold: eventual\nkafka:",
        "gold: expected a mapping of keys to values, found 'eventual'",
    ),
    "gold mode": (
        "kafka:",
        "gold: {mode: newest}\nkafka:",
        "gold.mode: expected one of watermarks, eventual, found 'newest'",
    ),
    "tombstone days": (
        "kafka:",
        "gold: {tombstone_days: 0}\nkafka:",
        "gold.tombstone_days: expected a whole number from 1 to 36500, found 0",
    ),
    "tombstone days before the calendar": (
        "kafka:",
        "gold: {mode: eventual, tombstone_days: 36501}\nkafka:",
        "gold.tombstone_days: expected a whole number from 1 to 36500, found 36501",
    ),
    "tombstone days without tombstones": (
        "kafka:",
        "gold: {tombstone_days: 3}\nkafka:",
        "gold.tombstone_days: expected only beside gold.mode: eventual, found it beside watermarks",
    ),
    "retention before the calendar": (
        "kafka:",
        "gold: {retention_days: 999999}\nkafka:",
        "gold.retention_days: expected a whole number from 7 to 36500, found 999999",
    ),
    "retention": (
        "kafka:",
        "gold: {retention_days: 6}\nkafka:",
        "gold.retention_days: expected a whole number from 7 to 36500, found 6",
    ),
    "retention no number": (
        "kafka:",
        "gold: {retention_days: long}\nkafka:",
        "gold.retention_days: expected a whole number from 7 to 36500, found 'long'",
    ),
    "retention misspelt": (
        "kafka:",
        "gold: {retention_day: 60}\nkafka:",
        "gold.retention_day: unknown key; did you mean retention_days?",
    ),
    "retention of bronze": (
        "kafka:",
        "bronze: {retention_days: 6}\nkafka:",
        "bronze.retention_days: expected a whole number from 7 to 36500, found 6",
    ),
    "retention of silver": ("kafka:", "silver: {days: 60}\nkafka:", "silver.days: unknown key; "),
    "name template with another placeholder": (
        "kafka:",
        "gold: {name: '{schema}_{table}'}\nkafka:",
        f"gold.name: {TEMPLATE}, with {{table}} in it, found '{{schema}}_{{table}}'",
    ),
    "name template that gives all tables one name": (
        "kafka:",
        "gold: {name: '{feed}_{database}'}\nkafka:",
        f"gold.name: {TEMPLATE}, with {{table}} in it",
    ),
    "name template with a conversion": (
        "kafka:",
        "gold: {name: '{table!r}'}\nkafka:",
        f"gold.name: {TEMPLATE}, with {{table}} in it",
    ),
    "schema of gold": (
        "kafka:",
        "gold: {schema: '{table}'}\nkafka:",
        "gold.schema: expected letters a-z, digits, _ and the placeholders {feed} and {database}, found '{table}'",
    ),
    "one name for two tables": (
        "kafka:",
        "tables: {include: [a.t, B.T, 'c.*']}\ngold: {name: '{table}'}\nkafka:",
        "gold.name: table a.t of feed feed and table B.T of feed feed would both be called t: give ",
    ),
    "views": ("kafka:", "gold: {views: no}\nkafka:", "gold.views: expected one of pinned, none, found False"),
    "no views of an eventual feed": (
        "kafka:",
        "gold: {views: none, mode: eventual}\nkafka:",
        "gold.views: expected pinned beside gold.mode: eventual, whose live tables hold deleted rows too; found none",
    ),
    "no views with texts": (
        "kafka:",
        "gold: {views: none, tables: {a.b: {on_irregular: text}}}\nkafka:",
        "gold.views: expected pinned beside on_irregular: text, since only a view shows texts; found none",
    ),
    "on_drop": ("kafka:", "gold: {on_drop: hide}\nkafka:", "gold.on_drop: expected one of drop, keep, found 'hide'"),
    "on_drop no text": (
        "kafka:",
        "gold: {on_drop: true}\nkafka:",
        "gold.on_drop: expected one of drop, keep, found True",
    ),
    "on_unsupported_ddl": (
        "kafka:",
        "gold: {on_unsupported_ddl: skip}\nkafka:",
        "gold.on_unsupported_ddl: expected one of block, ignore, found 'skip'",
    ),
    "on_unsupported_ddl, as version 0.1 had it": (
        "kafka:",
        "gold: {on_unsupported_ddl: stop}\nkafka:",
        "gold.on_unsupported_ddl: expected one of block, ignore, found 'stop'",
    ),
    "on_irregular, as version 0.1 had it": (
        "kafka:",
        "gold: {tables: {a.b: {on_irregular: stop}}}\nkafka:",
        "gold.tables.a.b.on_irregular: expected one of null, text, block, found 'stop'",
    ),
    "on_handle_key_only": (
        "kafka:",
        "gold: {on_handle_key_only: skip}\nkafka:",
        "gold.on_handle_key_only: expected one of block, null, source, found 'skip'",
    ),
    "on_handle_key_only: source without a source": (
        "kafka:",
        "gold: {tables: {a.b: {on_handle_key_only: source}}}\nkafka:",
        "source: required key is missing beside on_handle_key_only: source: mysql://USER@HOST:4000/?secret=SCOPE/KEY",
    ),
    "source with a password": (
        "kafka:",
        "source: mysql://reader:hidden@tidb:4000/\nkafka:",
        "source: expected a reference to the password, mysql://USER@HOST:4000/?secret=SCOPE/KEY, found a password",
    ),
    "on_irregular": (
        "kafka:",
        "gold: {on_irregular: zero}\nkafka:",
        "gold.on_irregular: expected one of null, text, block, found 'zero'",
    ),
    "gold tables no mapping": (
        "kafka:",
        "gold: {tables: [a.b]}\nkafka:",
        "gold.tables: expected a mapping of keys to values, found ['a.b']",
    ),
    "gold table pattern": (
        "kafka:",
        "gold: {tables: {orders: {on_drop: keep}}}\nkafka:",
        "gold.tables.orders: expected database.table, each with * and ? as you like",
    ),
    "gold table pattern in quotes": (
        "kafka:",
        "gold: {tables: {'`a`.`b`': {on_drop: keep}}}\nkafka:",
        "gold.tables.`a`.`b`: expected no quotes, brackets or slashes, but * and ?",
    ),
    "gold table no mapping": (
        "kafka:",
        "gold: {tables: {a.b: keep}}\nkafka:",
        "gold.tables.a.b: expected a mapping of keys to values, found 'keep'",
    ),
    "mode of a table": (
        "kafka:",
        "gold: {tables: {a.b: {mode: eventual}}}\nkafka:",
        "gold.tables.a.b.mode: unknown key; expected one of on_computed_default, on_drop",
    ),
    "policy of a table": (
        "kafka:",
        "gold: {tables: {a.b: {on_drop: hide}}}\nkafka:",
        "gold.tables.a.b.on_drop: expected one of drop, keep, found 'hide'",
    ),
    "no watermarks": (
        "{enable-tidb-extension: true}",
        "{}",
        "gold.mode: expected eventual, since TiCDC sends no watermarks without options.enable-tidb-extension: true",
    ),
    "claim-check without a place": (
        "{enable-tidb-extension: true}",
        "{enable-tidb-extension: true, large-message-handle-option: claim-check}",
        "options.claim-check-storage-uri: required key is missing: the folder or URI of the claim-check objects",
    ),
    "updates of keys without the old ones": (
        "canal-json\ntime_zone: Asia/Shanghai\noptions: {enable-tidb-extension: true}",
        "open-protocol\ntime_zone: UTC\noptions: {output-raw-change-event: true, output-old-value: false}",
        "options.output-old-value: expected true beside output-raw-change-event: an UPDATE that changes a key does not",
    ),
    "key twice": ("kafka:", "time_zone: UTC\nkafka:", "time_zone: repeated key (line 5); expected once"),
    "key twice in a section": (
        "topics: [one, two]",
        "topics: [one]\n  security: {ssl.protocol: TLS, ssl.protocol: TLS}",
        "kafka.security.ssl.protocol: repeated key (line 8); expected once",
    ),
    "no YAML": ("kafka:", "kafka: {", "expected a readable YAML file: while parsing"),
    "no mapping": (RIGHT, "- a", "expected a mapping of keys to values, found ['a']"),
}


def test_two_feeds_that_would_give_one_name_are_refused(tmp_path: Path) -> None:
    """Where both files show it: gold refuses the others as their tables come."""
    by_database = RIGHT + "tables: {include: [crm.t]}\ngold: {schema: '{database}', name: '{table}'}\n"
    written(tmp_path, by_database, "one")
    written(tmp_path, by_database.replace("crm.t", "Crm.T, crm.u"), "two")
    with pytest.raises(
        ConfigError, match=r"^table crm.t of feed one and table Crm.T of feed two would both be called crm.t: "
    ):
        load_feeds(tmp_path, ("one", "two"))
    written(tmp_path, by_database.replace("{table}", "{feed}_{table}"), "two")
    assert len(load_feeds(tmp_path, ("one", "two"))) == 2
    written(tmp_path, by_database.replace("{database}", "{feed}"), "two")
    assert len(load_feeds(tmp_path, ("one", "two"))) == 2


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_file_key_and_what_was_expected(tmp_path: Path, mistake: str) -> None:
    before, after, expected = MISTAKES[mistake]
    assert before in RIGHT
    path = written(tmp_path, RIGHT.replace(before, after, 1))
    said = mistakes(path)
    assert len(said) == 1
    assert said[0].startswith(f"{path}: {expected}")
    assert "hunter2" not in said[0]


def test_all_mistakes_are_listed_at_once(tmp_path: Path) -> None:
    text = "protocol: craft\ntime_zone: Nowhere\noptions: {a: 1, b: 2}\nkafka: {}\nmax_message_bytes: 0\n"
    path = written(tmp_path, text)
    keys = [line.removeprefix(f"{path}: ").partition(":")[0] for line in mistakes(path)]
    assert keys == [
        "time_zone",
        "options.a",
        "options.b",
        "kafka.bootstrap_servers",
        "kafka.topics",
        "max_message_bytes",
    ]


def test_repeated_key_hides_no_other_mistake(tmp_path: Path) -> None:
    path = written(tmp_path, RIGHT.replace("kafka:", "options: {}\nkafka:").replace("Asia/Shanghai", "Mars"))
    keys = [line.removeprefix(f"{path}: ").partition(":")[0] for line in mistakes(path)]
    assert keys == ["time_zone", "options"]


def test_a_wrong_protocol_hides_no_other_mistake(tmp_path: Path) -> None:
    text = "protocol: crafty\ntime_zone: Mars\noptions: {no-such: 1, craft-float: maybe, output-row-key: true}\n"
    path = written(tmp_path, text + "kafka: {bootstrap_servers: a:1, topics: [t]}\n")
    assert [line.removeprefix(f"{path}: ") for line in mistakes(path)] == [
        "protocol: expected one of craft, canal-json, debezium, open-protocol, simple, found 'crafty'",
        "time_zone: expected an IANA time zone such as Asia/Shanghai, found 'Mars'",
        "options.no-such: unknown sink-uri option",
        "options.craft-float: expected one of refuse, trust, null, found 'maybe'",
    ]


@pytest.mark.parametrize("name", ["Shop", "1shop", "shop-canal", "x" * 41])
def test_file_name_that_cannot_be_part_of_a_table_name_is_a_mistake(tmp_path: Path, name: str) -> None:
    assert "expected a file name of at most 40 letters" in mistakes(written(tmp_path, RIGHT, name))[0]


def test_several_files_are_checked_before_any_is_used(tmp_path: Path) -> None:
    written(tmp_path, RIGHT.replace("time_zone", "timezone"), "shop")
    written(tmp_path, RIGHT.replace("canal-json", "avro"), "bank")
    written(tmp_path, RIGHT.replace("[one, two]", "[{{topic}}]"), "template")
    with pytest.raises(ConfigError) as caught:
        load_feeds(tmp_path, ["shop", "template", "bank", "shopp"])
    text = str(caught.value)
    assert "template.yml: expected a readable YAML file: expected a key that is text" in text
    assert "shop.yml: timezone: unknown key; did you mean time_zone?" in text
    assert "bank.yml: protocol: expected one of" in text
    assert "shopp.yml: no such feed; did you mean shop?" in text


def test_folder_without_feeds_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"shop\.yml: no such feed; no feed files in this folder"):
        load_feeds(tmp_path, ["shop"])
