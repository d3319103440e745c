"""What an error says on one line."""

from __future__ import annotations

import pytest

from ticdc_lakehouse.error_text import first_line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[TABLE_NOT_FOUND] no such table\n  at line 1", "[TABLE_NOT_FOUND] no such table"),
        ("\n\n  late text  ", "late text"),
        # As py4j reports what Java raised.
        ("An error occurred while calling o12.sql.\n: java.io.IOException: full\n\tat x", "java.io.IOException: full"),
        ("An error occurred while calling o12.sql", "ValueError"),
        ("", "ValueError"),
    ],
)
def test_first_line_skips_blank_lines_and_py4js_preamble(text: str, line: str) -> None:
    assert first_line(ValueError(text)) == line
