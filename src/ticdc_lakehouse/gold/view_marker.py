"""Which published state a feed's views show: a view of ops exists while it is the newest, as the feed's file wants it.

It contains what the views depend on beside the state, so that another file or another version of this package makes
them again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ticdc_lakehouse.catalog import VERSION, Lake, Layer
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.policy import OnIrregular
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.sql.text import literal

_MARKER = "_views_in_place"


def are_current(
    lake: Lake, config: GoldConfig, tables: Iterable[TableName], *, replaced: Collection[TableName] = ()
) -> bool:
    """True if all views of a feed show its published state, as its file wants them, or all except those of tables that
    are about to be ``replaced``; False after a run died on them, after ``gold.views``, ``gold.on_irregular`` or the
    version of this package changed, and in a new session of a laptop, which knows no views."""
    if not lake.exists(Layer.OPS, _marker_view(config.feed)):
        return False
    row = lake.spark.table(lake.table(Layer.OPS, _marker_view(config.feed))).first()
    return row is not None and row[0] in (_view_settings(config, tables, ()), _view_settings(config, tables, replaced))


def mark_stale(lake: Lake, feed: str) -> None:
    """Records that views are about to fall behind the published state."""
    lake.spark.sql(f"DROP VIEW IF EXISTS {lake.table(Layer.OPS, _marker_view(feed))}")


def mark_current(
    lake: Lake, config: GoldConfig, tables: Iterable[TableName], *, replaced: Collection[TableName] = ()
) -> None:
    """Records that all views show the published state of these tables, or all except those that are ``replaced``."""
    comment = f"Is there while all views of changefeed {config.feed} show its published watermark"
    views = "views COMMENT 'version that made them, gold.views of its file, and the tables that show dates as texts'"
    query = f"SELECT {literal(_view_settings(config, tables, replaced))}"
    lake.replace_view(Layer.OPS, _marker_view(config.feed), views, query, comment=comment)


def is_marker_view(name: str) -> bool:
    """True if it is the view of ops that exists while all views of a feed show its published state."""
    return name.endswith(_MARKER)


def _view_settings(config: GoldConfig, tables: Iterable[TableName], replaced: Iterable[TableName]) -> str:
    """Returns what the views depend on: settings of the feed's file, and the version of this package; and which of them
    are not made."""
    as_text = (".".join(name) for name in tables if config.policy(*name).on_irregular is OnIrregular.TEXT)
    without = (f"without {'.'.join(name.folded)}" for name in replaced)
    return " ".join([VERSION, config.views.value, *sorted(as_text), *sorted(without)])


def _marker_view(feed: str) -> str:
    return f"{feed}{_MARKER}"
