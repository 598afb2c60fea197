//! Broker configs about connections, requests, identity and measurement.

use crate::broker::config::def::differs::{LOOPBACK, NO_DEFAULT};
use crate::broker::config::def::idle::{
    ADMISSION, LISTENERS, METRICS, NO_SASL, NO_TELEMETRY, ONE_DIR, ONE_NODE, PLUGIN, PURGATORY, SOCKETS, START,
    THREADS, UNSTABLE,
};
use crate::broker::config::def::{Def, boolean, class, int, list, long, string};

#[rustfmt::skip]
pub(super) const TABLE: &[Def] = &[
    list("listeners").is("PLAINTEXT://127.0.0.1:9092").some_of(&[]).high().per_broker()
        .kafka(Some("PLAINTEXT://:9092"), LOOPBACK)
        .says("The address to listen on, as NAME://HOST:PORT. The same setting as --listen."),
    list("advertised.listeners").some_of(&[]).high()
        .says("The address that clients are told to connect to, as NAME://HOST:PORT. The same setting as \
            --advertise; unset, each client is told the address that it connected to."),
    string("listener.security.protocol.map")
        .is("SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT").low().per_broker()
        .idle(LISTENERS).says("Which security protocol each listener name stands for."),
    string("inter.broker.listener.name").idle(ONE_NODE).says("The listener that brokers use among themselves."),
    string("security.inter.broker.protocol").is("PLAINTEXT")
        .one_of(&["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]).idle(ONE_NODE)
        .says("The security protocol that brokers use among themselves."),
    list("early.start.listeners").high().idle(LISTENERS)
        .says("Listeners that open before the rest of the broker is ready."),
    string("broker.rack").says("The rack that this broker says it stands in."),
    int("broker.id").is("-1").high().says("The old name of node.id. Where both are given they must be equal."),
    int("node.id").is("1").at_least(0).high().kafka(None, NO_DEFAULT)
        .says("The number by which clients know this broker."),
    int("max.connections").is("2147483647").at_least(0).cluster_wide()
        .says("The most connections that are open at one time; further ones wait or are closed."),
    int("max.connections.per.ip").is("2147483647").at_least(0).cluster_wide()
        .says("The most connections that one address may have open at one time."),
    string("max.connections.per.ip.overrides").is("").cluster_wide()
        .says("Exceptions from max.connections.per.ip, as ADDRESS:COUNT separated by commas."),
    int("max.connection.creation.rate").is("2147483647").at_least(0).cluster_wide()
        .says("The most connections that are accepted a second."),
    long("connections.max.idle.ms").is("600000")
        .says("A connection that has been idle for this many milliseconds is closed."),
    int("connection.failed.authentication.delay.ms").is("100").at_least(0).low().idle(NO_SASL)
        .says("How long the answer to a failed authentication is held back."),
    int("socket.request.max.bytes").is("104857600").at_least(1).high()
        .says("The largest request that is read, in bytes; a larger one closes the connection."),
    int("socket.send.buffer.bytes").is("102400").high().idle(SOCKETS)
        .says("The size of a socket's send buffer, in bytes."),
    int("socket.receive.buffer.bytes").is("102400").high().idle(SOCKETS)
        .says("The size of a socket's receive buffer, in bytes."),
    int("socket.listen.backlog.size").is("50").at_least(1).idle(SOCKETS)
        .says("How many connections may wait to be accepted."),
    long("socket.connection.setup.timeout.ms").is("10000").idle(ONE_NODE)
        .says("How long the broker waits for a connection that it opens to another node."),
    long("socket.connection.setup.timeout.max.ms").is("30000").idle(ONE_NODE)
        .says("The most that such a wait grows to after failures."),
    int("queued.max.requests").is("500").at_least(1).high().idle(ADMISSION)
        .says("How many requests may wait before no more are read from the network."),
    long("queued.max.request.bytes").is("-1").idle(ADMISSION)
        .says("How many bytes of requests may wait before no more are read from the network."),
    int("request.timeout.ms").is("30000").high().idle(ONE_NODE)
        .says("How long the broker waits for the answer of another node."),
    int("num.network.threads").is("3").at_least(1).high().cluster_wide().idle(THREADS)
        .says("How many threads read requests and write answers."),
    int("num.io.threads").is("8").at_least(1).high().cluster_wide().idle(THREADS)
        .says("How many threads handle requests."),
    int("background.threads").is("10").at_least(1).high().cluster_wide().idle(THREADS)
        .says("How many threads do background work."),
    int("num.replica.alter.log.dirs.threads").high().idle(ONE_DIR)
        .says("How many threads move replicas between directories."),
    int("fetch.max.bytes").is("57671680").at_least(1024)
        .says("The most bytes that one fetch is answered with, whatever it asks for."),
    int("max.incremental.fetch.session.cache.slots").is("1000").at_least(0)
        .says("How many fetch sessions are kept at one time."),
    int("max.request.partition.size.limit").is("2000").at_least(1)
        .says("The most partitions that one DescribeTopicPartitions answer lists."),
    int("fetch.purgatory.purge.interval.requests").is("1000").idle(PURGATORY)
        .says("After how many requests the list of waiting fetches is purged."),
    int("producer.purgatory.purge.interval.requests").is("1000").idle(PURGATORY)
        .says("After how many requests the list of waiting produce requests is purged."),
    int("delete.records.purgatory.purge.interval.requests").is("1").idle(PURGATORY)
        .says("After how many requests the list of waiting DeleteRecords is purged."),
    int("share.fetch.purgatory.purge.interval.requests").is("1000").idle(PURGATORY)
        .says("After how many requests the list of waiting share fetches is purged."),
    boolean("controlled.shutdown.enable").is("true").idle(ONE_NODE)
        .says("Hand leadership to other brokers before the stop."),
    long("server.max.startup.time.ms").is("9223372036854775807").at_least(0).internal().idle(START)
        .says("How long the start may take."),
    boolean("unstable.api.versions.enable").is("false").high().internal()
        .says("Offer API versions that are still being worked on."),
    boolean("unstable.feature.versions.enable").is("false").high().internal().idle(UNSTABLE)
        .says("Allow feature versions that are still being worked on."),
    int("telemetry.max.bytes").is("1048576").at_least(1).low().idle(NO_TELEMETRY)
        .says("The most bytes of metrics that a client may push at one time."),
    list("metric.reporters").is("org.apache.kafka.common.metrics.JmxReporter").low().cluster_wide().idle(METRICS)
        .says("Classes that are given the broker's metrics."),
    int("metrics.num.samples").is("2").at_least(1).low().idle(METRICS)
        .says("Over how many samples a metric is computed."),
    long("metrics.sample.window.ms").is("30000").at_least(1).low().idle(METRICS)
        .says("Over how many milliseconds one sample of a metric is taken."),
    string("metrics.recording.level").is("INFO").low().idle(METRICS)
        .says("The lowest level of metrics that is recorded."),
    list("kafka.metrics.reporters").is("").low().idle(METRICS)
        .says("Classes that are given the broker's older metrics."),
    int("kafka.metrics.polling.interval.secs").is("10").at_least(1).low().idle(METRICS)
        .says("How often those classes are given them, in seconds."),
    list("config.providers").is("").low().cluster_wide().idle(PLUGIN)
        .says("Classes that look up the values of configs elsewhere."),
    int("quota.window.num").is("11").at_least(1).low()
        .says("How many samples a client quota is measured over."),
    int("quota.window.size.seconds").is("1").at_least(1).low()
        .says("How many seconds one such sample spans."),
    int("controller.quota.window.num").is("11").at_least(1).low()
        .says("How many samples the quota on topic changes is measured over."),
    int("controller.quota.window.size.seconds").is("1").at_least(1).low()
        .says("How many seconds one such sample spans."),
    class("client.quota.callback.class").low().idle(PLUGIN).says("A class that decides which quota a client has."),
];
