"""The section ``live`` of a feed file: properties of the live tables, for all of a feed or by table."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct, field

from ticdc_lakehouse.config.table_filter import TablePattern, fits

_OF_GOLD = {
    r"ticdc\.": "another property than those by which gold finds its tables",
    r"delta\.columnMapping\.": "another property: columns are renamed and dropped by name",
    r"delta\.dataSkippingStatsColumns$": "another property: statistics follow the table's key",
    r"delta\.(logRetentionDuration|deletedFileRetentionDuration)$": "gold.retention_days in its place",
    r"delta\.enableChangeDataFeed$": "another property: the feed of changes is silver's, and Delta replaces no table "
    "that has one after a column was dropped or renamed",
    r"delta\.appendOnly$": "another property: live tables are merged into",
}
"""Properties that gold sets itself, and what is expected instead. Delta ignores their case."""
_DOTTED = r"[A-Za-z_][\w-]*(\.[\w-]+)+"


class PropertyName(str):
    """A property of a Delta table that gold leaves to the feed file."""

    __slots__ = ()

    expected: ClassVar[str] = "a property's name with a dot in it, such as delta.autoOptimize.autoCompact"
    json_schema: ClassVar[dict[str, Any]] = {"type": "string", "pattern": f"^(?!{'|'.join(_OF_GOLD)}){_DOTTED}$"}

    @classmethod
    def parse(cls, value: object) -> PropertyName:
        """Returns the name. Raises ValueError that says what is expected."""
        if not isinstance(value, str) or not re.fullmatch(_DOTTED, value, re.ASCII):
            raise ValueError
        for pattern, expected in _OF_GOLD.items():
            if re.match(pattern, value, re.IGNORECASE):
                raise ValueError(expected)
        return cls(value)


class PropertyText(str):
    """A property's value, which Delta keeps as text."""

    __slots__ = ()

    expected: ClassVar[str] = "a text, a number, true or false"
    json_schema: ClassVar[dict[str, Any]] = {"type": ["string", "number", "boolean"]}

    @classmethod
    def parse(cls, value: object) -> PropertyText:
        """Returns the text. Raises ValueError."""
        match value:
            case bool():
                return cls(str(value).lower())
            case str() | int() | float():
                return cls(value)
            case _:
                raise ValueError


class LiveKeys(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a feed file sets for some live tables."""

    table_properties: Annotated[
        dict[PropertyName, PropertyText],
        Meta(
            description="Properties of the live tables ([what for](databricks.md#table-properties)). A new table has "
            "them at once; one that exists gets them from the next `ticdc-lake maintain`. A property that is taken out "
            "of the file stays as it was set.",
            extra_json_schema={"propertyNames": PropertyName.json_schema},
        ),
    ] = field(default_factory=dict)


class Live(LiveKeys, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The live tables, beside what gold sets itself."""

    tables: Annotated[
        dict[TablePattern, LiveKeys],
        Meta(
            description="`table_properties` for the tables of a pattern, added to those of the feed. The first pattern "
            "that fits counts; its values win.",
            extra_json_schema={"propertyNames": TablePattern.json_schema},
        ),
    ] = field(default_factory=dict)

    def properties(self, database: str, table: str) -> dict[str, str]:
        """Returns the properties of one table."""
        own = next((keys for pattern, keys in self.tables.items() if fits(pattern, database, table)), LiveKeys())
        all_properties = (*self.table_properties.items(), *own.table_properties.items())
        return {str(name): str(value) for name, value in all_properties}
