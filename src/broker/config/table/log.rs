//! Broker configs about logs: segments, retention, cleaning, flushing, what is accepted into them.

use crate::broker::config::Rule;
use crate::broker::config::def::differs::{CLEAN_AT_ONCE, HERE, KEEP, SHORT_RECOVERY, SMALL};
use crate::broker::config::def::idle::{
    CHECKPOINT, DELETE, KRAFT, LAZY, ONE_DIR, ONE_LEVEL, ONE_NODE, ONE_REPLICA, PLUGIN, SWEEP,
};
use crate::broker::config::def::{Def, boolean, class, double, int, list, long, string};

/// Keys that say the same thing in different units; the first that is set counts.
const ROLL: &[&str] = &["log.roll.ms", "log.roll.hours"];
const JITTER: &[&str] = &["log.roll.jitter.ms", "log.roll.jitter.hours"];
const RETENTION: &[&str] = &["log.retention.ms", "log.retention.minutes", "log.retention.hours"];
const FLUSH: &[&str] = &["log.flush.interval.ms", "log.flush.scheduler.interval.ms"];

#[rustfmt::skip]
pub(super) const TABLE: &[Def] = &[
    int("log.segment.bytes").is("134217728").at_least(1_048_576).high().cluster_wide()
        .kafka(Some("1073741824"), SHORT_RECOVERY)
        .says("A segment is closed and a new one begun when the next batch would take it past this many bytes."),
    long("log.roll.ms").high().cluster_wide().chain(ROLL)
        .says("A segment is closed after this many milliseconds even when it is not full. Takes precedence over \
            log.roll.hours."),
    int("log.roll.hours").is("168").at_least(1).high().chain(ROLL).says("As log.roll.ms, in hours."),
    long("log.roll.jitter.ms").high().cluster_wide().chain(JITTER)
        .says("Up to this many milliseconds, drawn at random, are taken off the roll time so that partitions do not \
            all roll at once. Takes precedence over log.roll.jitter.hours."),
    int("log.roll.jitter.hours").is("0").at_least(0).high().chain(JITTER).says("As log.roll.jitter.ms, in hours."),
    long("log.retention.ms").high().cluster_wide().chain(RETENTION)
        .says("Segments whose newest record is older than this many milliseconds are deleted; -1 keeps them for \
            ever. Takes precedence over log.retention.minutes and log.retention.hours."),
    int("log.retention.minutes").high().chain(RETENTION)
        .says("As log.retention.ms, in minutes. Takes precedence over log.retention.hours."),
    int("log.retention.hours").is("-1").high().chain(RETENTION).kafka(Some("168"), KEEP)
        .says("As log.retention.ms, in hours."),
    long("log.retention.bytes").is("-1").high().cluster_wide()
        .says("The oldest segments of a partition are deleted while it is larger than this many bytes; -1 is no \
            limit."),
    long("log.retention.check.interval.ms").is("300000").at_least(1).idle(SWEEP)
        .says("How often to look for segments that retention may delete."),
    list("log.cleanup.policy").is("delete").any_of(&["compact", "delete"]).cluster_wide()
        .says("What happens to old data: delete removes old segments, compact keeps the newest record of each key, \
            both do both."),
    int("log.index.size.max.bytes").is("10485760").at_least(4).cluster_wide()
        .says("The most bytes an offset or time index of one segment may take; the segment rolls when its index is \
            full."),
    int("log.index.interval.bytes").is("4096").at_least(0).cluster_wide()
        .says("An index entry is written each time about this many bytes of records have been added to the log."),
    long("log.flush.interval.messages").is("9223372036854775807").at_least(1).high().cluster_wide()
        .says("A partition is flushed to disk when it has this many records that are not flushed yet."),
    long("log.flush.interval.ms").high().cluster_wide().chain(FLUSH)
        .says("A partition is flushed to disk when a record has waited this many milliseconds for it. Unset, \
            log.flush.scheduler.interval.ms applies."),
    long("log.flush.scheduler.interval.ms").is("9223372036854775807").high()
        .says("The value of log.flush.interval.ms where that is not set."),
    int("log.flush.offset.checkpoint.interval.ms").is("60000").at_least(0).high().idle(CHECKPOINT)
        .says("How often to note down how far each log is known to be flushed."),
    int("log.flush.start.offset.checkpoint.interval.ms").is("60000").at_least(0).high().idle(CHECKPOINT)
        .says("How often to note down where each log starts."),
    boolean("log.preallocate").is("false").cluster_wide()
        .says("Reserve the whole size of a segment on disk when it is created."),
    long("log.segment.delete.delay.ms").is("60000").at_least(0).high().cluster_wide().idle(DELETE)
        .says("How long a removed segment's files stay on disk."),
    boolean("log.cleaner.enable").is("true").says("Run the cleaner, which compacts topics that ask for it."),
    int("log.cleaner.threads").is("1").at_least(0).cluster_wide().says("How many logs are compacted at once."),
    double("log.cleaner.io.max.bytes.per.second").is("1.7976931348623157E308").cluster_wide()
        .says("The most bytes a second that the cleaner reads and writes, taken together."),
    long("log.cleaner.dedupe.buffer.size").is("58720256").cluster_wide().kafka(Some("134217728"), SMALL)
        .says("Bytes of memory for the cleaner's map of keys, over all its threads."),
    int("log.cleaner.io.buffer.size").is("524288").at_least(0).cluster_wide()
        .says("Bytes of memory for the cleaner's read and write buffers, over all its threads."),
    double("log.cleaner.io.buffer.load.factor").is("0.9").cluster_wide()
        .says("How full the cleaner's map of keys may get before a pass ends."),
    long("log.cleaner.backoff.ms").is("1000").at_least(0).cluster_wide().kafka(Some("15000"), CLEAN_AT_ONCE)
        .says("How long the cleaner sleeps when it finds nothing to clean."),
    double("log.cleaner.min.cleanable.ratio").is("0.0").between(0, 1).cluster_wide().kafka(Some("0.5"), CLEAN_AT_ONCE)
        .says("A compacted log is cleaned when at least this share of its bytes has not been cleaned yet."),
    long("log.cleaner.delete.retention.ms").is("86400000").at_least(0).cluster_wide()
        .says("How long the marker of a deleted key stays readable after its segment has been cleaned, in \
            milliseconds."),
    long("log.cleaner.min.compaction.lag.ms").is("0").at_least(0).cluster_wide()
        .says("A record stays uncompacted for at least this many milliseconds."),
    long("log.cleaner.max.compaction.lag.ms").is("9223372036854775807").at_least(1).cluster_wide()
        .says("A record becomes eligible for compaction after at most this many milliseconds."),
    string("log.message.timestamp.type").is("CreateTime").one_of(&["CreateTime", "LogAppendTime"]).cluster_wide()
        .says("Whether records carry the time of the producer (CreateTime) or that of the append (LogAppendTime)."),
    long("log.message.timestamp.before.max.ms").is("9223372036854775807").at_least(0).cluster_wide()
        .says("Records whose timestamp lies further than this many milliseconds in the past are refused. Applies to \
            CreateTime."),
    long("log.message.timestamp.after.max.ms").is("3600000").at_least(0).cluster_wide()
        .says("Records whose timestamp lies further than this many milliseconds in the future are refused. Applies \
            to CreateTime."),
    list("log.dir").is("./data").some_of(&[]).high().kafka(Some("/tmp/kafka-logs"), HERE)
        .says("The data directory. doze takes it from --data-dir; used where log.dirs is not set."),
    list("log.dirs").some_of(&[]).high().says("The data directory, one and no more. The same setting as --data-dir."),
    long("log.dir.failure.timeout.ms").is("30000").at_least(1).low().idle(ONE_NODE)
        .says("How long a broker waits for the controller to hear of a failed directory before it stops."),
    long("log.initial.task.delay.ms").is("30000").at_least(0).low().internal().idle(SWEEP)
        .says("How long after the start the background work on logs begins."),
    list("cordoned.log.dirs").is("").per_broker().idle(ONE_DIR).says("Directories that are given no new partitions."),
    int("num.recovery.threads.per.data.dir").is("2").at_least(1).high().cluster_wide().idle(LAZY)
        .says("How many threads load logs at the start and flush them at the stop."),
    string("metadata.log.dir").high().idle(KRAFT).says("Where the metadata log is kept."),
    int("message.max.bytes").is("1048588").at_least(0).high().cluster_wide()
        .says("The largest batch that is accepted, in bytes, as the producer compressed it."),
    string("compression.type").is("producer").one_of(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"])
        .high().cluster_wide().says("The codec that batches are stored in; producer keeps each as it came."),
    int("compression.gzip.level").is("-1").rule(Rule::GzipLevel).cluster_wide()
        .says("The level used where a batch is compressed with gzip; -1 leaves it to the codec."),
    int("compression.lz4.level").is("9").between(1, 17).cluster_wide().idle(ONE_LEVEL)
        .says("The level used where a batch is compressed with lz4."),
    int("compression.zstd.level").is("3").between(-131_072, 22).cluster_wide()
        .says("The level used where a batch is compressed with zstd."),
    boolean("auto.create.topics.enable").is("true").high()
        .says("Create a topic when a client asks for the metadata of one that does not exist, or produces to it."),
    boolean("delete.topic.enable").is("true").high().says("Allow topics to be deleted."),
    int("num.partitions").is("1").at_least(1).says("How many partitions a topic gets when its creator does not say."),
    int("default.replication.factor").is("1").idle(ONE_REPLICA)
        .says("The replication factor of topics whose creator does not say. One node can hold one replica."),
    int("min.insync.replicas").is("1").at_least(1).high().cluster_wide().idle(ONE_REPLICA)
        .says("How many replicas must have a record before acks=all is answered."),
    boolean("unclean.leader.election.enable").is("false").high().cluster_wide().idle(ONE_REPLICA)
        .says("Let a replica that is behind become the leader when no other is left."),
    long("unclean.leader.election.interval.ms").is("300000").at_least(1).internal().idle(ONE_REPLICA)
        .says("How often to look for partitions that need such a leader."),
    class("create.topic.policy.class.name").low().idle(PLUGIN).says("A class that may refuse the creation of a topic."),
    class("alter.config.policy.class.name").low().idle(PLUGIN).says("A class that may refuse a change of configs."),
];
