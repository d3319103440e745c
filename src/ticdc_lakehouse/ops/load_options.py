"""The options of ``ticdc-lake load``, on the command line and in the notebook's widget ``options``."""

from __future__ import annotations

import argparse
import re
import shlex
from dataclasses import dataclass, field

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.ops.dumpling.dialect import FORMS, DumplingOptions

_HOURS_FROM_UTC = re.compile(r"([+-])(\d{1,2}):00", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """What the user says of an export."""

    time_zone: str | None = None
    """Time zone of the session that exported, in which TIMESTAMP values are written."""
    tables: tuple[str, ...] = ()
    """``database.table`` of those to load; empty: all that the feed takes."""
    all_empty: bool = False
    """True if no exported table had rows. Otherwise an export without a data file counts as one of ``--no-data``."""
    dumpling: DumplingOptions = field(default_factory=DumplingOptions)


def add_load_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options; Dumpling's have its names, and are given as Dumpling had them."""
    parser.add_argument(
        "--time-zone",
        help="time zone of the session that exported, by name or as +08:00; UTC after --params time_zone=+00:00. "
        "Needed for TIMESTAMPs",
    )
    parser.add_argument(
        "--table", action="append", default=[], help="database.table to load; may be repeated (default: all)"
    )
    parser.add_argument(
        "--all-empty",
        action="store_true",
        help="the exported tables had no rows: an export without a data file is not one with dumpling's --no-data",
    )
    _add_dumpling_options(
        parser.add_argument_group(
            "how the export was made", "Options that dumpling was given. What the files show need not be given."
        )
    )


def _add_dumpling_options(group: argparse._ArgumentGroup) -> None:
    default = DumplingOptions()
    group.add_argument("--no-header", action="store_true", help="the CSV files have no line of column names")
    group.add_argument("--csv-separator", metavar="TEXT", help="needed with --no-header")
    group.add_argument("--csv-delimiter", metavar="TEXT", help="the quote; needed with --no-header")
    group.add_argument(
        "--csv-null-value", metavar="TEXT", default=default.csv_null_value, help="text of NULL (default: %(default)s)"
    )
    group.add_argument("--csv-output-dialect", choices=sorted(FORMS), help="how binary values are written")
    group.add_argument(
        "--escape-backslash",
        choices=("true", "false"),
        default="true",
        help="whether a backslash escapes the next character of a text (default: %(default)s)",
    )
    group.add_argument(
        "--output-filename-template",
        metavar="TEMPLATE",
        default=default.output_filename_template,
        help="Go template of file names (default: %(default)s)",
    )


def load_options(parsed: argparse.Namespace) -> LoadOptions:
    """Returns the options that `add_load_options` added."""
    dumpling = DumplingOptions(
        csv_separator=parsed.csv_separator,
        csv_delimiter=parsed.csv_delimiter,
        csv_null_value=parsed.csv_null_value,
        csv_output_dialect=parsed.csv_output_dialect,
        no_header=parsed.no_header,
        escape_backslash=parsed.escape_backslash == "true",
        output_filename_template=parsed.output_filename_template,
    )
    zone = None if parsed.time_zone is None else zone_name(parsed.time_zone)
    return LoadOptions(time_zone=zone, tables=tuple(parsed.table), all_empty=parsed.all_empty, dumpling=dumpling)


def zone_name(given: str) -> str:
    """Returns the name of a time zone that a session of TiDB may have as hours from UTC, any other text unchanged.

    >>> zone_name("+08:00"), zone_name("+00:00"), zone_name("Asia/Shanghai")
    ('Etc/GMT-8', 'UTC', 'Asia/Shanghai')
    """
    offset = _HOURS_FROM_UTC.fullmatch(given)
    if offset is None:
        return given
    sign, hours = "-" if offset[1] == "+" else "+", int(offset[2])  # the names of POSIX count hours west of UTC
    return f"Etc/GMT{sign}{hours}" if hours else "UTC"


def read_load_options(text: str, time_zone: str | None = None) -> LoadOptions:
    """Returns the options in a text, split as a shell splits it. Raises ConfigError for an unknown option.

    >>> read_load_options("--table shop.orders --csv-null-value ''").dumpling.csv_null_value
    ''
    """
    # An abbreviation that is ambiguous ends the process in spite of exit_on_error, before Python 3.12.5.
    parser = argparse.ArgumentParser(exit_on_error=False, add_help=False, allow_abbrev=False)
    add_load_options(parser)
    try:
        parsed, unknown = parser.parse_known_args(shlex.split(text), argparse.Namespace(time_zone=time_zone))
    except (argparse.ArgumentError, ValueError) as error:
        raise ConfigError(f"options: {error}") from None
    if unknown:
        raise ConfigError(f"options: no option of ticdc-lake load: {unknown[0]}")
    return load_options(parsed)
