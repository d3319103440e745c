"""The columns that gold adds to a live table."""

from __future__ import annotations

from ticdc_lakehouse.sql.typed_columns import IRREGULAR

KEY = "_ticdc_key"
COMMIT_TS = "_ticdc_commit_ts"
DELETED = "_ticdc_deleted"

OWN_COLUMNS = {
    COMMIT_TS: ("BIGINT", "commit_ts of the row's latest change"),
    IRREGULAR: ("MAP<STRING, STRING>", "values that the column's type cannot hold, by column: the exact MySQL text"),
    KEY: ("STRING", "handle key: JSON array of its values, in the order of the columns' names"),
    DELETED: ("BOOLEAN", "a tombstone: the row was deleted"),
}
"""Gold's own columns: their types and comments."""
