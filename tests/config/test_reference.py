"""docs/feeds.md and the JSON Schema: made from the keys, up to date; valid files are valid for loader and schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from feed_file import RIGHT, written
from jsonschema import Draft202012Validator
from test_feed import GOLD
from test_feed_mistakes import MISTAKES
from test_security import RIGHT_ONES, RIGHT_TOGETHER, with_protocol
from test_sink_uri import DOCUMENTED

from ticdc_codec.options import options_of
from ticdc_lakehouse.config.client_option import CLIENT_OPTIONS
from ticdc_lakehouse.config.feed import load_feed
from ticdc_lakehouse.config.feed_file import FeedFile
from ticdc_lakehouse.config.kafka import Kafka
from ticdc_lakehouse.config.reference import EXAMPLE, PAGE, SCHEMA, page, schema_text

PROJECT = Path(__file__).parents[2]
VALIDATOR = Draft202012Validator(json.loads(schema_text()))

# Mistakes that no schema can see: keys that depend on each other, other files, time zones, YAML itself.
FOUND_BY_THE_LOADER_ALONE = {
    "time zone",
    "time zone of the machine",
    "time zone that is none",
    "time zone of another file",
    "message size in base 8",
    "bootstrap servers",
    "bootstrap host",
    "long bootstrap host",
    "bootstrap port",
    "topic twice",
    "retired twice",
    "retired topic of no such name",
    "retired topic outside of the pattern",
    "pattern without a value",
    "pattern with too large a number",
    "topic pattern",
    "tables that are all excluded",
    "tombstone days without tombstones",
    "no watermarks",
    "no views of an eventual feed",
    "no views with texts",
    "property in another case",
    "one name for two tables",
    "claim-check without a place",
    "updates of keys without the old ones",
    "on_handle_key_only: source without a source",
    "source with a password",
    "schema file",
    "schema file that is no path",
    "schema statement",
    "key twice",
    "key twice in a section",
    "no YAML",
}


def errors(text: str) -> list[str]:
    return [error.json_path for error in VALIDATOR.iter_errors(yaml.safe_load(text))]


def test_committed_page_and_schema_are_up_to_date() -> None:
    assert (PROJECT / PAGE).read_text(encoding="utf-8") == page(), "run `make docs`"
    assert (PROJECT / SCHEMA).read_text(encoding="utf-8") == schema_text(), "run `make docs`"


def test_page_has_the_whole_description_of_every_key() -> None:
    described = {key: value["description"] for key, value in VALIDATOR.schema["$defs"]["Gold"]["properties"].items()}
    first, _, rest = described["on_handle_key_only"].partition(" `block`: ")
    assert f"| {first} |\n" in page()
    assert f"\n\n**`on_handle_key_only`**. `block`: {rest}\n" in page()
    assert all(sentence in page() for text in described.values() for sentence in text.split(". "))


def test_schema_is_valid_itself() -> None:
    Draft202012Validator.check_schema(VALIDATOR.schema)


def test_example_has_every_key_and_is_valid(tmp_path: Path) -> None:
    (tmp_path / "crm.sql").write_text("USE crm; CREATE TABLE t (id int primary key);")
    load_feed(written(tmp_path, EXAMPLE, "crm"))
    values: dict[str, Any] = yaml.safe_load(EXAMPLE)
    assert set(values) == set(FeedFile.__struct_fields__)
    assert set(values["kafka"]) == set(Kafka.__struct_fields__) - {"topic_pattern"}
    assert errors(EXAMPLE) == []


@pytest.mark.parametrize("path", [*(PROJECT / "resources" / "feeds").glob("*.yml")], ids=lambda path: path.stem)
def test_feeds_of_the_bundle_are_valid_and_name_the_schema(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=feed.schema.json\n")
    assert errors(text) == []


@pytest.mark.parametrize(
    "text",
    [
        RIGHT,
        RIGHT + GOLD,
        RIGHT + "tables: {exclude: []}",
        RIGHT + "  retired: []",
        RIGHT + "  retired: [one/0, one/10, two]",
        RIGHT + "gold: {name: '{feed}_{table}'}",
        RIGHT.replace("canal-json", "canal_json").replace("true}", "'true', max-batch-size: '5'}"),
        RIGHT.replace("[a.example:9092, b.example:9092]", "'a:1, b:2'"),
        RIGHT.replace("topics: [one, two]", "topic_pattern: a.*"),
        RIGHT.replace("{enable-tidb-extension: true}", DOCUMENTED),
        RIGHT.replace("canal-json", "craft").replace("enable-tidb-extension: true", "craft-float: null"),
        RIGHT + "gold: {on_irregular: null, tables: {'größe.a b': {}, 'a.b.c': {on_irregular: null}}}",
        *(f"{RIGHT}  security: {{{with_protocol(option)}}}\n" for option in RIGHT_ONES),
        *(f"{RIGHT}  security: {{{with_protocol(option)}: {{secret: kafka/it}}}}\n" for option in CLIENT_OPTIONS),
        *(f"{RIGHT}  security: {{{options}}}\n" for options in RIGHT_TOGETHER),
    ],
)
def test_valid_file_is_valid_for_the_schema(tmp_path: Path, text: str) -> None:
    load_feed(written(tmp_path, text))
    assert errors(text) == []


@pytest.mark.parametrize("mistake", sorted(MISTAKES.keys() - FOUND_BY_THE_LOADER_ALONE))
def test_schema_refuses_the_mistake(mistake: str) -> None:
    before, after, _ = MISTAKES[mistake]
    assert errors(RIGHT.replace(before, after, 1))


def test_every_option_is_described() -> None:
    text = (PROJECT / PAGE).read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in text for name in (*options_of(), *CLIENT_OPTIONS) if name != "time-zone")
