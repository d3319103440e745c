"""Kafka client options of a feed: slips are found, and nothing that a client may have is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from feed_file import RIGHT, mistakes, written

from ticdc_lakehouse.config.client_option import SECURITY_OPTIONS
from ticdc_lakehouse.config.feed import load_feed, security_options

# option and value in YAML, and what is said of it.
WRONG = {
    "security.protocl: SSL": "unknown Kafka client option; did you mean security.protocol?",
    "sasl.mechanims: PLAIN": "unknown Kafka client option; did you mean sasl.mechanism?",
    "sasl.mechanisms: PLAIN": "unknown Kafka client option; did you mean sasl.mechanism?",
    "ssl.trustore.location: /a": "unknown Kafka client option; did you mean ssl.truststore.location?",
    "security.protocol: SASL_SLL": "expected one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL, found 'SASL_SLL'",
    "security.protocol: ''": "expected one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL, found ''",
    "sasl.oauthbearer.assertion.private.key.passphrase: hunter2": (
        "expected a reference {secret: scope/key}, found a literal value"
    ),
}
# option in YAML, and what Kafka's client is given.
RIGHT_ONES = {
    "security.protocol: sasl_ssl": "sasl_ssl",
    "ssl.endpoint.identification.algorithm: ''": "",
    "sasl.login.refresh.window.factor: 0.75": "0.75",
    "sasl.login.connect.timeout.ms: 500": "500",
    "sasl.oauthbearer.header.urlencode: true": "true",
    "sasl.client.callback.handler.class: software.amazon.msk.auth.iam.IAMClientCallbackHandler": (
        "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
    ),
    "ssl.engine.ours.certificate: /certificate.pem": "/certificate.pem",
}


def with_security(folder: Path, option: str) -> Path:
    return written(folder, f"{RIGHT}  security: {{{option}}}\n")


@pytest.mark.parametrize("option", WRONG)
def test_a_wrong_option_is_named(tmp_path: Path, option: str) -> None:
    path = with_security(tmp_path, option)
    assert mistakes(path) == [f"{path}: kafka.security.{option.partition(':')[0]}: {WRONG[option]}"]


@pytest.mark.parametrize("option", RIGHT_ONES)
def test_an_option_reaches_the_client(tmp_path: Path, option: str) -> None:
    feed = load_feed(with_security(tmp_path, option))
    assert security_options(feed, lambda scope, key: scope + key) == {
        f"kafka.{option.partition(':')[0]}": RIGHT_ONES[option]
    }


@pytest.mark.parametrize("option", SECURITY_OPTIONS)
def test_every_option_of_the_client_may_be_given(tmp_path: Path, option: str) -> None:
    feed = load_feed(with_security(tmp_path, f"{option}: {{secret: kafka/it}}"))
    assert set(feed.security) == {option}
