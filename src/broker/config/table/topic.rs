//! Topic configs.

use crate::broker::config::Rule;
use crate::broker::config::def::differs::{CLEAN_AT_ONCE, KEEP, SHORT_RECOVERY};
use crate::broker::config::def::idle::{DELETE, ONE_LEVEL, ONE_REPLICA, REMOTE};
use crate::broker::config::def::{Def, boolean, double, int, list, long, string};

#[rustfmt::skip]
pub(super) const TABLE: &[Def] = &[
    list("cleanup.policy").is("delete").any_of(&["compact", "delete"]).broker("log.cleanup.policy")
        .says("What happens to old data: delete removes old segments, compact keeps the newest record of each key, \
            both do both, neither keeps everything."),
    int("compression.gzip.level").is("-1").rule(Rule::GzipLevel).broker("compression.gzip.level"),
    int("compression.lz4.level").is("9").between(1, 17).broker("compression.lz4.level").idle(ONE_LEVEL),
    string("compression.type").is("producer").one_of(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"])
        .broker("compression.type"),
    int("compression.zstd.level").is("3").between(-131_072, 22).broker("compression.zstd.level"),
    long("delete.retention.ms").is("86400000").at_least(0).broker("log.cleaner.delete.retention.ms"),
    long("file.delete.delay.ms").is("60000").at_least(0).broker("log.segment.delete.delay.ms").idle(DELETE),
    long("flush.messages").is("9223372036854775807").at_least(1).broker("log.flush.interval.messages"),
    long("flush.ms").is("9223372036854775807").at_least(0).broker("log.flush.interval.ms")
        .says("A partition is flushed to disk when a record has waited this many milliseconds for it."),
    list("follower.replication.throttled.replicas").is("").rule(Rule::Replicas).idle(ONE_REPLICA)
        .says("The replicas whose fetching is throttled, as PARTITION:BROKER separated by commas, or * for all."),
    int("index.interval.bytes").is("4096").at_least(0).broker("log.index.interval.bytes"),
    int("internal.segment.bytes").internal()
        .says("A segment size below the smallest that segment.bytes takes, for tests."),
    list("leader.replication.throttled.replicas").is("").rule(Rule::Replicas).idle(ONE_REPLICA)
        .says("The replicas whose leaders throttle them, as PARTITION:BROKER separated by commas, or * for all."),
    long("local.retention.bytes").is("-2").at_least(-2).broker("log.local.retention.bytes").idle(REMOTE)
        .says("How many bytes of a tiered partition stay on the local disk; -2 follows retention.bytes."),
    long("local.retention.ms").is("-2").at_least(-2).broker("log.local.retention.ms").idle(REMOTE)
        .says("How long tiered segments stay on the local disk; -2 follows retention.ms."),
    long("max.compaction.lag.ms").is("9223372036854775807").at_least(1).broker("log.cleaner.max.compaction.lag.ms"),
    int("max.message.bytes").is("1048588").at_least(0).broker("message.max.bytes"),
    long("message.timestamp.after.max.ms").is("3600000").at_least(0).broker("log.message.timestamp.after.max.ms"),
    long("message.timestamp.before.max.ms").is("9223372036854775807").at_least(0)
        .broker("log.message.timestamp.before.max.ms"),
    string("message.timestamp.type").is("CreateTime").one_of(&["CreateTime", "LogAppendTime"])
        .broker("log.message.timestamp.type"),
    double("min.cleanable.dirty.ratio").is("0.0").between(0, 1).broker("log.cleaner.min.cleanable.ratio")
        .kafka(Some("0.5"), CLEAN_AT_ONCE)
        .says("The log is cleaned when at least this share of its bytes has not been cleaned yet."),
    long("min.compaction.lag.ms").is("0").at_least(0).broker("log.cleaner.min.compaction.lag.ms"),
    int("min.insync.replicas").is("1").at_least(1).broker("min.insync.replicas").idle(ONE_REPLICA),
    boolean("preallocate").is("false").broker("log.preallocate"),
    boolean("remote.log.copy.disable").is("false").idle(REMOTE).says("Copy no more segments to the remote store."),
    boolean("remote.log.delete.on.disable").is("false").idle(REMOTE)
        .says("Delete the tiered segments when tiering is turned off."),
    boolean("remote.storage.enable").is("false").idle(REMOTE).says("Keep old segments in a remote store."),
    long("retention.bytes").is("-1").broker("log.retention.bytes"),
    long("retention.ms").is("-1").at_least(-1).broker("log.retention.ms").kafka(Some("604800000"), KEEP)
        .says("Segments whose newest record is older than this many milliseconds are deleted; -1 keeps them for ever."),
    int("segment.bytes").is("134217728").at_least(1_048_576).broker("log.segment.bytes")
        .kafka(Some("1073741824"), SHORT_RECOVERY),
    int("segment.index.bytes").is("10485760").at_least(4).broker("log.index.size.max.bytes"),
    long("segment.jitter.ms").is("0").at_least(0).broker("log.roll.jitter.ms")
        .says("Up to this many milliseconds, drawn at random, are taken off segment.ms so that partitions do not \
            all roll at once."),
    long("segment.ms").is("604800000").at_least(1).broker("log.roll.ms")
        .says("A segment is closed after this many milliseconds even when it is not full."),
    boolean("unclean.leader.election.enable").is("false").broker("unclean.leader.election.enable").idle(ONE_REPLICA),
];
