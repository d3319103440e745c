"""What each protocol carries of each MySQL type, read off the recorded vectors: ``make docs`` writes the page.

A value is what TiCDC's bytes give, beside what SQL said. A type is what the bytes tell, beside SHOW COLUMNS.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from vectors import Case, as_expected, cases, definitions, header

from ticdc_codec.batch import NO_CONTEXT, DecoderContext
from ticdc_codec.event import Event, RowChange, events_of
from ticdc_codec.mysql_type import Family, MysqlType, parse_type
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import Decoder
from ticdc_lakehouse.schema.script import tables_from_sql

PAGE = Path(__file__).parents[2] / "docs" / "types-by-protocol.md"

FILES: Mapping[str, Sequence[str]] = {
    "Craft": ("tiflow-craft", "tiflow-craft-float-defect"),
    "Open Protocol": ("tiflow-open_protocol", "ticdc-open_protocol"),
    "Canal-JSON": ("tiflow-canal_json-ext", "ticdc-canal_json-ext"),
    "Canal-JSON, `content-compatible`": ("tiflow-canal_json-ext-compat", "ticdc-canal_json-compat"),
    "Simple": ("tiflow-simple-json", "tiflow-simple-avro", "ticdc-simple-json", "ticdc-simple-avro"),
    "Debezium, extension": ("tiflow-debezium-ext", "ticdc-debezium"),
    "Debezium, schema only": ("tiflow-debezium", "ticdc-debezium-noext"),
    "Debezium, no schema": ("tiflow-debezium-no-schema", "ticdc-debezium-no-schema"),
}
"""Columns of the table, and the files in which they are recorded; a file's name begins with its writer."""

VIRTUAL = "generated, not stored"
NO_TYPE = "null"
"""A column without a type, in a benchmark of TiCDC's own; no table has one."""
_SIZED = {Family.DECIMAL, Family.BIT, Family.DATETIME, Family.TIMESTAMP, Family.TIME, Family.TEXT, Family.BINARY}
_SIZED |= {Family.ENUM, Family.SET, Family.VECTOR}
_LONGEST = 36
"""Characters of a value that a footnote shows."""

_HEAD = """\
# Types by protocol

Made by `make docs` (`tests/codec/type_table.py`) from TiCDC's own bytes in `tests/data/vectors`, of both writers: each
decoded value is compared with the value that SQL returned, each type on the wire with SHOW COLUMNS. How the lake
stores a type: [types](types.md).

| cell | values | type on the wire |
|---|---|---|
| exact | unchanged | complete, as far as values need it |
| exact, no size | unchanged | without length, digits, names or `unsigned`: CREATE TABLE has them |
| defined | unchanged, once the table's definition is known (`schema_file`) | undeclared |
| lossy | some are lost in any case; the number refers to the list below | |
| absent | never sent | |

A writer in brackets: the other writer differs, or its bytes were not recorded. Only tiflow writes Craft; its FLOAT is
right before v8.2 ([Craft](protocols/craft.md)).
"""


class Exactness(StrEnum):
    """What a protocol carries of a type, from best to worst."""

    EXACT = "exact"
    NO_SIZE = "exact, no size"
    DEFINED = "defined"
    LOSSY = "lossy"
    ABSENT = "absent"


_ORDER = [*Exactness]


@dataclass(slots=True)
class Found:
    """What one writer's files of one protocol show of one type."""

    exactness: Exactness = Exactness.EXACT
    losses: set[tuple[str, str]] = field(default_factory=set)
    """Values as SQL had them and as they are read."""
    defaults: bool = False
    """Whether a NULL is read as another value."""

    def at_best(self, exactness: Exactness) -> None:
        """It is this, or worse."""
        self.exactness = max(self.exactness, exactness, key=_ORDER.index)

    def note(self, wanted: Any, alone: Any, known: Any) -> None:
        """What was read, with nothing known and with the definition, where SQL had ``wanted``."""
        if known != wanted and wanted is None:
            self.defaults = True
        elif known != wanted:
            self.at_best(Exactness.LOSSY)
            self.losses.add((_shown(wanted), _shown(known)))
        elif alone != wanted:
            self.at_best(Exactness.DEFINED)


Findings = dict[str, Found]
"""By type: ``bigint unsigned``."""


def findings(files: Sequence[str]) -> Findings:
    """What these files show."""
    found: Findings = defaultdict(Found)
    for file in files:
        for defined, run in groupby(cases(file), key=definitions):
            _compare(file, [*run], defined, found)
    found.pop(NO_TYPE, None)
    return dict(found)


def _compare(file: str, run: Sequence[Case], defined: DecoderContext, found: Findings) -> None:
    """Cases of tables with the same definitions, decoded with nothing known and with these."""
    alone = _decoded(file, run, NO_CONTEXT)
    best = _decoded(file, run, defined) if header(file)["protocol"] == "debezium" else alone
    expected = [event for case in run for event in case.expect]
    for event, known, wanted in zip(alone, best, expected, strict=True):
        # A row that the writer's defect made unreadable is left out: the others of its file show what is lost.
        if isinstance(event, RowChange) and isinstance(known, RowChange):
            columns = defined.schemas[event.database, event.table, 0]
            kinds = {column.name: parse_type(column.type) for column in columns}
            _types(event, kinds, found)
            _values(as_expected(event, wanted), as_expected(known, wanted), wanted, kinds, found)
    if any(case.values and _has_virtual(case.content["create"]) for case in run):
        found[VIRTUAL].at_best(Exactness.ABSENT)


def _decoded(file: str, run: Sequence[Case], context: DecoderContext) -> list[Event]:
    head = header(file)
    trust = {"craft-float": "trust"} if head["protocol"] == "craft" else {}
    options = sink_options(head["protocol"], head["options"] | {"time-zone": head["time_zone"]} | trust)
    keys, values = ([*chain(*(case.keys for case in run))], [*chain(*(case.values for case in run))])
    return [event for _, event in events_of(Decoder(head["protocol"], options, context).decode(keys, values))]


def _types(event: RowChange, kinds: Mapping[str, MysqlType], found: Findings) -> None:
    for column in event.columns:
        if column.name in kinds:
            found[_name(kinds[column.name])].at_best(_type_exactness(parse_type(column.type), kinds[column.name]))


def _values(
    alone: Any, known: Any, expected: Mapping[str, Any], kinds: Mapping[str, MysqlType], found: Findings
) -> None:
    for image in ("before", "after"):
        for name, wanted in (expected[image] or {}).items():
            found[_name(kinds[name])].note(wanted, alone[image][name], known[image][name])


@lru_cache
def _has_virtual(create: str | None) -> bool:
    return any(column.virtual for table in tables_from_sql(create or "", "test") for column in table.columns)


def _name(kind: MysqlType) -> str:
    return f"{kind.name} unsigned" if kind.unsigned else kind.name


def _type_exactness(wire: MysqlType, kind: MysqlType) -> Exactness:
    """How well a type is carried. Display widths of integers, FLOAT and DOUBLE matter to no value."""
    if wire.name != kind.name:
        return Exactness.DEFINED
    sized = kind.family in _SIZED and (wire.size, wire.elements) != (kind.size, kind.elements)
    return Exactness.NO_SIZE if sized or wire.unsigned != kind.unsigned else Exactness.EXACT


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        value = next(value[name] for name in ("hex", "names", "name", "index", "mask") if name in value)
    if value is None:
        return "NULL"
    text = str(value)
    return f"`{text if len(text) <= _LONGEST else text[:_LONGEST] + '…'}`"


def page() -> str:
    """The page's text."""
    columns = {title: _by_writer(files) for title, files in FILES.items()}
    types = {name for writers in columns.values() for found in writers.values() for name in found} - {VIRTUAL}
    notes: dict[str, int] = {}
    lines = [_line(["MySQL", *columns]), _line(["---"] * (len(columns) + 1))]
    for name in [*sorted(types, key=_place), VIRTUAL]:
        cells = [_cell({writer: found.get(name) for writer, found in w.items()}, notes) for w in columns.values()]
        lines.append(_line([name, *cells]))
    lost = [f"{number}. {text}" for text, number in notes.items()]
    return "\n".join(
        [_HEAD, *lines, "", "What is lost: value in SQL → value that is read:", "", *lost, "", *_of_nulls(columns)]
    )


def _by_writer(files: Sequence[str]) -> dict[str, Findings]:
    return {writer: findings([*own]) for writer, own in groupby(files, key=lambda file: file.partition("-")[0])}


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _place(name: str) -> tuple[int, str]:
    """By family, in the order of ``Family``, and by name."""
    return [*Family].index(parse_type(name).family), name


def _cell(found: Mapping[str, Found | None], notes: dict[str, int]) -> str:
    words = {writer: _word(each, notes) for writer, each in found.items() if each is not None}
    if len(words) == len(found) and len({*words.values()}) == 1:
        return next(iter(words.values()))
    return ", ".join(f"{word} ({writer})" for writer, word in words.items())


def _word(found: Found, notes: dict[str, int]) -> str:
    if not found.losses:
        return found.exactness
    return f"{found.exactness} [{notes.setdefault(_examples(found.losses), len(notes) + 1)}]"


def _examples(losses: set[tuple[str, str]]) -> str:
    """The shortest loss of each kind: what is read as NULL, and what is read as something else."""
    order = sorted(losses, key=lambda loss: (len(loss[0]), loss))
    kinds = [[loss for loss in order if (loss[1] == "NULL") is null][:2] for null in (True, False)]
    return "; ".join(f"{wanted} → {read}" for kind in kinds for wanted, read in kind)


def _of_nulls(columns: Mapping[str, Mapping[str, Findings]]) -> Iterator[str]:
    for title, writers in columns.items():
        hit = {name for found in writers.values() for name, each in found.items() if each.defaults}
        if hit:
            names = ", ".join(sorted(hit, key=_place))
            yield f"{title}: NULL in a column with a DEFAULT is read as the default. Recorded for {names}.\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
