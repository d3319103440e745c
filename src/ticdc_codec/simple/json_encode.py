"""Messages in JSON, in tiflow's order of members. Escapes are msgspec's: other bytes than TiCDC, the same JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ticdc_codec.event import Column, Image, RowChange
from ticdc_codec.options import SinkOptions
from ticdc_codec.simple.json_value import to_wire
from ticdc_codec.simple.message import VERSION, Checksum, Envelope

# orjson asks for more room than it fills, and gives it back: 4 us a message that is kept.
_ENCODE = msgspec.json.Encoder().encode


class JsonWriter:
    """Writes messages of one run of events."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._forms: dict[int, tuple[tuple[Column, ...], list[tuple[str, Callable[[str], Any]]]]] = {}

    def control(self, message: Envelope) -> bytes:
        """A message without a row; members that do not apply are left out."""
        return _ENCODE(message)

    def row(
        self, row: RowChange, commit_ts: int, version: int, checksum: Checksum | None, location: str | None
    ) -> bytes:
        """A row's message, ``location`` that of its claim-check object. Images without a column are left out."""
        members = {
            "version": VERSION,
            "database": row.database,
            "table": row.table,
            "tableID": row.table_id or 0,
            "type": row.op.upper(),
            "commitTs": commit_ts,
            "buildTs": row.commit_ms,
            "schemaVersion": version,
        }
        if location is not None:
            members["claimCheckLocation"] = location
        if row.handle_only:
            members["handleKeyOnly"] = True
        if checksum is not None:
            members["checksum"] = checksum
        if row.after:
            members["data"] = self._texts(row.after, row.columns)
        if row.before:
            members["old"] = self._texts(row.before, row.columns)
        return _ENCODE(members)

    def _texts(self, image: Image, columns: tuple[Column, ...]) -> dict[str, Any]:
        texts: dict[str, Any] = dict(image)
        for name, convert in self._converters(columns):
            text = texts.get(name)
            if text is not None:
                texts[name] = convert(text)
        return texts

    def _converters(self, columns: tuple[Column, ...]) -> list[tuple[str, Callable[[str], Any]]]:
        """What changes texts, by the identity of the columns: rows of a table share them."""
        form = self._forms.get(id(columns))
        if form is None:
            found = ((column.name, to_wire(column, self._options.time_zone)) for column in columns)
            # The form holds the columns, so that no others can have their id.
            form = self._forms[id(columns)] = (columns, [(name, convert) for name, convert in found if convert])
        return form[1]
