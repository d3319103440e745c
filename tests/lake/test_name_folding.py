"""Names in SQL are folded as `schema.names.fold` folds them."""

from __future__ import annotations

import unicodedata
from random import Random

from pyspark.sql import SparkSession

from ticdc_lakehouse.schema.names import fold
from ticdc_lakehouse.sql.text import folded_sql


def assigned() -> list[str]:
    """Every character that Python's Unicode tables know."""
    characters = (chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000)
    return [each for each in characters if unicodedata.category(each) not in ("Cn", "Co")]


def test_sql_folds_names_as_tidb_does(spark: SparkSession) -> None:
    characters, random = assigned(), Random(16)
    cased = [each for each in characters if each.lower() != each or each.upper() != each]
    words = ["".join(random.choices(cased, k=random.randint(2, 6))) for _ in range(20_000)]
    texts = [*characters, *words, "ΑΣ", "ΑΣ Β", "İİ", "I\u0307"]  # noqa: RUF001
    lines = spark.createDataFrame([(text,) for text in texts], "name STRING")
    folded = lines.selectExpr("name", f"{folded_sql('name')} AS folded").collect()
    assert len(folded) == len(texts)
    assert [line["name"] for line in folded if line["folded"] != fold(line["name"])] == []
