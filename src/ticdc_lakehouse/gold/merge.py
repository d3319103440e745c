"""One table's share of a window: its latest change per handle key, merged into its live table.

The order of changes to one key is (commit_ts, delete before upsert): at one commit_ts a delete comes from a key that
moved away, an upsert from the one that moved in (wire.md 2.3), so the upsert wins, in whatever order the two arrived.
Where the wire has no commit_ts but its millisecond (mode eventual), changes of one millisecond may be several commits:
they are in the order in which they arrived.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame

from ticdc_codec.event import Kind
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold.key_range import key_range_sql
from ticdc_lakehouse.gold.misread_values import as_defined_sql, key_value_sql
from ticdc_lakehouse.gold.own_columns import COMMIT_TS, DELETED, KEY
from ticdc_lakehouse.planning.steps import MergeRows, Stage
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
_YIELDS = "_ticdc_yields"
"""Mode eventual: true if a row of the same commit stays: the change is a delete, or a copy of the row that was too
large for a message and has only the handle key."""
_AGE = "struct(commit_ts, coalesce(octet_length(image), -1))"
NEWEST_IMAGE = f"max_by(image, {_AGE})"
"""SQL aggregate over `changes_sql`'s columns: the image of the latest change. Of one commit_ts an upsert (the longest
image, where one copy has the handle key only) comes after a delete."""
WHOLE_COLUMNS = f"{KEY} STRING, commit_ts BIGINT, image STRING, error STRING"
"""SQL: the result for a row that is read from TiDB: its image, or why it has none."""
STAGE_COLUMNS = f"segment INT, {KEY} STRING, commit_ts BIGINT, image STRING"
"""SQL: the columns of staged files (`Stage`)."""


def merge(lake: Lake, feed: str, name: str, rows: MergeRows, time_zone: str) -> None:
    """Merges the latest change of each key into the live table. Repeating it changes nothing."""
    columns = [quoted(column.name) for column in typed_columns(rows.table)]
    tombstones = rows.eventual
    stored = [KEY, COMMIT_TS, IRREGULAR, *([DELETED] if tombstones else []), *columns]
    assignments = ", ".join(f"{column} = s.{column}" for column in stored[1:])
    deletes = "" if tombstones else f"WHEN MATCHED AND s.{COMMIT_TS} >= t.{COMMIT_TS} AND s.{DELETED} THEN DELETE"
    inserted = "" if tombstones else f"AND NOT s.{DELETED}"
    newer = f"s.{COMMIT_TS} >= t.{COMMIT_TS}"
    if tombstones:  # the upsert of the same commit may have come in an earlier batch
        is_row = f"(s.{DELETED} OR NOT t.{DELETED})"
        newer += f" AND NOT (s.{COMMIT_TS} = t.{COMMIT_TS} AND s.{_YIELDS} AND {is_row})"
    with _files_shown(lake, rows):
        lake.spark.sql(f"""
        MERGE INTO {lake.table(Layer.LIVE, name)} t
        USING ({latest_typed_sql(lake, feed, rows, time_zone)}) s
        ON t.{KEY} = s.{KEY} {key_range_sql(lake, name, rows, _keys_sql(lake, feed, rows, time_zone))}
        {deletes}
        WHEN MATCHED AND {newer} THEN UPDATE SET {assignments}
        WHEN NOT MATCHED {inserted} THEN
            INSERT ({", ".join(stored)}) VALUES ({", ".join(f"s.{column}" for column in stored)})""")


@contextmanager
def first_rows(lake: Lake, feed: str, rows: MergeRows, time_zone: str) -> Iterator[DataFrame]:
    """Yields what a MERGE of these changes makes of a table without rows, with the columns of ``latest_typed_sql``. It
    can be read only within the context."""
    kept = "" if rows.eventual else f"WHERE NOT {DELETED}"
    with _files_shown(lake, rows):
        yield lake.spark.sql(f"SELECT * FROM ({latest_typed_sql(lake, feed, rows, time_zone)}) {kept}")


@contextmanager
def _files_shown(lake: Lake, rows: MergeRows) -> Iterator[None]:
    show_files(lake, rows)
    try:
        yield
    finally:
        hide_files(lake, rows)


def show_files(lake: Lake, rows: MergeRows) -> None:
    """Makes the session's views of the files that the step reads, with columns that Spark need not look for in them."""
    for view, columns, path in _views_of_files(rows):
        lake.spark.sql(
            f"CREATE OR REPLACE TEMPORARY VIEW {view} ({columns}) USING parquet OPTIONS (path {literal(path)})"
        )


def hide_files(lake: Lake, rows: MergeRows) -> None:
    """Drops the session's views of the files that the step reads."""
    for view, _, _ in _views_of_files(rows):
        lake.spark.catalog.dropTempView(view)


def _views_of_files(rows: MergeRows) -> Iterator[tuple[str, str, str]]:
    """Yields name, columns and folder of each view."""
    if rows.stage is not None:
        yield _stage_view(rows.stage), STAGE_COLUMNS, rows.stage.path
    if rows.whole_rows is not None:
        yield whole_rows_view(rows.whole_rows), WHOLE_COLUMNS, rows.whole_rows


def whole_rows_view(path: str) -> str:
    """Returns the name of the view of the rows that were read whole from TiDB: it has the id of their folder."""
    return f"_ticdc_source_{path.rpartition('_')[2]}"


def _stage_view(stage: Stage) -> str:
    return f"_ticdc_stage_{stage.segment}"


def latest_typed_sql(lake: Lake, feed: str, rows: MergeRows, time_zone: str) -> str:
    """Returns SQL of the latest change of each key among the rows: key, commit_ts, whether it is gone, in mode eventual
    whether a row of the same commit stays, irregular, then the typed columns.

    The two ``inline`` are optimizer barriers: without them the optimizer writes the parsing of a column out wherever
    the column is used, and a table of fifty columns no longer fits into the planner's memory.
    """
    typed = typed_columns(rows.table)
    texts, values = [f"t{i}" for i in range(len(typed))], [f"v{i}" for i in range(len(typed))]
    columns = "".join(f", {v} AS {quoted(c.name)}" for v, c in zip(values, typed, strict=True))
    whole = [whole_text_sql(c.definition, text, time_zone) for c, text in zip(typed, texts, strict=True)]
    shown = [_shown_sql(full, text) for full, text in zip(whole, texts, strict=True)]
    irregular_texts = (
        f"CASE WHEN {has_irregular_sql(typed, shown, values)} THEN {irregular_texts_sql(typed, shown, values)} END"
    )
    yields = f", {_YIELDS}" if rows.eventual else ""
    own = f"{KEY}, {COMMIT_TS}, {DELETED}{yields}"
    return f"""
        SELECT {own}, {irregular_sql("irregular_texts")} AS {IRREGULAR}{columns}
        FROM (SELECT {own}, {", ".join(values)}, {irregular_texts} AS irregular_texts
        FROM (SELECT {own}, {", ".join(texts)},
                     inline(array({values_sql(typed, whole, time_zone)})) AS ({", ".join(values)})
        FROM (SELECT {KEY}, {COMMIT_TS}, image IS NULL AS {DELETED}{yields},
                     inline(array({image_sql(rows.table, "coalesce(image, '{}')")})) AS ({", ".join(texts)})
        FROM ({latest_sql(lake, feed, rows, time_zone)}))))"""


def latest_sql(lake: Lake, feed: str, rows: MergeRows, time_zone: str) -> str:
    """Returns SQL of the latest change of each key: key, commit_ts, image; from what was staged, or from the window's
    changes."""
    if rows.stage is not None:
        staged = f"FROM {_stage_view(rows.stage)} WHERE segment = {rows.stage.segment}"
        return f"SELECT {KEY}, commit_ts AS {COMMIT_TS}, image {staged}"
    yields = f", max_by({_YIELDS}, {_AGE}) AS {_YIELDS}" if rows.eventual else ""
    return f"""
        SELECT {KEY}, max(commit_ts) AS {COMMIT_TS}, {NEWEST_IMAGE} AS image{yields}
        FROM ({_reduced_sql(lake, feed, rows, time_zone)}) GROUP BY {KEY}"""


def _keys_sql(lake: Lake, feed: str, rows: MergeRows, time_zone: str) -> str:
    """Returns SQL of the keys of the changes, some more than once."""
    return (latest_sql if rows.stage is not None else changes_sql)(lake, feed, rows, time_zone)


def _reduced_sql(lake: Lake, feed: str, rows: MergeRows, time_zone: str) -> str:
    """Returns SQL of the changes among which the latest of each key is looked for: without exact commit_ts (eventual
    mode) the last of each partition, since in a partition changes of one key arrive in commit order. Of one exact
    commit_ts the longest image, as in `NEWEST_IMAGE`."""
    changes = changes_sql(lake, feed, rows, time_zone)
    if not rows.eventual:
        return changes
    length = f"IF({_EXACT}, coalesce(octet_length(image), -1), -1)"
    order = f"struct(commit_ts, {length}, offset, index, image IS NOT NULL)"
    yields = f"{_EXACT} AND (image IS NULL OR handle_only) AS {_YIELDS}"
    last = f"max_by(struct(commit_ts, image, {yields}), {order}) AS last"
    by_partition = f"SELECT {KEY}, {last} FROM ({changes}) GROUP BY {KEY}, topic, partition"
    return f"SELECT {KEY}, last.commit_ts, last.image, last.{_YIELDS} FROM ({by_partition})"


def changes_sql(lake: Lake, feed: str, rows: MergeRows, time_zone: str) -> str:
    """Returns SQL of each change of a key: ``_ticdc_key``, commit_ts, image (NULL for a delete); unless rows were read
    from TiDB, also topic, partition, offset and index, and in mode eventual ``_ticdc_exact`` and handle_only. An update
    that moved the key is two changes."""
    changes = _sent_changes_sql(lake, feed, rows, time_zone)
    if rows.whole_rows is None:
        return changes
    image = "CASE WHEN sent.image IS NULL THEN NULL ELSE coalesce(whole.image, sent.image) END AS image"
    whole = f"{whole_rows_view(rows.whole_rows)} whole"
    return (
        f"SELECT sent.{KEY}, sent.commit_ts, {image} FROM ({changes}) sent LEFT JOIN {whole} "
        f"ON sent.{KEY} = whole.{KEY} AND sent.commit_ts = whole.commit_ts"
    )


def _sent_changes_sql(lake: Lake, feed: str, rows: MergeRows, time_zone: str) -> str:
    """Returns SQL of the changes with the images that messages have."""
    events = events_table.full_name(lake, feed)
    key, old_key = row_keys_sql(rows, time_zone)
    commit_ts, exact = "commit_ts", ""
    if rows.eventual:
        events, commit_ts = f"({events_table.ordered_sql(lake, feed)})", "commit_order"
        exact = f" {_EXACT}, handle_only,"
    changes = f"""
        SELECT topic, partition, offset, index, commit_ts,{exact}
               {changed_keys_sql("key", "old_key")}
        FROM (SELECT topic, partition, offset, index, commit_ts IS NOT NULL AS {_EXACT},
                     {commit_ts} AS commit_ts, {as_defined_sql(rows)} AS after, {key} AS key,
                     {old_key} AS old_key, replayed_at, coalesce(handle_only, false) AS handle_only
              FROM {events}
              WHERE kind = '{Kind.ROW}' AND {is_table_sql(rows.table.name)}
              AND {commit_ts} <= {rows.through} {_arrived_sql(rows.batches)}"""
    within = f"{changes} AND {commit_ts} > {rows.after})"
    if not rows.replayed or rows.eventual:
        return within
    changes = f"{changes} AND commit_ts > {rows.since}"
    touched = f"SELECT {KEY} FROM ({changes} AND replayed_at IS NOT NULL AND commit_ts <= {rows.after}))"
    return f"SELECT * FROM ({within}) UNION ALL SELECT * FROM ({changes})) WHERE {KEY} IN ({touched})"


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
    own = f"CASE WHEN op = 'delete' THEN {old} ELSE {new} END"
    return own, f"CASE WHEN op = 'update' AND before IS NOT NULL AND {old} <> {new} THEN {old} END"


def _key_value_sql(column: ColumnDefinition, text: str, time_zone: str) -> str:
    """Returns SQL of a value in a key. A text that its type cannot have stands for itself: two such texts are two
    keys."""
    return _shown_sql(whole_text_sql(column, text, time_zone), text)


def _shown_sql(whole: str, text: str) -> str:
    return text if whole == text else f"coalesce({whole}, {text})"
