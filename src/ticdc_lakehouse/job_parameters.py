"""Parameters of a job, which are texts, as values: the lake that they describe, words, lists of names, numbers."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.folder_lake import FolderLake
from ticdc_lakehouse.session_settings import setting_of

ROOT_CONF = "spark.ticdc_lake.root"
"""Session setting that names the folder of the lake on a laptop; absent on Databricks."""

READS_ONLY_CONF = "spark.ticdc_lake.reads_only"
"""Session setting on a laptop: ``true`` if the lake's folder must stay as it is."""

LARGEST = 2**63 - 1
"""Spark's largest whole number; no TSO is larger."""


def lake_from(spark: SparkSession, parameters: Mapping[str, str]) -> Lake:
    """Returns the lake that job parameters describe, with its tables registered where the catalog forgets them."""
    root = setting_of(spark, ROOT_CONF)
    catalog, checkpoints = given(parameters, "catalog"), given(parameters, "checkpoint_root")
    schemas = {layer: given(parameters, f"{layer}_schema") for layer in Layer}
    lake = Lake(spark=spark, catalog=catalog, schemas=schemas, checkpoints=checkpoints)
    if root:
        lake = FolderLake(
            spark=spark,
            catalog=catalog,
            schemas=schemas,
            checkpoints=checkpoints,
            root=Path(root),
            reads_only=setting_of(spark, READS_ONLY_CONF) == "true",
        )
    lake.register()
    return lake


def given(parameters: Mapping[str, str], name: str) -> str:
    """Returns the value of a parameter, which may be empty. Raises ConfigError for a missing parameter."""
    if name not in parameters:
        raise ConfigError(f"parameter {name}: missing; there are {', '.join(parameters) or 'none'}")
    return parameters[name]


def choice(parameters: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    """Returns the value of a parameter, the first of those that are allowed if it is empty. Raises ConfigError for
    others."""
    value = parameters.get(name, "") or allowed[0]
    if value not in allowed:
        raise ConfigError(f"parameter {name}: expected one of {', '.join(allowed)}, found {value!r}")
    return value


def names(parameters: Mapping[str, str], name: str) -> list[str]:
    """Returns the names in a parameter that is a JSON list of them; none if it is missing. Raises ConfigError for other
    texts, and for a name that is listed twice."""
    listed = texts_in(parameters.get(name, "[]"), f"parameter {name}", "names")
    for each, count in Counter(listed).items():
        if count > 1:
            raise ConfigError(f"parameter {name}: {each} is listed {count} times; expected once")
    return listed


def texts_in(text: str, where: str, what: str = "texts") -> list[str]:
    """Returns the texts of a JSON list. Raises ConfigError, which names ``where`` it stands and ``what`` they are."""
    try:
        items = json.loads(text)
    except json.JSONDecodeError:
        items = None
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ConfigError(f"{where}: expected a JSON list of {what}, found {text!r}")
    return items


def seconds(parameters: Mapping[str, str], name: str) -> float:
    """Returns the seconds that a parameter contains (``2``, ``0.2``), 0 if it is empty. Raises ConfigError for other
    texts."""
    value = parameters.get(name, "").strip()
    if not re.fullmatch(r"(\d{1,6}(\.\d+)?)?", value, re.ASCII):
        raise ConfigError(f"parameter {name}: expected seconds such as 2 or 0.2, or nothing, found {value!r}")
    return float(value or 0)


def number(parameters: Mapping[str, str], name: str, *, least: int = 0) -> int | None:
    """Returns the whole number that a parameter contains, None if it is empty. Raises ConfigError for other texts, for
    less than ``least``, and above LARGEST."""
    value = parameters.get(name, "").strip()
    if not value:
        return None
    if not value.isdecimal():
        raise ConfigError(f"parameter {name}: expected a whole number or nothing, found {value!r}")
    if len(value) > len(str(LARGEST)) or int(value) > LARGEST:
        raise ConfigError(f"parameter {name}: expected at most {LARGEST}, found {value}")
    if int(value) < least:
        raise ConfigError(f"parameter {name}: expected {least} or more, or nothing, found {value}")
    return int(value)
