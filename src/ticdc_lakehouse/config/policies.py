"""What a feed's file says of its gold tables, in all and one by one.

gold:
  mode: eventual                   for feeds without watermarks (default: watermarks)
  tombstone_days: 7                mode eventual: how long a deleted row is remembered
  retention_days: 30               how long a state stays readable (as_of) after the next one; at least 7
  name: "{feed}_{table}"           names of tables and views (default: {feed}_{database}_{table})
  schema: "{database}"             schema of the gold names (default: the layer's own)
  views: none                      pinned (default): views pinned to the published watermark; none: the live tables
  on_drop: keep                    what becomes of a table that TiDB dropped: drop (default) or keep
  on_unsupported_ddl: ignore       of one whose DDL cannot be followed: stop (default) or ignore
  on_irregular: text               of zero and partial dates: null (default), text or stop
  tables:
    shop.audit: {on_drop: keep}    the same for the tables of a pattern; the first that fits counts
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ticdc_lakehouse.config.section import Section
from ticdc_lakehouse.config.table_filter import TableFilter, pattern_mistake
from ticdc_lakehouse.policy import (
    NAME_TEMPLATE,
    RETENTION_DAYS,
    SHORTEST_RETENTION,
    Mode,
    OnDrop,
    OnIrregular,
    OnUnsupportedDdl,
    Policy,
    Views,
)

LONGEST_DAYS = 36_500
"""A century: what reaches back before the calendar's first day cannot be counted."""
_TEMPLATE = re.compile(r"([a-z0-9_]|\{(feed|database|table)\})+")
_KEYS = ("on_drop", "on_unsupported_ddl", "on_irregular")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """The policy of each table of a feed."""

    mode: Mode = Mode.WATERMARKS
    tombstone_days: int = 7
    retention_days: int = RETENTION_DAYS
    name_template: str = NAME_TEMPLATE
    schema_template: str | None = None
    views: Views = Views.PINNED
    default: Policy = field(default_factory=Policy)
    tables: Mapping[str, Policy] = field(default_factory=dict)
    """By pattern, in the order of the file."""

    def of(self, database: str, table: str) -> Policy:
        """The policy of one table."""
        fitting = (policy for pattern, policy in self.tables.items() if _fits(pattern, database, table))
        return next(fitting, self.default)


def _fits(pattern: str, database: str, table: str) -> bool:
    return TableFilter(include=(pattern,)).matches(database, table)


def policies(section: Section) -> Policies:
    """What the section ``gold`` says; notes every mistake."""
    section.only(("mode", "tombstone_days", "retention_days", "name", "schema", "views", *_KEYS, "tables"))
    default = _policy(section, Policy())
    tables = section.section("tables")
    for pattern in tables.values:
        mistake = pattern_mistake(pattern)
        if mistake is not None:
            tables.note(pattern, mistake)
    return Policies(
        mode=Mode(section.word("mode", tuple(Mode)) or Mode.WATERMARKS),
        tombstone_days=section.count("tombstone_days", 7, most=LONGEST_DAYS),
        retention_days=retention_days(section) or RETENTION_DAYS,
        name_template=_template(section, "name", required="{table}") or NAME_TEMPLATE,
        schema_template=_template(section, "schema", required=""),
        views=Views(section.word("views", tuple(Views)) or Views.PINNED),
        default=default,
        tables={pattern: _table_policy(tables.section(pattern), default) for pattern in tables.values},
    )


def retention_days(section: Section) -> int | None:
    """The key ``retention_days`` of a section; None where it is absent."""
    if section.values.get("retention_days") is None:
        return None
    days = section.count("retention_days", RETENTION_DAYS, most=LONGEST_DAYS)
    if days < SHORTEST_RETENTION:
        section.note("retention_days", f"expected {SHORTEST_RETENTION} days or more, found {days}")
    return days


def _template(section: Section, key: str, *, required: str) -> str | None:
    template = section.text(key)
    if template is not None and (not _TEMPLATE.fullmatch(template) or required not in template):
        holds = f"with {required} in it" if required else "as you like"
        expected = f"letters a-z, digits, _ and the placeholders {{feed}}, {{database}}, {{table}}, {holds}"
        section.note(key, f"expected {expected}, found {template!r}")
        return None
    return template


def _table_policy(section: Section, default: Policy) -> Policy:
    section.only(_KEYS)
    return _policy(section, default)


def _policy(section: Section, default: Policy) -> Policy:
    return Policy(
        on_drop=OnDrop(section.word("on_drop", tuple(OnDrop)) or default.on_drop),
        on_unsupported_ddl=OnUnsupportedDdl(
            section.word("on_unsupported_ddl", tuple(OnUnsupportedDdl)) or default.on_unsupported_ddl
        ),
        on_irregular=_on_irregular(section, default),
    )


def _on_irregular(section: Section, default: Policy) -> OnIrregular:
    if section.values.get("on_irregular", "") is None:  # YAML's own null
        return OnIrregular.NULL
    return OnIrregular(section.word("on_irregular", tuple(OnIrregular)) or default.on_irregular)
