"""Options of a feed: a sink-uri may be copied as it is, without its secrets."""

from __future__ import annotations

from pathlib import Path

import pytest
from feed_file import RIGHT, mistakes, written

from ticdc_codec.options import CraftFloat
from ticdc_codec.protocols import PROTOCOLS
from ticdc_lakehouse.config.feed import Feed, load_feed

# https://docs.pingcap.com/tidb/stable/ticdc-sink-to-kafka, "Configure sink URI for kafka"
DOCUMENTED = """{kafka-version: 2.4.0, kafka-client-id: cdc, partition-num: 6, max-message-bytes: 67108864,
    replication-factor: 1, required-acks: -1, compression: lz4, auto-create-topic: true, enable-tidb-extension: true,
    max-batch-size: 16, enable-tls: true, ca: /ca.pem, cert: /cert.pem, key: /key.pem, insecure-skip-verify: false,
    sasl-user: cdc, sasl-mechanism: SCRAM-SHA-512, sasl-gssapi-auth-type: USER, sasl-gssapi-realm: EXAMPLE,
    dial-timeout: 10s, write-timeout: 10s, read-timeout: 10s}"""


def with_options(folder: Path, options: str, protocol: str = "canal-json") -> Path:
    return written(folder, RIGHT.replace("{enable-tidb-extension: true}", options).replace("canal-json", protocol, 1))


def feed_with(folder: Path, options: str, protocol: str = "canal-json") -> Feed:
    return load_feed(with_options(folder, options, protocol))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_options_of_ticdcs_own_kafka_connection_are_accepted(tmp_path: Path, protocol: str) -> None:
    options = feed_with(tmp_path, DOCUMENTED, protocol).sink_options
    assert (options.max_message_bytes, options.max_batch_size) == (67108864, 16)
    assert options.enable_tidb_extension == (protocol in ("canal_json", "debezium"))


@pytest.mark.parametrize("name", ["sasl-password", "sasl-gssapi-password", "sasl-oauth-client-secret"])
def test_a_secret_is_refused_and_not_shown(tmp_path: Path, name: str) -> None:
    path = with_options(tmp_path, f"{{enable-tidb-extension: true, {name}: hunter2}}")
    assert mistakes(path) == [
        f"{path}: options.{name}: secrets are not allowed here: remove it, or give a reference in kafka.security"
    ]


def test_null_of_yaml_is_the_word_null(tmp_path: Path) -> None:
    assert feed_with(tmp_path, "{craft-float: null}", "craft").sink_options.craft_float is CraftFloat.NULL


def test_claim_check_with_its_place_is_right(tmp_path: Path) -> None:
    place = "large-message-handle-option: claim-check, claim-check-storage-uri: 's3://bucket/claims'"
    feed = feed_with(tmp_path, f"{{enable-tidb-extension: true, {place}}}")
    assert feed.sink_options.claim_check_storage_uri == "s3://bucket/claims"


@pytest.mark.parametrize(("name", "key"), [("time-zone", "time_zone"), ("protocol", "protocol")])
def test_what_the_file_has_as_a_key_of_its_own_is_no_option(tmp_path: Path, name: str, key: str) -> None:
    path = with_options(tmp_path, f"{{enable-tidb-extension: true, {name}: UTC}}")
    assert mistakes(path) == [f"{path}: options.{name}: no option here; expected as the key {key}"]


def test_an_unknown_option_is_named_with_those_that_the_file_takes(tmp_path: Path) -> None:
    path = with_options(tmp_path, "{timezone: UTC}", "craft")
    names = "craft-float, delete-only-output-handle-key-columns, max-batch-size, max-message-bytes"
    (mistake,) = mistakes(path)
    assert mistake == (
        f"{path}: options.timezone: no option of craft; expected one of {names}, output-raw-change-event"
    )
