"""What is said when Spark's resolver fails; that it fetches is seen by every set-up on a new machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkRuntimeError

from ticdc_codec.errors import ConfigError
from ticdc_local import resolver
from ticdc_local.java import Java
from ticdc_local.launch import spark_environment

JAVA = Java(executable=Path("/some/java"), version=17, source="PATH")


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("SSLHandshakeException: PKIX path building failed", "-Djavax.net.ssl.trustStore="),
        ("unresolved dependency", "DEFAULT_ARTIFACT_REPOSITORY"),
    ],
)
def test_a_failure_shows_the_error_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, advice: str
) -> None:
    def launch(popen_kwargs: dict[str, Any]) -> None:
        popen_kwargs["stderr"].write(said.encode())
        raise PySparkRuntimeError("JAVA_GATEWAY_EXITED")

    monkeypatch.setenv("TICDC_LAKE_CACHE", str(tmp_path))
    monkeypatch.setattr(resolver, "launch_gateway", launch)
    with pytest.raises(ConfigError) as caught:
        resolver.resolve(["a:b:1", "c:d:2"], tmp_path, JAVA)
    for part in ("2 jars could not be fetched", "a:b:1, c:d:2", "/some/java", said, advice):
        assert part in str(caught.value)


def test_the_environment_is_spark_s_own_only_while_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICDC_LAKE_CACHE", str(tmp_path))
    monkeypatch.setenv("SPARK_HOME", "/another/spark")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    before = dict(os.environ)
    with spark_environment(JAVA):
        assert os.environ["JAVA_HOME"] == str(JAVA.spark_home())
        assert os.environ["SPARK_HOME"] != "/another/spark"
        assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert dict(os.environ) == before
