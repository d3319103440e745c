"""What is said when Spark's resolver fails; that it fetches is seen by every set-up on a new machine."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import closing, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from pyspark.errors import PySparkRuntimeError

from ticdc_codec.errors import ConfigError
from ticdc_local import resolver
from ticdc_local.java import Java, find_java
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


def test_proxies_are_java_s_as_they_are_python_s() -> None:
    https = "http://proxy.example:3128"
    proxies = {"http": "proxy.example", "https": https, "no": ".corp.example, 10.0.0.1"}
    assert resolver.proxy_properties(proxies) == {
        "http.proxyHost": "proxy.example",
        "http.proxyPort": "80",
        "https.proxyHost": "proxy.example",
        "https.proxyPort": "3128",
        "http.nonProxyHosts": "localhost|127.*|[::1]|corp.example|*.corp.example|10.0.0.1|*.10.0.0.1",
    }
    assert resolver.proxy_properties({"no": "*", "https": "socks5://proxy.example:1080"}) == {}
    assert resolver.proxy_properties({"https": "http://user:hunter2@proxy.example:3128"}) == {}
    with pytest.raises(ConfigError, match=r"^HTTPS_PROXY: expected http://HOST:PORT$"):
        resolver.proxy_properties({"https": "http://user:hunter2@proxy.example:http"})


def test_jars_are_asked_for_through_the_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*os.environ]:
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    asked: list[bytes] = []
    with closing(socket.create_server(("127.0.0.1", 0))) as proxy:
        Thread(target=refuse_all, args=(proxy, asked), daemon=True).start()
        address = f"127.0.0.1:{proxy.getsockname()[1]}"
        monkeypatch.setenv("HTTPS_PROXY", f"http://{address}")
        monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", "https://maven.invalid/")
        with pytest.raises(ConfigError, match=r"Asked through 127\.0\.0\.1, as HTTPS_PROXY and HTTP_PROXY say"):
            resolver.resolve(["org.example:none:1"], tmp_path, find_java())
    assert b"CONNECT maven.invalid:443 HTTP/1.1" in asked


def refuse_all(proxy: socket.socket, asked: list[bytes]) -> None:
    """Answers each request to a proxy with 403, and notes its first line."""
    with suppress(OSError):
        while True:
            with proxy.accept()[0] as client:
                asked.append(client.recv(65536).splitlines()[0])
                client.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def test_the_environment_is_spark_s_own_only_while_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICDC_LAKE_CACHE", str(tmp_path))
    monkeypatch.setenv("SPARK_HOME", "/another/spark")
    others = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH", "SPARK_REMOTE", "SPARK_API_MODE")
    for name in others:
        monkeypatch.setenv(name, "/of/another/spark")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    before = dict(os.environ)
    with spark_environment(JAVA):
        assert os.environ["JAVA_HOME"] == str(JAVA.spark_home())
        assert os.environ["SPARK_HOME"] != "/another/spark"
        assert not os.environ.keys() & set(others)
        assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert dict(os.environ) == before
