"""The section ``options`` of a feed file: the changefeed's sink-uri parameters beside the protocol."""

from __future__ import annotations

from collections.abc import Mapping

from ticdc_codec.errors import ConfigError, suggestion
from ticdc_codec.options import SinkOptions, Zone, option_names, options_of, sink_options
from ticdc_lakehouse.config.keys import Key

# How TiCDC itself reaches Kafka: no message depends on it. Source: pingcap/ticdc pkg/sink/kafka/options.go (urlConfig)
# and pkg/config/sink.go (KafkaConfig). The protocols that have no enable-tidb-extension ignore it, as TiCDC does.
CONNECTION_OPTIONS = (
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
    "transaction-atomicity",
    "write-timeout",
)
SECRETS = ("sasl-password", "sasl-gssapi-password", "sasl-oauth-client-secret")
_KEYS_OF_THE_FILE = {"protocol": "protocol", "time-zone": "time_zone"}
"""What the codec takes beside the options, or a sink-uri has, and the file as a key of its own."""


def read_options(given: Mapping[str, object], protocol: str | None, zone: Zone | None, key: Key) -> SinkOptions:
    """Reads the options and the time zone. Each is tried by itself, so that all mistakes are found and not only the
    first one.

    ``protocol`` is None where it is a mistake itself: an option is then checked as the protocols have it that do.
    """
    right = {name: value for name, value in given.items() if _is_right(name, value, protocol, key / name)}
    if protocol is None or zone is None:
        return SinkOptions()
    return sink_options(protocol, {**right, "time-zone": zone})


def _is_right(name: str, value: object, protocol: str | None, key: Key) -> bool:
    """True if the option decides how messages are decoded, and has one of its values; notes what is wrong with it."""
    if name in _KEYS_OF_THE_FILE:
        key.note(f"no option here; expected as the key {_KEYS_OF_THE_FILE[name]}")
    elif name in SECRETS:
        # What was found is not shown.
        key.note("secrets are not allowed here: remove it, or give a reference in kafka.security")
    elif protocol is None and name not in {*options_of(), *CONNECTION_OPTIONS}:
        key.note("unknown sink-uri option")
    elif protocol is not None and name not in {*option_names(protocol), *CONNECTION_OPTIONS}:
        nearest = suggestion(name, option_names(protocol) - _KEYS_OF_THE_FILE.keys())
        key.note(f"no option of {protocol.replace('_', '-')}; {nearest}")
    elif name not in CONNECTION_OPTIONS or (protocol is not None and name in option_names(protocol)):
        return _is_value(name, value, protocol or (options_of()[name].protocols or ("craft",))[0], key)
    return False


def _is_value(name: str, value: object, protocol: str, key: Key) -> bool:
    try:
        sink_options(protocol, {name: value})
    except ConfigError as error:
        # The codec's message begins with the option's name, here the key stands before it.
        key.note(str(error).removeprefix(f"{name}: "))
        return False
    return True
