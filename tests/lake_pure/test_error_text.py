"""What an error says on one line."""

from __future__ import annotations

import pytest

from ticdc_lakehouse.error_text import first_line, java_root_cause, last_named


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


class CapturedError(Exception):
    """As PySpark has what Java raised."""

    def __init__(self, text: str, stack: str, cause: CapturedError | None = None) -> None:
        super().__init__(text)
        self._stackTrace, self._cause = stack, cause


@pytest.mark.parametrize(
    ("text", "stack", "named"),
    [
        ("NotAfter: Fri", "java.security.cert.CertificateExpiredException: NotAfter: Fri\n\tat x", True),
        ("handshake failed", "javax.net.ssl.SSLException: handshake failed\n\tat x", False),
    ],
)
def test_root_cause_says_something_else(text: str, stack: str, named: bool) -> None:
    between = CapturedError("path validation failed", "java.X: path validation failed", CapturedError(text, stack))
    cause = java_root_cause(CapturedError("[FAILED] terminated with exception: handshake failed", "", between))
    assert cause == ("CertificateExpiredException: NotAfter: Fri" if named else None)


def test_an_error_without_a_cause_has_no_root_cause() -> None:
    assert java_root_cause(ValueError("x")) is None


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (
            "An error occurred while calling z:org.X.create.\n: org.apache.kafka.KafkaException: Failed\n\tat x"
            "\nCaused by: org.apache.ConfigException: No urls\n\t... 9 more",
            "ConfigException: No urls",
        ),
        ("An error occurred while calling o12.sql\nno Java", None),
    ],
)
def test_the_last_named_error_is_what_caused_the_others(text: str, named: str | None) -> None:
    assert last_named(ValueError(text)) == named
