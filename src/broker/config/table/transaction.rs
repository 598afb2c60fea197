//! Broker configs about transactions and producer ids.

use crate::broker::config::def::idle::{CATALOG, ONE_NODE};
use crate::broker::config::def::{Def, boolean, int, short};

#[rustfmt::skip]
pub(super) const TABLE: &[Def] = &[
    int("transaction.max.timeout.ms").is("900000").at_least(1).high()
        .says("The longest timeout that a transactional producer may ask for."),
    int("transactional.id.expiration.ms").is("604800000").at_least(1).high()
        .says("A transactional id that has not been used for this many milliseconds is forgotten."),
    int("transaction.abort.timed.out.transaction.cleanup.interval.ms").is("10000").at_least(1).low()
        .says("How often to look for transactions that have timed out and must be aborted."),
    int("transaction.remove.expired.transaction.cleanup.interval.ms").is("3600000").at_least(1).low()
        .says("How often to look for transactional ids that have expired."),
    boolean("transaction.partition.verification.enable").is("true").low().cluster_wide()
        .says("Check that a partition was added to the transaction before records of the transaction are appended \
            to it."),
    boolean("transaction.two.phase.commit.enable").is("false").low()
        .says("Let producers take part in an external two-phase commit, with no timeout of their own."),
    int("transaction.state.log.num.partitions").is("50").at_least(1).high()
        .says("How many partitions the topic of transaction states has."),
    short("transaction.state.log.replication.factor").is("3").at_least(1).high().idle(CATALOG)
        .says("The replication factor of the topic of transaction states."),
    int("transaction.state.log.min.isr").is("2").at_least(1).high().idle(CATALOG)
        .says("How many replicas of the topic of transaction states must have a record."),
    int("transaction.state.log.segment.bytes").is("104857600").at_least(1).high().idle(CATALOG)
        .says("The segment size of the topic of transaction states."),
    int("transaction.state.log.load.buffer.size").is("5242880").at_least(1).high().idle(CATALOG)
        .says("How many bytes of the topic of transaction states are read at a time at the start."),
    int("add.partitions.to.txn.retry.backoff.ms").is("20").at_least(1).high().idle(ONE_NODE)
        .says("How long the broker waits before it asks the transaction coordinator again."),
    int("add.partitions.to.txn.retry.backoff.max.ms").is("100").at_least(0).high()
        .says("How long the first records of a transaction wait on the broker for the end of the transaction before to be \
            written."),
    int("producer.id.expiration.ms").is("86400000").at_least(1).low().cluster_wide()
        .says("The state of a producer that has written nothing for this many milliseconds is forgotten."),
    int("producer.id.expiration.check.interval.ms").is("600000").at_least(1).low().internal()
        .says("How often to look for producers whose state has expired."),
];
