"""The reference of feed files, made from the definition of their keys: a page for people, a JSON Schema for editors.

``python -m ticdc_lakehouse.config.reference`` writes both; ``make docs`` runs it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec
from msgspec.structs import FieldInfo

from ticdc_codec.options import Option, allows_null, bare, expected, option_names, options_of
from ticdc_codec.protocols import PROTOCOLS
from ticdc_lakehouse.config.alarm import Alarm
from ticdc_lakehouse.config.client_option import CLIENT_OPTIONS
from ticdc_lakehouse.config.feed_file import Bronze, FeedFile, Silver
from ticdc_lakehouse.config.gold import Gold
from ticdc_lakehouse.config.kafka import Kafka
from ticdc_lakehouse.config.keys import default_of
from ticdc_lakehouse.config.live import Live
from ticdc_lakehouse.config.security import PREFIXES, is_secret
from ticdc_lakehouse.config.sink_uri import CONNECTION_OPTIONS, SECRETS
from ticdc_lakehouse.config.table_filter import TableFilter
from ticdc_lakehouse.policy import Policy

PAGE = "docs/feeds.md"
SCHEMA = "resources/feeds/feed.schema.json"

EXAMPLE = """\
# yaml-language-server: $schema=feed.schema.json
protocol: canal-json
time_zone: Asia/Shanghai
options:
  enable-tidb-extension: true
kafka:
  bootstrap_servers: [kafka-1.example.com:9093, kafka-2.example.com:9093]
  topics: [crm-changes]
  retired: [crm-changes/3]
  security:
    security.protocol: SASL_SSL
    sasl.mechanism: SCRAM-SHA-512
    sasl.jaas.config: {secret: kafka/jaas}
tables:
  include: ["crm.*"]
  exclude: ["crm.audit_*"]
bronze:
  retention_days: 30
silver:
  retention_days: 90
gold:
  mode: watermarks
  retention_days: 30
  views: pinned
  schema: ""
  ddl_time_zone: Asia/Shanghai
  name: "{feed}_{database}_{table}"
  on_drop: drop
  on_unsupported_ddl: block
  on_irregular: "null"
  on_computed_default: learn
  on_handle_key_only: block
  tables:
    crm.archive: {on_drop: keep}
live:
  table_properties: {delta.autoOptimize.autoCompact: false}
  tables:
    crm.orders: {table_properties: {delta.autoOptimize.optimizeWrite: true}}
alarm: {behind: 30m, blocked: true, quarantine: 1}
schema_file: crm.sql
source: mysql://reader@tidb.crm.internal:4000/?secret=lake/tidb
starting_offsets: earliest
max_message_bytes: 16777216
"""
"""A file with every key but those that exclude others."""

_HEAD = f"""\
# Feed files

Made by `make docs` from the definition of the keys (`src/ticdc_lakehouse/config`).

One file per changefeed, `resources/feeds/<name>.yml`. The name, at most 40 letters a-z, digits and `_`, a letter first,
becomes part of the names of the feed's tables. A file is checked whole before anything runs: every mistake is listed
with its key, what is expected and what was found. An editor with a YAML language server checks it while it is typed, by
the first line:

```yaml
{EXAMPLE}```
"""
_OPTIONS = """
## options

What the changefeed's sink-uri says beside the protocol, with the values that it has there. Messages do not show these
options, and what they hold depends on them.
"""
_LONG = 200
"""A description of more characters has only its first sentence in the table; the rest follows the table."""
_SECURITY = """
## kafka.security

Options of the Kafka client, without the prefix `kafka.`. What is secret is a reference: `{secret: scope/key}` is the
secret `key` of the scope `scope` on Databricks, and the environment variable `LAKEHOUSE_SECRET_<SCOPE>_<KEY>` on a
laptop. An option may be one that is not listed, if it begins with `security.`, `sasl.` or `ssl.`.

Options `sasl.*` need the `security.protocol` SASL_PLAINTEXT or SASL_SSL, options `ssl.*` need SSL or SASL_SSL: Kafka's
client would ignore them beside another one, so they are refused.

Names of classes, also in `sasl.jaas.config`, are written as Kafka and Amazon's IAM library document them. Databricks
has these classes under other packages (`kafkashaded.`, `shadedmskiam.`); one file runs there and on a laptop.
"""


def page() -> str:
    """Returns the page ``docs/feeds.md``."""
    options = [option for name, option in options_of().items() if name != "time-zone"]
    of_connection = ", ".join(f"`{name}`" for name in CONNECTION_OPTIONS if name not in options_of())
    secret = ", ".join(f"`{name}`" for name in SECRETS)
    parts = [
        _HEAD,
        *_section("Keys", FeedFile),
        *_section("kafka", Kafka),
        _SECURITY,
        *_table(("option", "what it is"), (_client_option_cells(name) for name in CLIENT_OPTIONS)),
        _OPTIONS,
        *_table(("option", "protocols", "value", "default", "what it is"), map(_option_cells, options)),
        f"\nWithout effect, since only TiCDC's own connection depends on them: {of_connection}.\n",
        f"\nRefused, since they are secrets: {secret}.\n",
        *_section("tables", TableFilter),
        *_section("bronze", Bronze),
        *_section("silver", Silver),
        *_section("gold", Gold),
        *_section("live", Live),
        *_section("alarm", Alarm),
    ]
    return "".join(parts)


def schema() -> dict[str, Any]:
    """Returns the JSON Schema of a feed file. What no schema can say, such as which options go together, it leaves
    open."""
    (whole,), definitions = msgspec.json.schema_components([FeedFile], schema_hook=_schema_of)
    definitions["FeedFile"]["properties"]["options"] |= _options_schema()
    definitions["FeedFile"]["allOf"] = [_options_of_protocol(name) for name in PROTOCOLS]
    definitions["Kafka"]["oneOf"] = [{"required": ["topics"]}, {"required": ["topic_pattern"]}]
    definitions["Kafka"]["properties"]["security"] |= _security_schema()
    definitions["SecretReference"] = {
        "type": "object",
        "description": "A secret: its scope and its key.",
        "properties": {"secret": {"type": "string", "pattern": r"^[^/\s]+/[^/\s]+$"}},
        "required": ["secret"],
        "additionalProperties": False,
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **whole, "$defs": definitions}


def _section(title: str, kind: type[msgspec.Struct]) -> Iterator[str]:
    yield f"\n## {title}\n\n{' '.join((kind.__doc__ or '').split())}\n"
    rows = [(*_key_cells(field), *_parted(_description(field))) for field in _own_first(kind)]
    yield from _table(("key", "value", "default", "what it is"), (cells for *cells, _ in rows))
    yield from (f"\n**{key}**. {rest}\n" for key, *_, rest in rows if rest)


def _parted(description: str) -> tuple[str, str]:
    """Returns what the table shows of a description, and the rest."""
    first, stop, rest = description.partition(". ")
    return (first + stop.rstrip(), rest) if len(description) > _LONG else (description, "")


def _own_first(kind: type[msgspec.Struct]) -> list[FieldInfo]:
    """Returns the fields of a Struct, those last that it inherits."""
    return sorted(msgspec.structs.fields(kind), key=lambda field: field.name not in kind.__annotations__)


def _table(heads: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[str]:
    yield f"\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n"
    yield from (f"| {' | '.join(row)} |\n" for row in rows)


def _key_cells(field: FieldInfo) -> tuple[str, ...]:
    default = "required" if field.required else _code(default_of(field) or getattr(Policy(), field.name, None))
    return f"`{field.encode_name}`", _values(field.type), default


def _description(field: FieldInfo) -> str:
    return msgspec.inspect.type_info(field.type).extra_json_schema["description"]  # type: ignore[attr-defined, no-any-return]


def _option_cells(option: Option) -> tuple[str, ...]:
    protocols = ", ".join(name.replace("_", "-") for name in option.protocols) or "all"
    return f"`{option.name}`", protocols, _values(option.kind), _code(option.default), option.description


def _client_option_cells(name: str) -> tuple[str, str]:
    secret = " Secret: a reference." if is_secret(name) else ""
    return f"`{name}`", CLIENT_OPTIONS[name] + secret


def _values(kind: Any) -> str:
    plain = bare(kind)
    if get_origin(plain) is tuple:
        return f"list: {expected(get_args(plain)[0])}"
    is_mapping = get_origin(plain) is dict or (isinstance(plain, type) and issubclass(plain, msgspec.Struct))
    return "mapping" if is_mapping else expected(kind)


def _code(default: object) -> str:
    if isinstance(default, msgspec.Struct) or default in (None, (), {}):
        return ""
    text = default if isinstance(default, str) else json.dumps(default, default=str).strip('"')
    return f"`{text}`"


def _schema_of(kind: Any) -> dict[str, Any]:
    return dict(getattr(kind, "json_schema", {"type": "string"}))


def _options_schema() -> dict[str, Any]:
    ours = {name: _option_schema(option) for name, option in options_of().items() if name != "time-zone"}
    without_effect = {"description": "Without effect: TiCDC's own connection to Kafka."}
    return {"properties": dict.fromkeys(CONNECTION_OPTIONS, without_effect) | ours, "additionalProperties": False}


def _options_of_protocol(protocol: str) -> dict[str, Any]:
    """Returns the schema's rule that a file of this protocol has the options of this protocol."""
    spellings = {"enum": [protocol, protocol.replace("_", "-")]}
    names = sorted((option_names(protocol) | {*CONNECTION_OPTIONS}) - {"time-zone"})
    return {
        "if": {"properties": {"protocol": spellings}, "required": ["protocol"]},
        "then": {"properties": {"options": {"propertyNames": {"enum": names}}}},
    }


def _option_schema(option: Option) -> dict[str, Any]:
    described = {"description": option.description}
    match msgspec.json.schema(option.kind), bare(option.kind):
        case _, type() as words if issubclass(words, StrEnum):
            return described | {"enum": [*words, *([None] if allows_null(words) else [])]}
        case {"type": "boolean"}, _:
            return described | {"enum": [True, False, "true", "false"]}
        case {"type": "integer", "minimum": least}, _:
            return described | {"type": ["integer", "string"], "minimum": least, "pattern": "^[0-9]+$"}
        case _:
            return described | {"type": "string"}


def _security_schema() -> dict[str, Any]:
    reference = {"$ref": "#/$defs/SecretReference"}
    either = {"anyOf": [{"type": ["string", "number", "boolean"]}, reference]}
    options = {
        name: {"description": text} | (reference if is_secret(name) else either)
        for name, text in CLIENT_OPTIONS.items()
    }
    prefixes = "|".join(prefix.rstrip(".") for prefix in PREFIXES)
    return {"properties": options, "patternProperties": {rf"^({prefixes})\.": either}, "additionalProperties": False}


def main() -> None:
    """Writes both files below the working directory."""
    Path(PAGE).write_text(page(), encoding="utf-8")
    Path(SCHEMA).write_text(schema_text(), encoding="utf-8")


def schema_text() -> str:
    """Returns the JSON Schema as its file holds it."""
    return json.dumps(schema(), indent=2, default=list) + "\n"


if __name__ == "__main__":
    main()
