"""The section ``kafka.security`` of a feed file: options of the Kafka client, secrets as references."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.config.client_option import CLASS_OPTIONS, CLIENT_OPTIONS, DATABRICKS_OPTIONS
from ticdc_lakehouse.config.keys import Key
from ticdc_lakehouse.tidb.session import Secret

PREFIXES = ("security.", "sasl.", "ssl.")
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_PROTOCOLS_WITH = {"sasl.": ("SASL_PLAINTEXT", "SASL_SSL"), "ssl.": ("SSL", "SASL_SSL")}
"""The values of ``security.protocol`` with which options of a prefix have an effect."""
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER", "AWS_MSK_IAM")
"""Kafka's own, and Amazon's IAM. Another one comes with a class that an option names."""
_REFERENCE = re.compile(r"[^/\s]+/[^/\s]+")
_SECRET = re.compile(r"password|passphrase|jaas|secret|token|keystore\.key$")
# Addresses, although their names contain "token".
_OPEN = re.compile(r"\.url$")
_MISSPELT = 0.9
"""Similarity to one of Kafka's names from which on a name is a typing error: ``sasl.mechanims`` has 0.93. A name like
none of them passes: a newer client, or a class that an option names, may read it."""

# Databricks' runtime has these packages under another one, and refuses their own names.
# Source: its error class RESTRICTED_STREAMING_OPTION_PERMISSION_ENFORCED,
# https://docs.databricks.com/aws/en/error-messages/restricted-streaming-option-permission-enforced-error-class
_SHADED = {"org.apache.kafka.": "kafkashaded.", "software.amazon.msk.auth.iam.": "shadedmskiam."}
# In JAAS a class stands at the beginning and after each semicolon; what stands in quotes may hold anything.
_JAAS_CLASS = re.compile(r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|((?:^|;)\s*)([\w.$]+)""")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretReference:
    """Where a secret is kept: a scope and a key, as Databricks names them."""

    scope: str
    key: str


Value = str | SecretReference


def read_security(given: Mapping[str, object], key: Key) -> dict[str, Value]:
    """Returns the options that are right; notes every mistake."""
    options = {name: _option(name, value, key / name) for name, value in given.items()}
    return {name: value for name, value in options.items() if value is not None}


def check_security(security: Mapping[str, Value], key: Key) -> None:
    """Notes options that are right one by one, but not together: the client would ignore them, or refuse the login.
    What a reference stands for is not known here."""
    protocol = security.get("security.protocol", "")
    if "databricks.serviceCredential" in security or isinstance(protocol, SecretReference):
        return
    for prefix, expected in _PROTOCOLS_WITH.items():
        name = next((name for name in security if name.startswith(prefix)), None)
        if name is not None and protocol.upper() not in expected:
            found = protocol or "no security.protocol, which means PLAINTEXT"
            (key / name).note(
                f"expected beside security.protocol: {' or '.join(expected)}, found {found}; "
                f"set it, or remove the options {prefix}*"
            )
    _check_mechanism(security, key / "sasl.mechanism")


def _check_mechanism(security: Mapping[str, Value], key: Key) -> None:
    mechanism = security.get("sasl.mechanism", "GSSAPI")  # Kafka's default
    if not isinstance(mechanism, str) or mechanism in _MECHANISMS:
        return
    names_class = (name in CLASS_OPTIONS and not name.startswith("ssl.") for name in security)
    # The login module of a jaas.config may bring a mechanism of its own, as Oracle's OCI-RSA-SHA256 does.
    alike = get_close_matches(mechanism.upper(), _MECHANISMS, n=1, cutoff=0.8)
    if not any(names_class) and (alike or "sasl.jaas.config" not in security):
        key.note(
            f"expected one of {', '.join(_MECHANISMS)}, or an option that names the class of another mechanism, such "
            f"as sasl.client.callback.handler.class; found {mechanism!r}"
        )


def is_secret(name: str) -> bool:
    """True if an option's value must be a reference."""
    return _SECRET.search(name) is not None and _OPEN.search(name) is None


def _option(name: str, value: object, key: Key) -> Value | None:
    similar = get_close_matches(name, CLIENT_OPTIONS, n=1, cutoff=_MISSPELT)
    if similar and name not in CLIENT_OPTIONS:
        key.note(f"unknown Kafka client option; did you mean {similar[0]}?")
    elif name not in CLIENT_OPTIONS and not name.startswith(PREFIXES):
        key.note(f"expected a Kafka client option that begins with {', '.join(PREFIXES)}")
    elif isinstance(value, Mapping):
        return _secret_reference(value, key)
    elif is_secret(name):
        # What was found is not shown: it may be the secret.
        key.note("expected a reference {secret: scope/key}, found a literal value")
    else:
        return _literal(name, value, key)
    return None


def _literal(name: str, value: object, key: Key) -> str | None:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if not isinstance(value, str | int | float):
        key.note(f"expected text or a reference {{secret: scope/key}}, found {value!r}")
    # Any other text may be empty: an empty ssl.endpoint.identification.algorithm turns the check of host names off.
    elif name == "security.protocol" and text.upper() not in PROTOCOLS:
        key.note(f"expected one of {', '.join(PROTOCOLS)}, found {value!r}")
    else:
        return text
    return None


def _secret_reference(value: Mapping[object, object], key: Key) -> SecretReference | None:
    reference = value.get("secret")
    if set(value) != {"secret"} or not isinstance(reference, str) or not _REFERENCE.fullmatch(reference):
        found = f" to {_wrong_reference(reference)}" if set(value) == {"secret"} else ""
        key.note(f"expected {{secret: scope/key}}, found a mapping of {', '.join(map(str, value))}{found}")
        return None
    scope, _, name = reference.partition("/")
    return SecretReference(scope=scope, key=name)


def _wrong_reference(reference: object) -> str:
    """Returns what is wrong with the value of a reference, without the value: it may be the secret."""
    if not isinstance(reference, str):
        return "something else than a text"
    slashes = reference.count("/")
    if slashes != 1:
        return f"a text with {slashes or 'no'} slashes; it needs one, between scope and key"
    return "a text with spaces, or with nothing before or after its slash"


def kafka_source_options(security: Mapping[str, Value], secret: Secret, *, on_databricks: bool) -> dict[str, str]:
    """Returns the options of Spark's Kafka source; ``secret(scope, key)`` returns a secret's text.

    A feed file may name the client's classes as open-source Spark or as Databricks' runtime has them, and runs on both.
    Raises ConfigError for an option that needs Databricks where that is not.
    """
    options = {}
    for name, value in security.items():
        text = secret(value.scope, value.key) if isinstance(value, SecretReference) else value
        if name not in DATABRICKS_OPTIONS:
            options[f"kafka.{name}"] = _in_runtime(name, text, shaded=on_databricks)
        elif on_databricks:
            options[name] = text
        else:
            raise ConfigError(f"kafka.security.{name}: expected only on Databricks: a laptop has no Unity Catalog")
    return options


def _in_runtime(name: str, value: str, *, shaded: bool) -> str:
    """Returns an option's value with the names of its classes as the runtime has them."""
    if name == "sasl.jaas.config":
        return _JAAS_CLASS.sub(lambda match: match[1] or match[2] + _class(match[3], shaded=shaded), value)
    if name in CLASS_OPTIONS:
        return ",".join(_class(each.strip(), shaded=shaded) for each in value.split(","))
    return value


def _class(name: str, *, shaded: bool) -> str:
    for package, prefix in _SHADED.items():
        if name.removeprefix(prefix).startswith(package):
            return (prefix if shaded else "") + name.removeprefix(prefix)
    return name
