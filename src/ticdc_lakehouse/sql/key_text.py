"""SQL texts of handle keys: a row's key is the JSON array of the texts of its values, as codecs write it."""

from __future__ import annotations

from collections.abc import Sequence

from ticdc_codec.errors import ApplyError
from ticdc_codec.mysql_type import Family
from ticdc_codec.name_case import fold
from ticdc_lakehouse.schema.definition import ColumnDefinition, Table
from ticdc_lakehouse.sql.text import literal
from ticdc_lakehouse.sql.typed_columns import IRREGULAR, by_name, stored_text_sql, typed_column

_BACKSLASH = "\\\\"
"""One backslash of a value, in JSON. Meanwhile it is a character that no JSON text has."""
_LETTERED = tuple(f"\\u{code:04X}" for code in (0x0B, 0x0E, 0x0F, *range(0x1A, 0x20)))
"""The escapes of control characters that have letters."""


def key_text_sql(texts: Sequence[str]) -> str:
    """SQL of a handle key's JSON text, as codecs write it; ``texts`` is SQL of its values' texts. to_json writes the
    digits of control characters in capitals, codecs do not."""
    escaped = f"replace(to_json(array({', '.join(texts)})), {literal(_BACKSLASH)}, char(1))"
    for code in _LETTERED:
        escaped = f"replace({escaped}, {literal(code)}, {literal(code.lower())})"
    return f"replace({escaped}, char(1), {literal(_BACKSLASH)})"


def stored_key_sql(table: Table, time_zone: str) -> str:
    """SQL of the text of a stored row's key, as the feed's messages have it. Raises ApplyError for a column whose texts
    are not known."""
    return key_text_sql(stored_key_texts(table, time_zone))


def stored_key_texts(table: Table, time_zone: str) -> list[str]:
    """SQL of the texts of a stored row's key columns, in the order of the key's text. Raises ApplyError for a column
    whose texts are not known."""
    columns = {fold(column.name): column for column in table.columns}
    return [wire_text_sql(columns[fold(name)], time_zone) for name in table.key_text_columns]


def wire_text_sql(column: ColumnDefinition, time_zone: str) -> str:
    """SQL of a stored value's text in the feed's keys: ENUM and SET are stored by name, and most protocols send
    numbers. A number without a name is stored as it came, as an irregular value.

    Raises ApplyError for a column whose texts are not known.
    """
    check_digits(column)
    text = stored_text_sql(typed_column(by_name(column)), time_zone)
    elements = [literal(name) for name in column.type.elements]
    if not elements or column.by == "name":
        return text
    return f"coalesce({IRREGULAR}[{literal(column.name)}], {_number_sql(column, elements, text)})"


def _number_sql(column: ColumnDefinition, elements: Sequence[str], text: str) -> str:
    """SQL of the number of an ENUM's or SET's names; ``elements`` are literals of the type's."""
    if column.type.family is Family.ENUM:  # 0 for none of the names: the empty text, unless a name is empty
        return f"CAST(array_position(array({', '.join(elements)}), {text}) AS STRING)"
    chosen = f"split({text}, ',')"
    bits = (f"IF(array_contains({chosen}, {name}), {1 << bit}, 0)" for bit, name in enumerate(elements))
    mask = f"CASE WHEN {text} IS NOT NULL THEN CAST(CAST({' + '.join(bits)} AS DECIMAL(20,0)) AS STRING) END"
    # TiDB reads the empty text as no name, also where one is empty.
    return f"CASE WHEN {text} = '' THEN '0' ELSE {mask} END" if "" in column.type.elements else mask


def check_digits(column: ColumnDefinition) -> None:
    """Raises ApplyError for a column of times whose texts are not known."""
    if column.has_unknown_digits:
        raise unknown_digits(column)


def unknown_digits(column: ColumnDefinition) -> ApplyError:
    """Returns the error of a column whose texts are not known."""
    return ApplyError(f"column {column.name}: messages do not show how many digits its values have after the point")
