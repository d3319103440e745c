"""Names in SQL are folded as `ticdc_codec.name_case.fold` folds them."""

from __future__ import annotations

from random import Random

from pyspark.sql import SparkSession

from ticdc_codec.name_case import fold
from ticdc_lakehouse.sql.text import folded_sql


def test_sql_folds_names_as_tidb_does(spark: SparkSession) -> None:
    # The planes that have letters with case. Of those that Python's tables lack, Spark knows some.
    characters = [chr(code) for code in range(1, 0x20000) if not 0xD800 <= code < 0xF900]
    random = Random(16)
    cased = [each for each in characters if each.lower() != each or each.upper() != each]
    words = ["".join(random.choices(cased, k=random.randint(2, 6))) for _ in range(20_000)]
    texts = [*characters, *words, "ΑΣ", "ΑΣ Β", "İİ", "I\u0307"]  # noqa: RUF001
    lines = spark.createDataFrame([(text,) for text in texts], "name STRING")
    folded = lines.selectExpr("name", f"{folded_sql('name')} AS folded").collect()
    assert len(folded) == len(texts)
    assert [line["name"] for line in folded if line["folded"] != fold(line["name"])] == []
