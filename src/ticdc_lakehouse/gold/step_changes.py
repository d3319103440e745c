"""The changes of one step of a table, as SQL over the feed's events: all of them, or the latest of each handle key.

The order of changes to one key is (commit_ts, delete before upsert): at one commit_ts a delete comes from a key that
moved away, an upsert from the one that moved in (wire.md 2.3), so the upsert wins, in whatever order the two arrived.
Where the wire has no commit_ts but its millisecond (mode eventual), changes of one millisecond may be several commits:
they are in the order in which they arrived.
"""

from __future__ import annotations

from dataclasses import dataclass

from ticdc_codec.event import Kind, Op
from ticdc_lakehouse.catalog import Lake
from ticdc_lakehouse.gold.misread_values import as_defined_sql, key_value_sql
from ticdc_lakehouse.gold.own_columns import COMMIT_TS, DELETED, KEY
from ticdc_lakehouse.gold.step_files import stage_view, whole_rows_view
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.planning.window import BatchRange
from ticdc_lakehouse.schema.definition import ColumnDefinition
from ticdc_lakehouse.silver import events_table
from ticdc_lakehouse.sql.key_text import key_text_sql
from ticdc_lakehouse.sql.text import is_table_sql, literal, quoted
from ticdc_lakehouse.sql.typed_columns import (
    IMAGE_OPTIONS,
    IRREGULAR,
    has_irregular_sql,
    image_sql,
    irregular_sql,
    irregular_texts_sql,
    typed_columns,
    values_sql,
)
from ticdc_lakehouse.sql.undeclared_types import whole_text_sql

_EXACT = "_ticdc_exact"
"""Mode eventual: true if the wire has a change's commit_ts, rather than its millisecond."""
YIELDS = "_ticdc_yields"
"""Mode eventual: true if a row of the same commit stays: the change is a delete, or a copy of the row that was too
large for a message and has only the handle key."""
_AGE = "struct(commit_ts, coalesce(octet_length(image), -1))"
NEWEST_IMAGE = f"max_by(image, {_AGE})"
"""SQL aggregate over the columns of `StepChanges.all_sql`: the image of the latest change. Of one commit_ts an upsert
(the longest image, where one copy has the handle key only) comes after a delete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepChanges:
    """The changes that a step merges, in the events of a feed."""

    lake: Lake
    feed: str
    rows: MergeRows
    time_zone: str
    """That of the changefeed."""

    def all_sql(self) -> str:
        """Returns SQL of each change of a key: ``_ticdc_key``, commit_ts, image (NULL for a delete); unless rows were
        read from TiDB, also topic, partition, offset and index, and in mode eventual ``_ticdc_exact`` and handle_only.
        An update that moved the key is two changes."""
        rows = self.rows
        changes = self._sent_sql()
        if rows.whole_rows is None:
            return changes
        image = "CASE WHEN sent.image IS NULL THEN NULL ELSE coalesce(whole.image, sent.image) END AS image"
        whole = f"{whole_rows_view(rows.whole_rows)} whole"
        return (
            f"SELECT sent.{KEY}, sent.commit_ts, {image} FROM ({changes}) sent LEFT JOIN {whole} "
            f"ON sent.{KEY} = whole.{KEY} AND sent.commit_ts = whole.commit_ts"
        )

    def _sent_sql(self) -> str:
        """Returns SQL of the changes with the images that messages have."""
        rows = self.rows
        events = events_table.full_name(self.lake, self.feed)
        key, old_key = row_keys_sql(rows, self.time_zone)
        commit_ts, exact = "commit_ts", ""
        if rows.eventual:
            events, commit_ts = f"({events_table.ordered_sql(self.lake, self.feed)})", "commit_order"
            exact = f" {_EXACT}, handle_only,"
        changes = f"""
            SELECT topic, partition, offset, index, commit_ts,{exact}
                   {changed_keys_sql("key", "old_key")}
            FROM (SELECT topic, partition, offset, index, commit_ts IS NOT NULL AS {_EXACT},
                         {commit_ts} AS commit_ts, {as_defined_sql(rows)} AS after, {key} AS key,
                         {old_key} AS old_key, replayed_at, coalesce(handle_only, false) AS handle_only
                  FROM {events}
                  WHERE kind = '{Kind.ROW}' AND {is_table_sql(rows.table.name)}
                  AND {events_table.known_sql(rows.replays_seen)}
                  AND {commit_ts} <= {rows.through} {_arrived_sql(rows.batches)}"""
        within = f"{changes} AND {commit_ts} > {rows.after})"
        if not rows.replayed or rows.eventual:
            return within
        changes = f"{changes} AND commit_ts > {rows.mergeable_since}"
        is_new = events_table.replayed_since_sql(rows.replays_before)
        touched = f"SELECT {KEY} FROM ({changes} AND {is_new} AND commit_ts <= {rows.after}))"
        return f"SELECT * FROM ({within}) UNION ALL SELECT * FROM ({changes})) WHERE {KEY} IN ({touched})"

    def latest_sql(self) -> str:
        """Returns SQL of the latest change of each key: key, commit_ts, image; from what was staged, or from the
        window's changes."""
        rows = self.rows
        if rows.stage is not None:
            staged = f"FROM {stage_view(rows.stage)} WHERE segment = {rows.stage.segment}"
            return f"SELECT {KEY}, commit_ts AS {COMMIT_TS}, image {staged}"
        yields = f", max_by({YIELDS}, {_AGE}) AS {YIELDS}" if rows.eventual else ""
        return f"""
            SELECT {KEY}, max(commit_ts) AS {COMMIT_TS}, {NEWEST_IMAGE} AS image{yields}
            FROM ({self._reduced_sql()}) GROUP BY {KEY}"""

    def _reduced_sql(self) -> str:
        """Returns SQL of the changes among which the latest of each key is looked for: without exact commit_ts
        (eventual mode) the last of each partition, since in a partition changes of one key arrive in commit order. Of
        one exact commit_ts the longest image, as in `NEWEST_IMAGE`."""
        rows = self.rows
        changes = self.all_sql()
        if not rows.eventual:
            return changes
        length = f"IF({_EXACT}, coalesce(octet_length(image), -1), -1)"
        order = f"struct(commit_ts, {length}, offset, index, image IS NOT NULL)"
        yields = f"{_EXACT} AND (image IS NULL OR handle_only) AS {YIELDS}"
        last = f"max_by(struct(commit_ts, image, {yields}), {order}) AS last"
        by_partition = f"SELECT {KEY}, {last} FROM ({changes}) GROUP BY {KEY}, topic, partition"
        return f"SELECT {KEY}, last.commit_ts, last.image, last.{YIELDS} FROM ({by_partition})"

    def latest_typed_sql(self) -> str:
        """Returns SQL of the latest change of each key among the rows: key, commit_ts, whether it is gone, in mode
        eventual whether a row of the same commit stays, irregular, then the typed columns.

        The two ``inline`` are optimizer barriers: without them the optimizer writes the parsing of a column out
        wherever the column is used, and a table of fifty columns no longer fits into the planner's memory.
        """
        rows = self.rows
        typed = typed_columns(rows.table)
        texts, values = [f"t{i}" for i in range(len(typed))], [f"v{i}" for i in range(len(typed))]
        columns = "".join(f", {v} AS {quoted(c.name)}" for v, c in zip(values, typed, strict=True))
        whole = [whole_text_sql(c.definition, text, self.time_zone) for c, text in zip(typed, texts, strict=True)]
        shown = [_shown_sql(full, text) for full, text in zip(whole, texts, strict=True)]
        irregular_texts = (
            f"CASE WHEN {has_irregular_sql(typed, shown, values)} THEN {irregular_texts_sql(typed, shown, values)} END"
        )
        yields = f", {YIELDS}" if rows.eventual else ""
        own = f"{KEY}, {COMMIT_TS}, {DELETED}{yields}"
        return f"""
            SELECT {own}, {irregular_sql("irregular_texts")} AS {IRREGULAR}{columns}
            FROM (SELECT {own}, {", ".join(values)}, {irregular_texts} AS irregular_texts
            FROM (SELECT {own}, {", ".join(texts)},
                         inline(array({values_sql(typed, whole, self.time_zone)})) AS ({", ".join(values)})
            FROM (SELECT {KEY}, {COMMIT_TS}, image IS NULL AS {DELETED}{yields},
                         inline(array({image_sql(rows.table, "coalesce(image, '{}')")})) AS ({", ".join(texts)})
            FROM ({self.latest_sql()}))))"""

    def keys_sql(self) -> str:
        """Returns SQL of the keys of the changes, some more than once."""
        return self.all_sql() if self.rows.stage is None else self.latest_sql()


def _arrived_sql(batches: BatchRange | None) -> str:
    """Returns SQL that adds to a condition: true for the rows of these bronze batches."""
    if batches is None:
        return ""
    after = "" if batches.after is None else f" AND batch > {batches.after}"
    return f"AND batch <= {batches.through}{after}"


def changed_keys_sql(key: str, old_key: str) -> str:
    """Returns SQL of a change as one row for each key that it changes (key, image): an update that moved the key
    (``old_key`` is not NULL) has two."""
    arrived = f"named_struct('{KEY}', {key}, 'image', after)"
    left = f"named_struct('{KEY}', {old_key}, 'image', CAST(NULL AS STRING))"
    return f"inline(CASE WHEN {old_key} IS NULL THEN array({arrived}) ELSE array({arrived}, {left}) END)"


def row_keys_sql(rows: MergeRows, time_zone: str) -> tuple[str, str]:
    """Returns SQL of the key of a change and, if an update moved it, the old one: from the wire, else from the
    definition's key."""
    if rows.wire_keys:
        return "handle_key", "old_handle_key"
    columns = [next(c for c in rows.table.columns if c.name == name) for name in rows.table.key_text_columns]
    fields = literal(", ".join(f"{quoted(column.name)} STRING" for column in columns))
    images = {when: f"from_json({when}, {fields}, map({IMAGE_OPTIONS}))" for when in ("after", "before")}
    after, before = (
        [_key_value_sql(c, key_value_sql(rows, c.name, f"{image}.{quoted(c.name)}"), time_zone) for c in columns]
        for image in images.values()
    )
    # A column that `before` leaves out is one that the update did not change (only-output-updated-columns).
    new, old = key_text_sql(after), key_text_sql([f"coalesce({b}, {a})" for b, a in zip(before, after, strict=True)])
    own = f"CASE WHEN op = '{Op.DELETE}' THEN {old} ELSE {new} END"
    return own, f"CASE WHEN op = '{Op.UPDATE}' AND before IS NOT NULL AND {old} <> {new} THEN {old} END"


def _key_value_sql(column: ColumnDefinition, text: str, time_zone: str) -> str:
    """Returns SQL of a value in a key. A text that its type cannot have stands for itself: two such texts are two
    keys."""
    return _shown_sql(whole_text_sql(column, text, time_zone), text)


def _shown_sql(whole: str, text: str) -> str:
    return text if whole == text else f"coalesce({whole}, {text})"
