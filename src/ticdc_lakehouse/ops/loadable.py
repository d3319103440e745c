"""Checks that the tables of an export have a place in gold, by the feed's settings and by the export itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar
from zoneinfo import ZoneInfo

from ticdc_codec.errors import ConfigError, listed
from ticdc_codec.mysql_type import Family
from ticdc_codec.name_case import fold
from ticdc_lakehouse.ops.dumpling.export import Export, ExportedTable
from ticdc_lakehouse.ops.load_options import LoadOptions
from ticdc_lakehouse.planning.plan_builder import name_clash
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.schema.names import TableName, by_text, table_named

_T = TypeVar("_T")


def loadable_tables(export: Export, config: GoldConfig, options: LoadOptions) -> list[TableName]:
    """Returns the tables to load. Raises ConfigError with everything that is wrong with them."""
    if config.mode is not Mode.WATERMARKS:
        raise ConfigError(f"feed {config.feed}: in gold mode eventual the changes after an export are not known")
    if options.time_zone is not None:
        _check_time_zone(options.time_zone)
    names = _chosen(export, config, options.tables)
    all_problems(names, lambda name: _check(export, name, config, options))
    if not (options.all_empty or any(table.files for table in export.tables.values())):
        raise ConfigError(
            f"{export.folder}: no table has a file of rows: export without --no-data, or give load --all-empty if the "
            "tables had no rows"
        )
    return names


def all_problems(names: Iterable[TableName], check: Callable[[TableName], _T]) -> list[_T]:
    """Returns what ``check`` returns for each table. Raises one ConfigError for all the tables that it refuses."""
    results, problems = [], []
    for name in names:
        try:
            results.append(check(name))
        except ConfigError as error:
            problems.append(str(error))
    if problems:
        others = "; load the others alone with --table" if results else ""
        raise ConfigError("\n".join(problems) + others)
    return results


def _chosen(export: Export, config: GoldConfig, wanted: Iterable[str]) -> list[TableName]:
    names = {**export.tables, **export.unreadable}
    carried = [name for name in names if config.matches(*name)]
    if not carried:
        raise ConfigError(f"{export.folder}: feed {config.feed} includes none of its tables: {listed(map(str, names))}")
    return list(dict.fromkeys(_exported(text, carried, export.folder) for text in wanted)) or carried


def _exported(text: str, carried: Iterable[TableName], folder: str) -> TableName:
    """Returns the table that an option ``--table`` names. Raises ConfigError."""
    name = table_named(text, carried)
    if name is None:
        raise ConfigError(f"{folder}: --table {text}: expected one of {listed(by_text(carried))}")
    return name


def _check(export: Export, name: TableName, config: GoldConfig, options: LoadOptions) -> None:
    if name in export.unreadable:
        raise ConfigError(export.unreadable[name])
    what, exported = f"{export.folder}: table {name}", export.tables[name]
    if not exported.definition.key:
        raise ConfigError(f"{what} has no handle key: its rows cannot be identified")
    if (clash := name_clash(exported.definition.sent)) is not None:
        raise ConfigError(f"{what}: {clash}")
    _check_columns(what, exported, config, options)


def _check_columns(what: str, exported: ExportedTable, config: GoldConfig, options: LoadOptions) -> None:
    key = {fold(name) for name in exported.definition.key}
    exported_names = {column.name for column in exported.columns}
    for column in exported.definition.sent:
        if column.name not in exported_names:
            raise ConfigError(
                f"{what}: column {column.name} is generated and stored: dumpling leaves it out, and TiCDC sends it"
            )
        if column.type.family is Family.TIMESTAMP and options.time_zone is None:
            raise ConfigError(
                f"{what}: column {column.name} is a TIMESTAMP: give the time zone of the session that exported, "
                "UTC with Dumpling's --params time_zone=+00:00"
            )
        rewritten = config.rewrites_key(column.type)
        if rewritten and fold(column.name) in key:
            raise ConfigError(unknown_key(what, column.name, column.type.text))


def unknown_key(what: str, column: str, type_: str) -> str:
    """Returns why a table cannot be loaded whose messages write its key in a way that is not known."""
    return f"{what}: key column {column}: how the feed writes keys of {type_} is not known"


def _check_time_zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ConfigError(
            f"time zone: expected UTC, a name such as Asia/Shanghai or hours as +08:00, found {name!r}"
        ) from None
