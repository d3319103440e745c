"""A feed's ``kafka.security``: options of the Kafka client, the secret ones as references."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from ticdc_lakehouse.config.client_option import SECURITY_OPTIONS
from ticdc_lakehouse.config.section import Section

_PREFIXES = ("security.", "sasl.", "ssl.")
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_REFERENCE = re.compile(r"[^/\s]+/[^/\s]+")
_SECRET = re.compile(r"password|passphrase|jaas|secret|token|keystore\.key$")
# Addresses, although they speak of tokens.
_OPEN = re.compile(r"\.url$")
_MISSPELT = 0.9
"""How much alike a name and one of Kafka's are where it is taken for a slip: ``sasl.mechanims`` is at 0.93. A name like
none of them passes: a newer client, or a class that an option names, may read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretReference:
    """Where a secret is kept: a scope and a key, as Databricks names them."""

    scope: str
    key: str


def security(section: Section) -> dict[str, str | SecretReference]:
    """The options of the section, those that are right."""
    options = {name: _option(section, name, value) for name, value in section.values.items()}
    return {name: value for name, value in options.items() if value is not None}


def _option(section: Section, name: str, value: object) -> str | SecretReference | None:
    meant = get_close_matches(name, SECURITY_OPTIONS, n=1, cutoff=_MISSPELT)
    if not name.startswith(_PREFIXES):
        section.note(name, f"expected a Kafka client option that begins with {', '.join(_PREFIXES)}")
    elif meant and name not in SECURITY_OPTIONS:
        section.note(name, f"unknown Kafka client option; did you mean {meant[0]}?")
    elif isinstance(value, Mapping):
        return _secret_reference(section, name, value)
    elif _SECRET.search(name) and not _OPEN.search(name):
        # What was found is not shown: it may be the secret.
        section.note(name, "expected a reference {secret: scope/key}, found a literal value")
    else:
        return _literal(section, name, value)
    return None


def _literal(section: Section, name: str, value: object) -> str | None:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if not isinstance(value, str | int | float):
        section.note(name, f"expected text or a reference {{secret: scope/key}}, found {value!r}")
    # Any other text may be empty: an empty ssl.endpoint.identification.algorithm turns the check of host names off.
    elif name == "security.protocol" and text.upper() not in _PROTOCOLS:
        section.note(name, f"expected one of {', '.join(_PROTOCOLS)}, found {value!r}")
    else:
        return text
    return None


def _secret_reference(section: Section, name: str, value: Mapping[object, object]) -> SecretReference | None:
    reference = value.get("secret")
    if set(value) != {"secret"} or not isinstance(reference, str) or not _REFERENCE.fullmatch(reference):
        section.note(name, f"expected {{secret: scope/key}}, found a mapping of {', '.join(map(str, value))}")
        return None
    scope, _, key = reference.partition("/")
    return SecretReference(scope=scope, key=key)
