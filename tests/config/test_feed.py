"""Feed files: what a valid one gives."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from feed_file import RIGHT, mistakes, written

from ticdc_codec.errors import ConfigError
from ticdc_codec.options import CraftFloat
from ticdc_lakehouse.config.feed import SecretReference, load_feed, load_feeds
from ticdc_lakehouse.config.security import kafka_source_options
from ticdc_lakehouse.policy import Mode, OnDrop, OnIrregular, OnUnsupportedDdl, Policy

EXAMPLES = Path(__file__).parents[2] / "resources" / "feeds"


def test_valid_file_gives_a_feed(tmp_path: Path) -> None:
    feed = load_feed(written(tmp_path, RIGHT))
    assert (feed.name, feed.protocol, feed.starting_offsets) == ("feed", "canal_json", "earliest")
    assert feed.sink_options.time_zone.key == "Asia/Shanghai"
    assert feed.sink_options.enable_tidb_extension
    assert feed.max_message_bytes == 16 * 1024 * 1024
    assert feed.kafka_options == {
        "kafka.bootstrap.servers": "a.example:9092,b.example:9092",
        "subscribe": "one,two",
    }
    assert feed.tables.matches("any", "table")


def test_topic_pattern_becomes_subscribe_pattern(tmp_path: Path) -> None:
    feed = load_feed(written(tmp_path, RIGHT.replace("topics: [one, two]", "topic_pattern: shop-.*")))
    assert feed.kafka_options["subscribePattern"] == "shop-.*"
    assert "subscribe" not in feed.kafka_options


def test_a_pattern_that_only_java_reads_may_have_any_retired_topic(tmp_path: Path) -> None:
    pattern = "topic_pattern: 'shop_[a-z&&[^t]]'\n  retired: [shop_b]"
    assert load_feed(written(tmp_path, RIGHT.replace("topics: [one, two]", pattern))).retired == ("shop_b",)


@pytest.mark.parametrize(
    "pattern", ["(?P<x>crm).*", "(a)?(?(1)b|c)", "crm{", "crm_{db}", "a{,3}", "(?#c)a", "(?a)x", "(?ia:x)"]
)
def test_a_pattern_that_java_refuses_is_refused(tmp_path: Path, pattern: str) -> None:
    expected = rf"expected a regular expression that Java reads, too: .*, found '{re.escape(pattern)}'"
    with pytest.raises(ConfigError, match=rf"kafka\.topic_pattern: {expected}"):
        load_feed(written(tmp_path, RIGHT.replace("topics: [one, two]", f"topic_pattern: '{pattern}'")))


@pytest.mark.parametrize(
    "pattern", ["a{2}", "a{2,}", "a{2,3}", r"a\{b", "[{]x", "[]{]x", r"[^\]{]", "(?i)Shop_(?:a|b).*"]
)
def test_a_pattern_of_both_languages_is_taken(tmp_path: Path, pattern: str) -> None:
    text = RIGHT.replace("topics: [one, two]", f"topic_pattern: '{pattern}'")
    assert load_feed(written(tmp_path, text)).topic_pattern == pattern


def test_empty_lists_are_as_without_the_key(tmp_path: Path) -> None:
    text = RIGHT.replace("[one, two]", "[one, two]\n  retired: []")
    feed = load_feed(written(tmp_path, f"{text}tables: {{exclude: []}}\n"))
    assert (feed.retired, feed.tables.exclude) == ((), ())


def test_bootstrap_servers_parameter_replaces_those_of_the_file(tmp_path: Path) -> None:
    feed = load_feed(written(tmp_path, RIGHT), bootstrap_servers="localhost:1234, localhost:1235")
    assert feed.bootstrap_servers == ("localhost:1234", "localhost:1235")


@pytest.mark.parametrize("servers", ["localhost", "a:9092,", "kafka://a:9092", "a:0"])
def test_wrong_bootstrap_servers_parameter_is_named(tmp_path: Path, servers: str) -> None:
    """Not the file's key, which is right."""
    path = written(tmp_path, RIGHT)
    with pytest.raises(ConfigError) as caught:
        load_feeds(path.parent, [path.stem, path.stem], bootstrap_servers=servers)
    expected = "host:port, several with commas between them"
    assert str(caught.value) == f"parameter bootstrap_servers: expected {expected}, found {servers!r}"


GOLD = """
bronze: {retention_days: 7}
silver: {retention_days: 60}
gold:
  mode: eventual
  tombstone_days: 3
  retention_days: 90
  on_drop: keep
  tables:
    shop.tmp_*: {on_drop: drop, on_unsupported_ddl: ignore}
    "shop.*": {on_unsupported_ddl: ignore}
    "*.tmp_1": {on_unsupported_ddl: block}
"""


def test_first_pattern_that_fits_decides_the_policy_of_a_table(tmp_path: Path) -> None:
    feed = load_feed(written(tmp_path, RIGHT + GOLD))
    gold = feed.gold
    assert (gold.mode, gold.tombstone_days, gold.retention_days) == (Mode.EVENTUAL, 3, 90)
    assert (feed.bronze.retention_days, feed.silver.retention_days) == (7, 60)
    found = {
        name: gold.policy(*name) for name in (("shop", "tmp_1"), ("Shop", "Orders"), ("bank", "TMP_1"), ("b", "x"))
    }
    assert [(policy.on_drop, policy.on_unsupported_ddl) for policy in found.values()] == [
        (OnDrop.DROP, OnUnsupportedDdl.IGNORE),
        (OnDrop.KEEP, OnUnsupportedDdl.IGNORE),
        (OnDrop.KEEP, OnUnsupportedDdl.BLOCK),
        (OnDrop.KEEP, OnUnsupportedDdl.BLOCK),
    ], "the first pattern that fits counts; what it leaves open is as of the feed"


def test_properties_of_a_table_are_the_feeds_and_those_of_the_first_pattern_that_fits(tmp_path: Path) -> None:
    described = """
live:
  table_properties: {delta.checkpointInterval: 20, delta.autoOptimize.autoCompact: true}
  tables:
    shop.tmp_*: {table_properties: {delta.checkpointInterval: 100, team.owner: "me, too"}}
    shop.*: {table_properties: {team.owner: nobody}}
"""
    properties = load_feed(written(tmp_path, RIGHT + described)).live.properties
    ours = {"delta.checkpointInterval": "20", "delta.autoOptimize.autoCompact": "true"}
    assert properties("bank", "accounts") == ours
    assert properties("Shop", "TMP_1") == {**ours, "delta.checkpointInterval": "100", "team.owner": "me, too"}


def test_name_template_is_a_setting_of_the_feed(tmp_path: Path) -> None:
    by_default = load_feed(written(tmp_path, RIGHT)).gold.name
    own = load_feed(written(tmp_path, f'{RIGHT}\ngold: {{name: "{{feed}}_{{table}}"}}\n')).gold.name
    assert (by_default, own) == ("{feed}_{database}_{table}", "{feed}_{table}")


def test_what_gold_does_with_computed_defaults(tmp_path: Path) -> None:
    text = (
        "gold: {ddl_time_zone: Asia/Shanghai, on_computed_default: block, tables: {a.b: {on_computed_default: learn}}}"
    )
    gold = load_feed(written(tmp_path, f"{RIGHT}\n{text}\n")).gold
    assert [gold.policy("a", table).on_computed_default for table in "bc"] == ["learn", "block"]
    assert gold.ddl_time_zone is not None
    assert gold.ddl_time_zone.key == "Asia/Shanghai"
    assert load_feed(written(tmp_path, RIGHT)).gold.policy("a", "b").on_computed_default == "learn"


def test_null_of_yaml_is_the_word_null(tmp_path: Path) -> None:
    tables = "{a.b: {on_irregular: null}, a.c: {on_irregular: 'null'}, a.d: {on_irregular: text}, a.*: {}}"
    gold = load_feed(written(tmp_path, f"{RIGHT}\ngold: {{on_irregular: block, tables: {tables}}}\n")).gold
    found = [gold.policy("a", table).on_irregular for table in "bcde"]
    assert found == [OnIrregular.NULL, OnIrregular.NULL, OnIrregular.TEXT, OnIrregular.BLOCK]


def test_gold_defaults_to_watermarks_and_to_dropping_tables(tmp_path: Path) -> None:
    gold = load_feed(written(tmp_path, RIGHT)).gold
    assert (gold.mode, gold.tombstone_days, gold.retention_days) == (Mode.WATERMARKS, 7, 30)
    assert gold.policy("any", "table") == Policy(on_drop=OnDrop.DROP, on_unsupported_ddl=OnUnsupportedDdl.BLOCK)


def test_secrets_are_resolved_when_asked_for(tmp_path: Path) -> None:
    text = RIGHT + "\n".join(
        [
            "  security:",
            "    security.protocol: SASL_SSL",
            "    sasl.oauthbearer.token.endpoint.url: https://id.example/token",
            "    sasl.jaas.config: {secret: kafka/jaas}",
        ]
    )
    feed = load_feed(written(tmp_path, text))
    assert feed.security["sasl.jaas.config"] == SecretReference(scope="kafka", key="jaas")
    assert kafka_source_options(feed.security, lambda scope, key: f"<{scope} {key}>", on_databricks=False) == {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.oauthbearer.token.endpoint.url": "https://id.example/token",
        "kafka.sasl.jaas.config": "<kafka jaas>",
    }


def test_schema_tables_are_read_from_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "old.sql").write_text("CREATE TABLE a.t (id int PRIMARY KEY);\nUSE b;\nCREATE TABLE u (v int);")
    feed = load_feed(written(tmp_path, RIGHT + "schema_file: old.sql\n"))
    assert [(table.database, table.table, table.key) for table in feed.schema_tables] == [
        ("a", "t", ("id",)),
        ("b", "u", ()),
    ]


def test_a_schema_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "old.sql").write_text("CREATE TABLE a.t (id int PRIMARY KEY);", encoding="utf-8-sig")
    (table,) = load_feed(written(tmp_path, RIGHT + "schema_file: old.sql\n")).schema_tables
    assert (table.database, table.table) == ("a", "t")


def test_statement_other_than_create_table_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "old.sql").write_text("USE a;\nDROP TABLE t;\n")
    path = written(tmp_path, RIGHT + "schema_file: old.sql\n")
    assert mistakes(path) == [
        f"{path}: schema_file: {tmp_path / 'old.sql'}, line 2: expected CREATE TABLE or USE, found 'DROP'"
    ]


def test_the_example_feeds_are_right() -> None:
    craft, canal = load_feeds(EXAMPLES, ["shop_craft", "shop_canal"])
    assert (craft.protocol, craft.sink_options.craft_float) == ("craft", CraftFloat.REFUSE)
    assert (canal.protocol, canal.sink_options.enable_tidb_extension) == ("canal_json", True)
    assert [table.table for table in craft.schema_tables] == ["customers", "orders", "products"]
    assert craft.schema_tables == canal.schema_tables


def test_the_examples_have_no_key_twice_and_no_literal_secret() -> None:
    for path in EXAMPLES.glob("*.yml"):
        assert isinstance(yaml.safe_load(path.read_text()), dict)


def test_codec_and_config_do_not_load_spark() -> None:
    code = (
        "import sys, ticdc_codec.protocols, ticdc_lakehouse.config.feed; "
        "sys.exit(any(name.split('.')[0] in ('pyspark', 'py4j', 'delta') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
