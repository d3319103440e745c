"""How an export's files are written: Dumpling's settings, given by the user or read from the files' headers.

Source: tidb ``dumpling/export``, config.go (the options), sql_type.go and writer_util.go (quotes and escapes).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from ticdc_codec.errors import ConfigError

GIVE_OPTIONS = "give load the options that dumpling had (--no-header, --csv-separator, --csv-delimiter)"
_NUMBER = re.compile(rb"[-+]?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?")


class BinaryForm(StrEnum):
    """How values of BINARY, BLOB and BIT are written."""

    RAW = "raw"
    HEX = "hex"
    BASE64 = "base64"


FORMS = {"snowflake": BinaryForm.HEX, "redshift": BinaryForm.HEX, "bigquery": BinaryForm.BASE64}
"""The form of binary values in each ``--csv-output-dialect``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How the files of one export are written. Lines end with LF or CR LF."""

    statements: bool = False
    """``INSERT INTO … VALUES`` and a tuple a line (``--filetype sql``); else CSV."""
    header: bool = True
    separator: bytes = b","
    quote: bytes = b'"'
    """Around each value that is neither a number nor NULL; empty for none."""
    null: bytes = b"\\N"
    backslash: bool = True
    """True if values have backslash escapes, so that no value has a line end; else quotes are doubled."""
    binary: BinaryForm = BinaryForm.RAW

    @property
    def escapes(self) -> dict[bytes, bytes]:
        """What each two bytes with a backslash stand for. A backslash first: then each one left begins an escape."""
        if not self.backslash:
            return {}
        special = [b"'", b'"', b"\x1a"] if self.statements else [(self.quote or self.separator)[:1]]
        letters = {b"\n": b"n", b"\r": b"r", b"\0": b"0", b"\x1a": b"Z"}
        written = [b"\\", b"\n", b"\r", *special, b"\0"]
        return {b"\\" + letters.get(character, character): character for character in written}

    def header_line(self, names: Sequence[str]) -> bytes:
        """Returns the first line of a CSV file with these columns, without its end."""
        return self.separator.join(self.quote + self._escaped(name.encode()) + self.quote for name in names)

    def _escaped(self, name: bytes) -> bytes:
        if not self.backslash:
            return name.replace(self.quote, self.quote * 2)
        for written, character in self.escapes.items():
            name = name.replace(character, written)
        return name


CSV = Dialect()
SQL = Dialect(statements=True, header=False, quote=b"'", null=b"NULL", binary=BinaryForm.HEX)


@dataclass(frozen=True, slots=True, kw_only=True)
class DumplingOptions:
    """Dumpling's options that its files do not show, under Dumpling's names."""

    csv_separator: str | None = None
    csv_delimiter: str | None = None
    csv_null_value: str = "\\N"
    csv_output_dialect: str | None = None
    no_header: bool = False
    escape_backslash: bool = True
    output_filename_template: str = "{{fn .DB}}.{{fn .Table}}.{{.Index}}"

    def sql(self) -> Dialect:
        """Returns the dialect of files of INSERT statements."""
        return replace(SQL, backslash=self.escape_backslash)

    def csv(self, first_line: bytes | None, names: Sequence[str]) -> Dialect:
        """Returns the dialect of CSV files, one of which begins with ``first_line`` (None: it is not looked at) and has
        the columns ``names``.

        Raises ConfigError for settings whose files cannot be read back.
        """
        separator_and_quote = _read_header(first_line, names) if first_line is not None else None
        separator, quote = separator_and_quote or (CSV.separator, CSV.quote)
        dialect = Dialect(
            header=not self.no_header,
            separator=separator if self.csv_separator is None else self.csv_separator.encode(),
            quote=quote if self.csv_delimiter is None else self.csv_delimiter.encode(),
            null=self.csv_null_value.encode(),
            backslash=self.escape_backslash,
            binary=FORMS[self.csv_output_dialect] if self.csv_output_dialect else BinaryForm.RAW,
        )
        _check(dialect)
        return dialect


def _read_header(line: bytes, names: Sequence[str]) -> tuple[bytes, bytes] | None:
    """Returns separator and quote, from a header whose first two names need no escapes; None if it has other names."""
    first, second = (name.encode() for name in names[:2])
    quote, first_name, rest = line.partition(first)
    between, second_name, _ = rest.partition(second)
    if not (first_name and second_name) or len(between) <= 2 * len(quote):
        return None
    if not (between.startswith(quote) and between.endswith(quote)):
        return None
    return between[len(quote) : len(between) - len(quote)], quote


def _check(dialect: Dialect) -> None:
    taken = set(b"\\\r\n\0nr0N")
    if not dialect.separator or set(dialect.separator) & (taken | set(dialect.quote)) or set(dialect.quote) & taken:
        raise ConfigError(
            f"--csv-separator {dialect.separator!r} and --csv-delimiter {dialect.quote!r}: expected other bytes "
            "than those of escapes, and none in both"
        )
    if not dialect.quote and not dialect.backslash:
        raise ConfigError(
            "--escape-backslash=false without --csv-delimiter: values cannot be distinguished: export again"
        )
    if not dialect.quote and dialect.null != CSV.null:
        raise ConfigError(
            "--csv-null-value without --csv-delimiter: NULL and that text cannot be distinguished: export again"
        )
    if dialect.quote and dialect.quote in dialect.null:
        raise ConfigError(
            "--csv-null-value with --csv-delimiter in it: NULL and a text cannot be distinguished: export again"
        )
    if _NUMBER.fullmatch(dialect.null):
        raise ConfigError(
            f"--csv-null-value {dialect.null.decode()}: NULL and that number cannot be distinguished: export again"
        )
    if not dialect.backslash and (len(dialect.quote) > 1 or len(dialect.separator) > 1):
        raise ConfigError(
            "--escape-backslash=false with a --csv-separator or --csv-delimiter of several bytes: cannot be read: "
            "export again"
        )
