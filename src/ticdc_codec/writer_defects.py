"""Defects of the writers that may have falsified values: what the bytes show, and who decides (docs/defects.md).

Decoders mark columns with a word (``Column.doubt``), or with several and a space between them. What becomes of such
rows the feed's option of the same name says; the columns' comments tell what may be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from types import MappingProxyType

from ticdc_codec.event import Column
from ticdc_codec.options import SinkOptions, Trust

CRAFT_FLOAT = "craft-float"
DEBEZIUM_DECIMAL = "debezium-decimal"
DEBEZIUM_DEFAULT = "debezium-default"
OPEN_FLAGS = "open-flags"
OPEN_LOST_NAME = "open-lost-name"
SIMPLE_COLUMN_ORDER = "simple-column-order"


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """One defect."""

    remark: str
    """What the column's comment says."""
    decision: Callable[[SinkOptions], str] = lambda _: Trust.TRUST
    """What the feed says of it; where nobody has to decide, all that gold takes is right."""
    refusal: str | None = None
    """Why a table does not take the rows, and what a person may say to that."""
    settled: bool = False
    """Whether a CREATE TABLE settles it: rows that fit that are right."""


DOUBTS: Mapping[str, Doubt] = MappingProxyType(
    {
        CRAFT_FLOAT: Doubt(
            decision=attrgetter("craft_float"),
            refusal="it has a FLOAT column, and TiCDC 8.2 and later write Craft's FLOAT wrongly: set the feed's option "
            "craft-float to trust if the writer is older, or to null",
            remark="wrong if TiCDC 8.2 or later wrote it",
        ),
        DEBEZIUM_DECIMAL: Doubt(
            decision=attrgetter("debezium_decimal"),
            refusal="it has a DECIMAL of more than 15 digits, which Debezium sends as a float64: set the feed's option "
            "debezium-decimal to trust if its values are shorter",
            remark="came as a float64: digits after the 15th may be wrong",
        ),
        DEBEZIUM_DEFAULT: Doubt(
            decision=attrgetter("debezium_default"),
            refusal="it has a column with a DEFAULT, for which TiCDC's Debezium writes a NULL as the default: set the "
            "feed's option debezium-default to trust if there are no such NULLs, or if they may be read so",
            remark="NULL comes as the column's DEFAULT, if it has one",
        ),
        OPEN_FLAGS: Doubt(
            decision=attrgetter("open_flags"),
            settled=True,
            refusal="rows of a partitioned table came without their columns' flags (TiCDC, after a DDL), so that "
            "UNSIGNED and BINARY are not known: give its CREATE TABLE in the feed's schema_file, or set the feed's "
            "option open-flags to trust if no column is of such a type",
            remark="came without flags: whether it is UNSIGNED or BINARY is not known",
        ),
        OPEN_LOST_NAME: Doubt(
            remark="in silver, some values before an update are missing",
        ),
        SIMPLE_COLUMN_ORDER: Doubt(
            decision=attrgetter("simple_column_order"),
            refusal="its columns do not stand in the order in which they were made, and TiCDC's classic writer of "
            "Simple puts the values of such rows under wrong names: set the feed's option simple-column-order to "
            "trust only if the writer is mended",
            remark="under a wrong name if TiCDC's classic writer sent it",
        ),
    }
)


def refusal(columns: tuple[Column, ...], options: SinkOptions, *, defined: bool) -> str | None:
    """Why no table may take rows with these columns, None if there are no doubts or the feed trusts.

    ``defined`` says that they fit a definition which is not made of such rows.
    """
    told = {word: None for column in columns for word in (column.doubt or "").split()}
    words = [word for word in told if not (defined and DOUBTS[word].settled)]
    return next((found for word in words if (found := _refusal(word, options)) is not None), None)


def refusal_of_order(options: SinkOptions) -> str | None:
    """The same for rows whose columns are in another order than the table's (Simple)."""
    return _refusal(SIMPLE_COLUMN_ORDER, options)


def _refusal(word: str, options: SinkOptions) -> str | None:
    doubt = DOUBTS[word]
    return doubt.refusal if doubt.decision(options) != Trust.TRUST else None


def remark(doubt: str | None) -> str:
    """What a column's comment says of its doubts; nothing where there are none."""
    return "; ".join(DOUBTS[word].remark for word in (doubt or "").split())
