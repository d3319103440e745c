"""The options that a feed file may give to the Kafka client under ``kafka.security``."""

from __future__ import annotations

# Names: SecurityConfig, SaslConfigs and SslConfigs of kafka-clients 3.9 and 4.1.
_OF_KAFKA = {
    "security.protocol": "How brokers are reached: PLAINTEXT (the default), SSL, SASL_PLAINTEXT or SASL_SSL.",
    "security.providers": "Classes that make security providers, separated by commas.",
    "sasl.client.callback.handler.class": "Class that answers the login module's questions, such as for a user's name.",
    "sasl.jaas.config": 'The login module and its options: `<class> required <option>="<value>" …;`.',
    "sasl.kerberos.kinit.cmd": "Path of kinit.",
    "sasl.kerberos.min.time.before.relogin": "Milliseconds that a Kerberos login rests between two attempts.",
    "sasl.kerberos.service.name": "The Kerberos principal's name that the brokers run as.",
    "sasl.kerberos.ticket.renew.jitter": "Random part of the time until a ticket is renewed.",
    "sasl.kerberos.ticket.renew.window.factor": "Share of a ticket's life after which it is renewed.",
    "sasl.login.callback.handler.class": "Class that obtains the login's credentials, such as an OAuth token.",
    "sasl.login.class": "Class that logs in.",
    "sasl.login.connect.timeout.ms": "Milliseconds to connect to the identity provider.",
    "sasl.login.read.timeout.ms": "Milliseconds to wait for the identity provider's answer.",
    "sasl.login.refresh.buffer.seconds": "Seconds that stay of a credential's life when it is refreshed.",
    "sasl.login.refresh.min.period.seconds": "Seconds that a credential is used at least before it is refreshed.",
    "sasl.login.refresh.window.factor": "Share of a credential's life after which it is refreshed.",
    "sasl.login.refresh.window.jitter": "Random part of the time until a credential is refreshed.",
    "sasl.login.retry.backoff.max.ms": "Most milliseconds between two login attempts.",
    "sasl.login.retry.backoff.ms": "Milliseconds between the first two login attempts.",
    "sasl.mechanism": "How the client authenticates: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, GSSAPI (the default), "
    "OAUTHBEARER, or AWS_MSK_IAM with Amazon's library.",
    "sasl.oauthbearer.assertion.algorithm": "Algorithm that signs the JWT assertion.",
    "sasl.oauthbearer.assertion.claim.aud": "The assertion's audience.",
    "sasl.oauthbearer.assertion.claim.exp.seconds": "Seconds that an assertion is valid.",
    "sasl.oauthbearer.assertion.claim.iss": "The assertion's issuer.",
    "sasl.oauthbearer.assertion.claim.jti.include": "Whether the assertion has an id of its own.",
    "sasl.oauthbearer.assertion.claim.nbf.seconds": "Seconds before now from which an assertion is valid.",
    "sasl.oauthbearer.assertion.claim.sub": "The assertion's subject.",
    "sasl.oauthbearer.assertion.file": "File with a signed assertion.",
    "sasl.oauthbearer.assertion.private.key.file": "File with the private key that signs assertions.",
    "sasl.oauthbearer.assertion.private.key.passphrase": "Passphrase of that key.",
    "sasl.oauthbearer.assertion.template.file": "JSON file with the assertion's header and claims.",
    "sasl.oauthbearer.client.credentials.client.id": "OAuth client id.",
    "sasl.oauthbearer.client.credentials.client.secret": "OAuth client secret.",
    "sasl.oauthbearer.clock.skew.seconds": "Seconds by which clocks may differ.",
    "sasl.oauthbearer.expected.audience": "Audience that a token must name.",
    "sasl.oauthbearer.expected.issuer": "Issuer that a token must name.",
    "sasl.oauthbearer.header.urlencode": "Whether client id and secret are URL-encoded in the header.",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": "Milliseconds between two readings of the provider's keys.",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "Most milliseconds between two attempts to read them.",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "Milliseconds between the first two attempts to read them.",
    "sasl.oauthbearer.jwks.endpoint.url": "Where the provider's keys are.",
    "sasl.oauthbearer.jwt.retriever.class": "Class that obtains tokens.",
    "sasl.oauthbearer.jwt.validator.class": "Class that validates tokens.",
    "sasl.oauthbearer.scope": "OAuth scope of the token request.",
    "sasl.oauthbearer.scope.claim.name": "Claim that holds a token's scope.",
    "sasl.oauthbearer.sub.claim.name": "Claim that holds a token's subject.",
    "sasl.oauthbearer.token.endpoint.url": "Where tokens are issued.",
    "ssl.cipher.suites": "Cipher suites that may be used.",
    "ssl.enabled.protocols": "TLS versions that may be used.",
    "ssl.endpoint.identification.algorithm": "How the broker's host name is checked; empty: not at all.",
    "ssl.engine.factory.class": "Class that makes the TLS engine.",
    "ssl.key.password": "Password of the private key.",
    "ssl.keymanager.algorithm": "Algorithm of the key manager.",
    "ssl.keystore.certificate.chain": "The client's certificate chain, PEM.",
    "ssl.keystore.key": "The client's private key, PEM.",
    "ssl.keystore.location": "File of the client's keystore: on Databricks a path in `/Volumes`.",
    "ssl.keystore.password": "Password of the keystore.",
    "ssl.keystore.type": "JKS, PKCS12 or PEM.",
    "ssl.protocol": "TLS version to begin with.",
    "ssl.provider": "Name of the security provider.",
    "ssl.secure.random.implementation": "Random number generator of TLS.",
    "ssl.trustmanager.algorithm": "Algorithm of the trust manager.",
    "ssl.truststore.certificates": "Certificates that the client trusts, PEM.",
    "ssl.truststore.location": "File of the truststore: on Databricks a path in `/Volumes`.",
    "ssl.truststore.password": "Password of the truststore.",
    "ssl.truststore.type": "JKS, PKCS12 or PEM.",
}

# https://docs.databricks.com/aws/en/connect/streaming/kafka/authentication
DATABRICKS_OPTIONS = {
    "databricks.serviceCredential": "Name of a Unity Catalog service credential, which stands for all options of "
    "authentication. Only on Databricks (16.1 and later).",
    "databricks.serviceCredential.scope": "OAuth scope of that credential, where Databricks cannot infer it.",
}
"""Options of Databricks' own connector; the client does not know them."""

CLIENT_OPTIONS = {**_OF_KAFKA, **DATABRICKS_OPTIONS}
"""What each option is, by its name."""

CLASS_OPTIONS = frozenset(
    {"security.providers", "sasl.login.class", *(name for name in _OF_KAFKA if name.endswith(".class"))}
)
"""Options whose values are names of Java classes."""
