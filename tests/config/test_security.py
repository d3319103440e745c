"""Kafka client options of a feed: slips are found, and nothing that a client may have is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from feed_file import RIGHT, mistakes, written

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.config.client_option import CLIENT_OPTIONS
from ticdc_lakehouse.config.feed import load_feed
from ticdc_lakehouse.config.security import kafka_source_options

# option and value in YAML, and what the mistake says.
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


# options in YAML, the one of them that is a mistake, and what the mistake says.
WRONG_TOGETHER = {
    "sasl.jaas.config: {secret: kafka/jaas}, sasl.mechanism: PLAIN": (
        "sasl.jaas.config: expected beside security.protocol: SASL_PLAINTEXT or SASL_SSL, found no security.protocol, "
        "which means PLAINTEXT; set it, or remove the options sasl.*"
    ),
    "security.protocol: ssl, sasl.mechanism: PLAIN": (
        "sasl.mechanism: expected beside security.protocol: SASL_PLAINTEXT or SASL_SSL, found ssl; set it, or remove "
        "the options sasl.*"
    ),
    "security.protocol: SASL_PLAINTEXT, ssl.truststore.location: /a": (
        "ssl.truststore.location: expected beside security.protocol: SSL or SASL_SSL, found SASL_PLAINTEXT; set it, or "
        "remove the options ssl.*"
    ),
    "security.protocol: SASL_SSL, sasl.mechanism: plain": (
        "sasl.mechanism: expected one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, GSSAPI, OAUTHBEARER, AWS_MSK_IAM, or an "
        "option that names the class of another mechanism, such as sasl.client.callback.handler.class; found 'plain'"
    ),
    "security.protocol: SASL_SSL, sasl.mechanism: SCRAM-SHA512, sasl.jaas.config: {secret: kafka/jaas}": (
        "sasl.mechanism: expected one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, GSSAPI, OAUTHBEARER, AWS_MSK_IAM, or an "
        "option that names the class of another mechanism, such as sasl.client.callback.handler.class; found "
        "'SCRAM-SHA512'"
    ),
}
RIGHT_TOGETHER = [
    "security.protocol: SASL_SSL, sasl.jaas.config: {secret: kafka/jaas}",
    "security.protocol: sasl_plaintext, sasl.mechanism: AWS_MSK_IAM",
    "security.protocol: SASL_SSL, sasl.mechanism: OCI-RSA-SHA256, sasl.jaas.config: {secret: kafka/jaas}",
    "security.protocol: SSL, ssl.truststore.location: /a",
    "security.protocol: SASL_SSL, sasl.mechanism: OURS, sasl.client.callback.handler.class: com.example.Ours",
    "security.protocol: {secret: a/b}, sasl.mechanism: {secret: a/c}, ssl.protocol: TLS",
    "security.protocol: PLAINTEXT",
    "databricks.serviceCredential: msk, sasl.mechanism: OAUTHBEARER",
]


def with_security(folder: Path, option: str) -> Path:
    return written(folder, f"{RIGHT}  security: {{{option}}}\n")


def with_protocol(option: str) -> str:
    """The option beside the protocol that it needs."""
    return f"security.protocol: SASL_SSL, {option}" if option.startswith(("sasl.", "ssl.")) else option


@pytest.mark.parametrize("options", WRONG_TOGETHER)
def test_options_that_have_no_effect_together_are_named(tmp_path: Path, options: str) -> None:
    path = with_security(tmp_path, options)
    assert mistakes(path) == [f"{path}: kafka.security.{WRONG_TOGETHER[options]}"]


@pytest.mark.parametrize("options", RIGHT_TOGETHER)
def test_options_that_have_an_effect_together_are_right(tmp_path: Path, options: str) -> None:
    feed = load_feed(with_security(tmp_path, options))
    assert feed.security.keys() == yaml.safe_load(f"{{{options}}}").keys()


@pytest.mark.parametrize("option", WRONG)
def test_a_wrong_option_is_named(tmp_path: Path, option: str) -> None:
    path = with_security(tmp_path, option)
    assert mistakes(path) == [f"{path}: kafka.security.{option.partition(':')[0]}: {WRONG[option]}"]


@pytest.mark.parametrize("option", RIGHT_ONES)
def test_an_option_reaches_the_client(tmp_path: Path, option: str) -> None:
    feed = load_feed(with_security(tmp_path, with_protocol(option)))
    protocol = {} if option.startswith("security.") else {"kafka.security.protocol": "SASL_SSL"}
    assert kafka_source_options(feed.security, lambda scope, key: scope + key, on_databricks=False) == {
        **protocol,
        f"kafka.{option.partition(':')[0]}": RIGHT_ONES[option],
    }


@pytest.mark.parametrize("option", CLIENT_OPTIONS)
def test_every_option_of_the_client_may_be_given(tmp_path: Path, option: str) -> None:
    feed = load_feed(with_security(tmp_path, with_protocol(f"{option}: {{secret: kafka/it}}")))
    assert set(feed.security) - ({"security.protocol"} - {option}) == {option}


JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="a;org.apache.kafka.b";'
SHADED = JAAS.replace("org", "kafkashaded.org", 1)
MSK = "software.amazon.msk.auth.iam.IAM"
# option and secret -> what the client is given on Databricks, and on a laptop.
CLASSES = {
    ("sasl.jaas.config", JAAS): (SHADED, JAAS),
    ("sasl.jaas.config", SHADED): (SHADED, JAAS),
    ("sasl.jaas.config", f"{JAAS} \n{JAAS}"): (f"{SHADED} \n{SHADED}", f"{JAAS} \n{JAAS}"),
    ("sasl.jaas.config", f"{MSK}LoginModule required;"): (
        f"shadedmskiam.{MSK}LoginModule required;",
        f"{MSK}LoginModule required;",
    ),
    ("sasl.jaas.config", "com.sun.security.auth.module.Krb5LoginModule required;"): (
        "com.sun.security.auth.module.Krb5LoginModule required;",
        "com.sun.security.auth.module.Krb5LoginModule required;",
    ),
    ("sasl.client.callback.handler.class", f"{MSK}ClientCallbackHandler"): (
        f"shadedmskiam.{MSK}ClientCallbackHandler",
        f"{MSK}ClientCallbackHandler",
    ),
    ("security.providers", "org.apache.kafka.A, com.example.B"): (
        "kafkashaded.org.apache.kafka.A,com.example.B",
        "org.apache.kafka.A,com.example.B",
    ),
    ("ssl.truststore.location", "org.apache.kafka.jks"): ("org.apache.kafka.jks", "org.apache.kafka.jks"),
}


@pytest.mark.parametrize(("name", "value"), CLASSES)
def test_classes_have_the_names_of_the_runtime(tmp_path: Path, name: str, value: str) -> None:
    feed = load_feed(with_security(tmp_path, with_protocol(f"{name}: {{secret: kafka/it}}")))
    given = [
        kafka_source_options(feed.security, lambda _scope, _key: value, on_databricks=there) for there in (True, False)
    ]
    assert tuple(options[f"kafka.{name}"] for options in given) == CLASSES[name, value]


def test_service_credential_is_an_option_of_the_source_only_on_databricks(tmp_path: Path) -> None:
    feed = load_feed(with_security(tmp_path, "databricks.serviceCredential: msk"))
    options = kafka_source_options(feed.security, lambda scope, key: scope + key, on_databricks=True)
    assert options == {"databricks.serviceCredential": "msk"}
    with pytest.raises(
        ConfigError, match=r"kafka\.security\.databricks\.serviceCredential: expected only on Databricks"
    ):
        kafka_source_options(feed.security, lambda scope, key: scope + key, on_databricks=False)


def test_misspelt_service_credential_is_named(tmp_path: Path) -> None:
    path = with_security(tmp_path, "databricks.serviceCredentials: msk")
    assert mistakes(path) == [
        f"{path}: kafka.security.databricks.serviceCredentials: unknown Kafka client option; "
        "did you mean databricks.serviceCredential?"
    ]
