"""SQL of the texts of FLOAT and DOUBLE values (`event` docstring): the fewest digits that read back to the number, and
of those the nearest.

``CAST(… AS STRING)`` gives Java's digits. Before Java 19 these are too many for one FLOAT in ten (JDK-4511638), and no
Java writes less than two: 5e-324 is 4.9E-324.

Compared with the codec over 200,000 random values of each type: on Java 21 none differs, on Java 17 no FLOAT and 4
DOUBLEs above 1e18: they read back to the number, but another text with as many digits is nearer to it.
"""

from __future__ import annotations

_DIGITS = {"FLOAT": 9, "DOUBLE": 17}
"""Digits with which a text of each Spark type reads back to its number."""
_EXPONENT = "_ticdc_exponent"
"""The lambda's variable. Its body contains the value too, which may be a column, and no column of TiDB has this
name."""


def shortest_sql(value: str, spark_type: str) -> str:
    """Returns the number with an exponent: ``1.5e-07``."""
    # The lambda has the value once, however long its expression is.
    tried = f"transform(sequence(0, {_DIGITS[spark_type] - 1}), n -> {_rounded_sql('n')})"
    shortest = f"get(filter({tried}, t -> try_cast(t AS {spark_type}) = x), 0)"
    return f"get(transform(array({value}), x -> {shortest}), 0)"


def _rounded_sql(digits: str) -> str:
    """Returns ``x`` with ``digits`` digits after the first. Java rounds half up; Go and numpy, which write what
    messages have, round it to even."""
    half = f"format_string(concat('%.', {digits} + 1, 'e'), x)"
    is_half = f"{half} RLIKE '[02468][.]?5e' AND try_cast({half} AS DOUBLE) = CAST(x AS DOUBLE)"
    down = f"regexp_replace({half}, '[.]?5e', 'e')"
    return f"CASE WHEN {is_half} THEN {down} ELSE format_string(concat('%.', {digits}, 'e'), x) END"


def number_text_sql(value: str, spark_type: str) -> str:
    """Returns plain digits from 1e-6 up to below 1e21, else an exponent."""
    size = f"abs({value})"
    text = (
        f"CASE WHEN {value} = 0 THEN regexp_replace(CAST({value} AS STRING), '[.]0$', '') "
        f"WHEN {size} >= 1e-6 AND {size} < 1 THEN {_plain_sql(_EXPONENT, 22)} "
        f"WHEN {size} >= 1 AND {size} < 1e21 THEN {_plain_sql(_EXPONENT, 16)} ELSE {_EXPONENT} END"
    )
    return f"get(transform(array({shortest_sql(value, spark_type)}), {_EXPONENT} -> {text}), 0)"


def _plain_sql(number: str, scale: int) -> str:
    return f"regexp_replace(CAST(CAST({number} AS DECIMAL(38,{scale})) AS STRING), '[.]?0+$', '')"
