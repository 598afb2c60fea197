//! Broker configs about authentication, authorization and encryption.

use crate::broker::config::Rule;
use crate::broker::config::def::idle::{NO_AUTH, NO_SASL, NO_TLS};
use crate::broker::config::def::{Def, boolean, class, double, int, list, long, password, short, string};

#[rustfmt::skip]
pub(super) const TABLE: &[Def] = &[
    string("authorizer.class.name").is("").rule(Rule::Absent).low().idle(NO_AUTH)
        .says("The class that decides who may do what."),
    class("principal.builder.class")
        .is("org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder").per_broker().idle(NO_AUTH)
        .says("The class that makes a principal of a connection."),
    string("security.providers").low().idle(NO_TLS).says("Classes that provide security algorithms."),
    long("connections.max.reauth.ms").is("0").idle(NO_SASL)
        .says("How long a client may go without authenticating again."),
    password("delegation.token.secret.key").idle(NO_SASL).says("The secret that delegation tokens are signed with."),
    long("delegation.token.max.lifetime.ms").is("604800000").at_least(1).idle(NO_SASL)
        .says("How long a delegation token may be renewed."),
    long("delegation.token.expiry.time.ms").is("86400000").at_least(1).idle(NO_SASL)
        .says("How long a delegation token is valid before it must be renewed."),
    long("delegation.token.expiry.check.interval.ms").is("3600000").at_least(1).low().idle(NO_SASL)
        .says("How often expired delegation tokens are removed."),
    class("sasl.client.callback.handler.class").idle(NO_SASL)
        .says("The class that answers the client side of a SASL exchange."),
    list("sasl.enabled.mechanisms").is("GSSAPI").per_broker().idle(NO_SASL)
        .says("The SASL mechanisms that clients may use."),
    password("sasl.jaas.config").per_broker().idle(NO_SASL).says("Login settings for a SASL listener."),
    string("sasl.kerberos.kinit.cmd").is("/usr/bin/kinit").per_broker().idle(NO_SASL).says("The path of kinit."),
    long("sasl.kerberos.min.time.before.relogin").is("60000").per_broker().idle(NO_SASL)
        .says("The least time between two Kerberos logins."),
    list("sasl.kerberos.principal.to.local.rules").is("DEFAULT").per_broker().idle(NO_SASL)
        .says("Rules that turn a Kerberos principal into a short name."),
    string("sasl.kerberos.service.name").per_broker().idle(NO_SASL)
        .says("The Kerberos name that the broker runs under."),
    double("sasl.kerberos.ticket.renew.jitter").is("0.05").per_broker().idle(NO_SASL)
        .says("The random share that is added to a ticket's renewal time."),
    double("sasl.kerberos.ticket.renew.window.factor").is("0.8").per_broker().idle(NO_SASL)
        .says("The share of a ticket's lifetime after which it is renewed."),
    class("sasl.login.callback.handler.class").idle(NO_SASL).says("The class that answers a login."),
    class("sasl.login.class").idle(NO_SASL).says("The class that logs in."),
    int("sasl.login.connect.timeout.ms").low().idle(NO_SASL)
        .says("How long a connection to the token provider may take to open."),
    int("sasl.login.read.timeout.ms").low().idle(NO_SASL).says("How long to wait for the token provider's answer."),
    short("sasl.login.refresh.buffer.seconds").is("300").per_broker().idle(NO_SASL)
        .says("How many seconds before its expiry a credential is refreshed."),
    short("sasl.login.refresh.min.period.seconds").is("60").per_broker().idle(NO_SASL)
        .says("The least time between two refreshes of a credential."),
    double("sasl.login.refresh.window.factor").is("0.8").per_broker().idle(NO_SASL)
        .says("The share of a credential's lifetime after which it is refreshed."),
    double("sasl.login.refresh.window.jitter").is("0.05").per_broker().idle(NO_SASL)
        .says("The random share that is added to a credential's refresh time."),
    long("sasl.login.retry.backoff.ms").is("100").low().idle(NO_SASL)
        .says("The first wait between two attempts to log in."),
    long("sasl.login.retry.backoff.max.ms").is("10000").low().idle(NO_SASL)
        .says("The longest wait between two attempts to log in."),
    string("sasl.mechanism.controller.protocol").is("GSSAPI").high().idle(NO_SASL)
        .says("The SASL mechanism that is used towards controllers."),
    string("sasl.mechanism.inter.broker.protocol").is("GSSAPI").per_broker().idle(NO_SASL)
        .says("The SASL mechanism that brokers use among themselves."),
    string("sasl.oauthbearer.assertion.algorithm").is("RS256").rule(Rule::OneOfIgnoringCase(&["ES256", "RS256"]))
        .idle(NO_SASL).says("The algorithm that a login assertion is signed with."),
    string("sasl.oauthbearer.assertion.claim.aud").idle(NO_SASL).says("The audience that a login assertion names."),
    int("sasl.oauthbearer.assertion.claim.exp.seconds").is("300").between(0, 86_400).low().idle(NO_SASL)
        .says("How many seconds a login assertion is valid."),
    string("sasl.oauthbearer.assertion.claim.iss").idle(NO_SASL).says("The issuer that a login assertion names."),
    boolean("sasl.oauthbearer.assertion.claim.jti.include").is("false").idle(NO_SASL)
        .says("Give each login assertion an identifier of its own."),
    int("sasl.oauthbearer.assertion.claim.nbf.seconds").is("60").between(0, 3600).low().idle(NO_SASL)
        .says("How many seconds before its making a login assertion becomes valid."),
    string("sasl.oauthbearer.assertion.claim.sub").idle(NO_SASL).says("The subject that a login assertion names."),
    string("sasl.oauthbearer.assertion.file").idle(NO_SASL).says("A file that holds a ready login assertion."),
    string("sasl.oauthbearer.assertion.private.key.file").idle(NO_SASL)
        .says("A file that holds the key for login assertions."),
    password("sasl.oauthbearer.assertion.private.key.passphrase").idle(NO_SASL).says("The passphrase of that key."),
    string("sasl.oauthbearer.assertion.template.file").idle(NO_SASL)
        .says("A file that holds the fixed parts of a login assertion."),
    string("sasl.oauthbearer.client.credentials.client.id").idle(NO_SASL)
        .says("The client id that is shown to the token provider."),
    password("sasl.oauthbearer.client.credentials.client.secret").idle(NO_SASL)
        .says("The secret that goes with that client id."),
    int("sasl.oauthbearer.clock.skew.seconds").is("30").low().idle(NO_SASL)
        .says("By how many seconds the clocks of broker and token provider may differ."),
    list("sasl.oauthbearer.expected.audience").is("").high().idle(NO_SASL)
        .says("The audiences that a token may be for."),
    string("sasl.oauthbearer.expected.issuer").high().idle(NO_SASL).says("The issuer that a token must be from."),
    long("sasl.oauthbearer.jwks.endpoint.refresh.ms").is("3600000").low().idle(NO_SASL)
        .says("How often the provider's keys are fetched."),
    long("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms").is("100").low().idle(NO_SASL)
        .says("The first wait between two attempts to fetch the provider's keys."),
    long("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms").is("10000").low().idle(NO_SASL)
        .says("The longest wait between two attempts to fetch the provider's keys."),
    string("sasl.oauthbearer.jwks.endpoint.url").idle(NO_SASL).says("Where the provider's keys are fetched from."),
    class("sasl.oauthbearer.jwt.retriever.class")
        .is("org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever").idle(NO_SASL)
        .says("The class that gets a token."),
    class("sasl.oauthbearer.jwt.validator.class")
        .is("org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator").idle(NO_SASL)
        .says("The class that checks a token."),
    string("sasl.oauthbearer.scope").idle(NO_SASL).says("The scope that is asked of the token provider."),
    string("sasl.oauthbearer.scope.claim.name").is("scope").low().idle(NO_SASL)
        .says("The claim in which a token names its scope."),
    string("sasl.oauthbearer.sub.claim.name").is("sub").low().idle(NO_SASL)
        .says("The claim in which a token names its subject."),
    string("sasl.oauthbearer.token.endpoint.url").idle(NO_SASL).says("Where tokens are got from."),
    class("sasl.server.callback.handler.class").idle(NO_SASL)
        .says("The class that answers the server side of a SASL exchange."),
    int("sasl.server.max.receive.size").is("524288").idle(NO_SASL)
        .says("The largest message of a SASL exchange, in bytes."),
    boolean("ssl.allow.dn.changes").is("false").low().idle(NO_TLS)
        .says("Let a renewed key store name another subject."),
    boolean("ssl.allow.san.changes").is("false").low().idle(NO_TLS)
        .says("Let a renewed key store drop alternative names."),
    list("ssl.cipher.suites").is("").per_broker().idle(NO_TLS).says("The cipher suites that may be negotiated."),
    string("ssl.client.auth").is("none").one_of(&["required", "requested", "none"]).per_broker().idle(NO_TLS)
        .says("Whether clients must show a certificate."),
    list("ssl.enabled.protocols").is("TLSv1.2,TLSv1.3").per_broker().idle(NO_TLS)
        .says("The TLS versions that may be negotiated."),
    string("ssl.endpoint.identification.algorithm").is("https").low().per_broker().idle(NO_TLS)
        .says("How the name in a server's certificate is checked."),
    class("ssl.engine.factory.class").low().per_broker().idle(NO_TLS).says("The class that makes TLS engines."),
    password("ssl.key.password").per_broker().idle(NO_TLS).says("The password of the private key."),
    string("ssl.keymanager.algorithm").is("SunX509").per_broker().idle(NO_TLS)
        .says("The algorithm of the key manager."),
    password("ssl.keystore.certificate.chain").per_broker().idle(NO_TLS).says("The certificate chain, as PEM."),
    password("ssl.keystore.key").per_broker().idle(NO_TLS).says("The private key, as PEM."),
    string("ssl.keystore.location").per_broker().idle(NO_TLS).says("The file of the key store."),
    password("ssl.keystore.password").per_broker().idle(NO_TLS).says("The password of the key store."),
    string("ssl.keystore.type").is("JKS").per_broker().idle(NO_TLS).says("The format of the key store."),
    string("ssl.principal.mapping.rules").is("DEFAULT").low().idle(NO_TLS)
        .says("Rules that turn a certificate's subject into a short name."),
    string("ssl.protocol").is("TLSv1.3").per_broker().idle(NO_TLS).says("The TLS version that an engine is made for."),
    string("ssl.provider").per_broker().idle(NO_TLS).says("The provider of the TLS implementation."),
    string("ssl.secure.random.implementation").low().per_broker().idle(NO_TLS)
        .says("The random number generator for TLS."),
    string("ssl.trustmanager.algorithm").is("PKIX").per_broker().idle(NO_TLS)
        .says("The algorithm of the trust manager."),
    password("ssl.truststore.certificates").per_broker().idle(NO_TLS).says("The trusted certificates, as PEM."),
    string("ssl.truststore.location").per_broker().idle(NO_TLS).says("The file of the trust store."),
    password("ssl.truststore.password").per_broker().idle(NO_TLS).says("The password of the trust store."),
    string("ssl.truststore.type").is("JKS").per_broker().idle(NO_TLS).says("The format of the trust store."),
];
