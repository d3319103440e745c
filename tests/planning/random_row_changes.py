"""Random changes of rows, for `random_database`: one by one, and those of partitions."""

from __future__ import annotations

from random_script_state import ScriptState
from random_tables import HeldTable, Row

from ticdc_codec.event import Column, Op, RowChange
from ticdc_codec.name_case import fold


class RowChanges(ScriptState):
    def exchange(self) -> None:
        parted = [table for table in self.all_tables() if table.partitions]
        for one in self.random.sample(parted, min(1, len(parted))):
            others = [other for other in self.all_tables() if self._fits(one, other)]
            for other in self.random.sample(others, min(1, len(others))):
                keys = {one.partition_of(key) for key in other.rows} or {self.random.randrange(one.partitions)}
                if len(keys) == 1:
                    self._exchange(one, other, *keys)

    def _fits(self, one: HeldTable, other: HeldTable) -> bool:
        columns = [[(c.number, fold(c.name), c.type) for c in table.columns] for table in (one, other)]
        return not other.partitions and columns[0] == columns[1]

    def _exchange(self, one: HeldTable, other: HeldTable, at: int) -> None:
        inside = {key: row for key, row in one.rows.items() if one.partition_of(key) == at}
        outside = {key: row for key, row in one.rows.items() if key not in inside}
        for table, rows in ((one, {**outside, **other.rows}), (other, inside)):
            names = [column.name for column in table.columns]
            table.rows = {key: dict(zip(names, row.values(), strict=True)) for key, row in rows.items()}
        defaults = [[(c.default, c.converted) for c in table.columns] for table in (one, other)]
        if one.uncertain or other.uncertain or defaults[0] != defaults[1]:
            one.uncertain = other.uncertain = True
        if self.hides(one.name) != self.hides(other.name):
            one.uncertain = other.uncertain = one.unknown = other.unknown = True
        one.unknown = other.unknown = one.unknown or other.unknown
        texts = [self.text(table.name) for table in (one, other)]
        self.ddl(one, f"ALTER TABLE {texts[0]} EXCHANGE PARTITION `p{at}` WITH TABLE {texts[1]}")

    def truncate_partition(self) -> None:
        parted = [table for table in self.all_tables() if table.partitions]
        for table in self.random.sample(parted, min(1, len(parted))):
            at = self.random.randrange(table.partitions)
            table.rows = {key: row for key, row in table.rows.items() if table.partition_of(key) != at}
            self.alter(table, f"TRUNCATE PARTITION `P{at}`")

    def remove_partitioning(self) -> None:
        parted = [table for table in self.all_tables() if table.partitions]
        for table in self.random.sample(parted, min(1, len(parted))):
            table.partitions = 0
            self.alter(table, "REMOVE PARTITIONING")

    def insert(self) -> None:
        for table in self.some(1):
            key = str(self.number() * 2 + (self.random.random() < 0.3))
            self._row(table, Op.INSERT, None, self._values(table, key))

    def update(self) -> None:
        for table in self.some(1):
            for key in self.random.sample(sorted(table.rows), min(1, len(table.rows))):
                self._row(table, Op.UPDATE, table.rows[key], self._values(table, key))

    def delete(self) -> None:
        for table in self.some(1):
            for key in self.random.sample(sorted(table.rows), min(1, len(table.rows))):
                self._row(table, Op.DELETE, table.rows[key], None)

    def move_key(self) -> None:
        """Two rows swap their keys, or one gets another: TiCDC sends deletes and inserts (wire.md 2.3)."""
        for table in self.some(1):
            keys = self.random.sample(sorted(table.rows), min(2, len(table.rows)))
            new = [*keys[1:], keys[0]] if len(keys) > 1 else [str(self.number() * 2)]
            for key in keys:
                self._row(table, Op.DELETE, table.rows[key], None)
            for key in new if keys else ():
                self._row(table, Op.INSERT, None, self._values(table, key))

    def _values(self, table: HeldTable, key: str) -> Row:
        null = self.random.random() < 0.1
        values = {column.name: None if null else str(self.number()) for column in table.columns}
        return {**values, table.key: key}

    def _row(self, table: HeldTable, op: Op, before: Row | None, after: Row | None) -> None:
        columns = tuple(
            Column(name=column.name, type=column.type.lower().partition("(")[0], key=column.number == 1)
            for column in table.columns
        )
        key = (after or before or {})[table.key]
        assert key is not None
        change = RowChange(
            op=op, database=table.sent_name.database, table=table.sent_name.table, commit_ts=self.commit_ts,
            commit_ms=0, before=None if before is None else {**before}, after=None if after is None else {**after},
            columns=columns, handle_key=f'["{key}"]',
        )  # fmt: skip
        self.rows.append(change)
        if after is None:
            del table.rows[key]
        else:
            table.rows[key] = after
