"""A feed's ``options``: what the changefeed's sink-uri says beside the protocol."""

from __future__ import annotations

from ticdc_codec.errors import ConfigError
from ticdc_codec.options import SinkOptions, option_names, sink_options
from ticdc_codec.protocols import PROTOCOLS
from ticdc_lakehouse.config.section import Section

# How TiCDC itself reaches Kafka: no message depends on it. Source: pingcap/ticdc pkg/sink/kafka/options.go (urlConfig)
# and pkg/config/sink.go (KafkaConfig). The protocols that have no enable-tidb-extension ignore it, as TiCDC does.
_OF_TICDC_ALONE = (
    "auto-create-topic",
    "ca",
    "cert",
    "compression",
    "dial-timeout",
    "enable-tidb-extension",
    "enable-tls",
    "insecure-skip-verify",
    "kafka-client-id",
    "kafka-version",
    "key",
    "max-retry",
    "partition-num",
    "read-timeout",
    "replication-factor",
    "required-acks",
    "sasl-gssapi-auth-type",
    "sasl-gssapi-disable-pafxfast",
    "sasl-gssapi-kerberos-config-path",
    "sasl-gssapi-keytab-path",
    "sasl-gssapi-realm",
    "sasl-gssapi-service-name",
    "sasl-gssapi-user",
    "sasl-mechanism",
    "sasl-oauth-audience",
    "sasl-oauth-client-id",
    "sasl-oauth-grant-type",
    "sasl-oauth-scopes",
    "sasl-oauth-token-url",
    "sasl-user",
    "write-timeout",
)
_SECRETS = ("sasl-password", "sasl-gssapi-password", "sasl-oauth-client-secret")


def read_options(root: Section, protocol: str | None) -> SinkOptions:
    """The options and the time zone. Each is tried alone, so that all mistakes are found and not the first one.

    ``protocol`` is None where it is a mistake itself: an option is then held against the protocols that have it.
    """
    section = root.section("options")
    taken = {name: value for name, value in section.values.items() if _is_read(section, protocol, name, value)}
    zone = root.text("time_zone")
    if zone is not None and _is_right(root, "time_zone", protocol, "time-zone", zone):
        taken["time-zone"] = zone
    return SinkOptions() if protocol is None else sink_options(protocol, taken)


def _is_read(section: Section, protocol: str | None, name: str, value: object) -> bool:
    """Whether decoders have a use for the option; notes what is wrong with it."""
    if name == "time-zone":
        section.note(name, "no option here; expected as the key time_zone")
    elif name in _SECRETS:
        # What was found is not shown.
        section.note(name, "secrets are not allowed here: remove it, or give a reference in kafka.security")
    elif name not in _OF_TICDC_ALONE or _has(protocol, name):
        return _is_right(section, name, protocol, name, value)
    return False


def _has(protocol: str | None, name: str) -> bool:
    return protocol is not None and name in option_names(protocol)


def _is_right(section: Section, key: str, protocol: str | None, name: str, value: object) -> bool:
    judge = protocol or next((each for each in PROTOCOLS if name in option_names(each)), None)
    if judge is None:
        section.note(key, "unknown sink-uri option")
        return False
    try:
        sink_options(judge, {name: value})
    except ConfigError as error:
        # The codec's message begins with the option's name, here the key stands before it.
        section.note(key, str(error).removeprefix(f"{name}: "))
        return False
    return True
