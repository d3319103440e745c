"""Defects of TiCDC's writers that may have changed values (docs/defects.md).

Decoders mark a suspect column with the names of its defects, separated by spaces (``Column.defect``). The feed's option
of the same name decides whether gold merges such rows; the column's comment says what may be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from types import MappingProxyType

from ticdc_codec.event import Column
from ticdc_codec.options import SinkOptions, Trust

CRAFT_FLOAT = "craft-float"
DEBEZIUM_DATE = "debezium-date"
DEBEZIUM_DECIMAL = "debezium-decimal"
DEBEZIUM_DECIMAL_KEY = "debezium-decimal-key"
DEBEZIUM_DEFAULT = "debezium-default"
OPEN_FLAGS = "open-flags"
OPEN_LOST_NAME = "open-lost-name"
SIMPLE_COLUMN_ORDER = "simple-column-order"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterDefect:
    """A known defect of a writer."""

    remark: str
    """Text for the column's comment."""
    decision: Callable[[SinkOptions], str] = lambda _: Trust.TRUST
    """Reads the feed's option for it. A defect without option leaves gold's values correct."""
    refusal: str | None = None
    """Why gold refuses the rows, and the ways out."""
    settled: bool = False
    """True if the defect does not matter once a CREATE TABLE defines the columns."""


WRITER_DEFECTS: Mapping[str, WriterDefect] = MappingProxyType(
    {
        CRAFT_FLOAT: WriterDefect(
            decision=attrgetter("craft_float"),
            refusal="it has a FLOAT column, and TiCDC 8.2 and later write Craft's FLOAT wrongly: set the feed's option "
            "craft-float to trust if the writer is older, or to null",
            remark="wrong if TiCDC 8.2 or later wrote it",
        ),
        DEBEZIUM_DATE: WriterDefect(
            remark="in messages zero and partial dates are NULL, or 1970-01-01 if NOT NULL, and years before 0100 have "
            "a century",
        ),
        DEBEZIUM_DECIMAL: WriterDefect(
            decision=attrgetter("debezium_decimal"),
            refusal="it has a DECIMAL of more than 15 digits, which Debezium sends as a float64: set the feed's option "
            "debezium-decimal to trust if its values are shorter",
            remark="came as a float64: digits after the 15th may be wrong",
        ),
        DEBEZIUM_DECIMAL_KEY: WriterDefect(
            decision=attrgetter("debezium_decimal_key"),
            refusal="its key has a DECIMAL that may have more than 15 digits, which Debezium sends as a float64, so "
            "that two rows may be one: `ticdc-lake load` an export taken since if only the digits are unknown (of a "
            "table that gold has, schema_file no longer shows them), or set the feed's option debezium-decimal-key to "
            "trust if its values are shorter",
            remark="came as a float64: keys that differ after the 15th digit are one",
        ),
        DEBEZIUM_DEFAULT: WriterDefect(
            decision=attrgetter("debezium_default"),
            refusal="it has a column with a DEFAULT, for which TiCDC's Debezium writes a NULL as the default: set the "
            "feed's option debezium-default to trust if there are no such NULLs, or if they may be read so",
            remark="NULL comes as the column's DEFAULT, if it has one",
        ),
        OPEN_FLAGS: WriterDefect(
            decision=attrgetter("open_flags"),
            settled=True,
            refusal="rows arrived without their columns' flags, or with those from before a DDL (TiCDC), so that "
            "UNSIGNED, BINARY and the key are unknown: restart the changefeed, then `ticdc-lake load` an export taken "
            "since, or set the feed's option open-flags to trust if no column is of such a type and the key is as "
            "before",
            remark="came without its flags: whether it is UNSIGNED or BINARY is not known",
        ),
        OPEN_LOST_NAME: WriterDefect(
            remark="in silver, some values before an update are missing",
        ),
        SIMPLE_COLUMN_ORDER: WriterDefect(
            decision=attrgetter("simple_column_order"),
            refusal="its columns are not in the order in which they were created, and TiCDC's classic writer of "
            "Simple puts the values of such rows under wrong names: set the feed's option simple-column-order to "
            "trust only if the writer is fixed",
            remark="under a wrong name if TiCDC's classic writer sent it",
        ),
    }
)


def refusal(columns: tuple[Column, ...], options: SinkOptions, *, defined: bool) -> str | None:
    """Returns why gold refuses rows with these columns; None if no column is suspect or the feed trusts the writer.

    ``defined``: a statement defines the columns, and the rows fit it.
    """
    words = {word: None for column in columns for word in (column.defect or "").split()}
    open_words = [word for word in words if not (defined and WRITER_DEFECTS[word].settled)]
    return next((reason for word in open_words if (reason := _refusal(word, options)) is not None), None)


def refusal_of_order(options: SinkOptions) -> str | None:
    """Like `refusal`, for rows that list their columns in another order than the table (Simple)."""
    return _refusal(SIMPLE_COLUMN_ORDER, options)


def _refusal(word: str, options: SinkOptions) -> str | None:
    defect = WRITER_DEFECTS[word]
    return defect.refusal if defect.decision(options) != Trust.TRUST else None


def remark(defect: str | None) -> str:
    """Returns the comment for a column's defects; empty without defects."""
    return "; ".join(WRITER_DEFECTS[word].remark for word in (defect or "").split())
