//! What a topic's configuration says of its logs.

use crate::record::Codec;

/// The settings of one partition's log, under the names of the topic configs that they come from.
#[derive(Clone, Debug, PartialEq)]
pub struct LogConfig {
    /// `segment.bytes`: the most bytes of one segment, and so of one batch. At most `i32::MAX`.
    pub segment_bytes: u32,
    /// `segment.ms`: a segment is sealed once a batch is this much younger than the segment's first, in milliseconds.
    pub segment_ms: i64,
    /// `segment.jitter.ms`: up to this much is taken off `segment_ms`, anew for each segment, in milliseconds.
    pub segment_jitter_ms: i64,
    /// `segment.index.bytes`: the most bytes of each of a segment's indexes.
    pub segment_index_bytes: u32,
    /// `index.interval.bytes`: there is at most one index entry for this many bytes of log.
    pub index_interval_bytes: u32,
    /// `preallocate`: whether a new segment's file is made as long as it may become.
    pub preallocate: bool,
    /// `flush.messages`: an append after which this many records are not flushed has to be flushed before it is answered.
    pub flush_messages: i64,
    /// `flush.ms`: how long a record may stay unflushed, in milliseconds.
    pub flush_ms: i64,
    /// `retention.ms`: a sealed segment whose latest record is older than this may go, in milliseconds. -1: none does.
    pub retention_ms: i64,
    /// `retention.bytes`: the oldest sealed segments may go while this much is left without them. -1: none does.
    pub retention_bytes: i64,
    /// `cleanup.policy` has `delete`: `retention_ms` and `retention_bytes` count.
    pub delete: bool,
    /// `cleanup.policy` has `compact`: the log is cleaned.
    pub compact: bool,
    /// What cleaning compresses a batch with that it has to write anew: the codec that `compression.type` names, if it does.
    /// `None`: the codec that the batch has.
    pub compaction_codec: Option<Codec>,
    /// `max.message.bytes`: a batch that cleaning would make larger than this, and larger than it was, keeps its own codec.
    pub max_message_bytes: u32,
    /// `delete.retention.ms`: how long a tombstone stays after it was cleaned for the first time, in milliseconds.
    pub delete_retention_ms: i64,
    /// `min.cleanable.dirty.ratio`, 0 to 1: cleaning is due once more than this share of the bytes was never cleaned.
    pub min_cleanable_dirty_ratio: f64,
    /// `min.compaction.lag.ms`: younger segments are not cleaned, in milliseconds.
    pub min_compaction_lag_ms: i64,
    /// `max.compaction.lag.ms`: what is older is cleaned whatever the ratio, in milliseconds.
    pub max_compaction_lag_ms: i64,
    /// `producer.id.expiration.ms` of the broker: a producer that wrote nothing for so long is forgotten, in milliseconds.
    pub producer_id_expiration_ms: i64,
}

impl Default for LogConfig {
    /// Apache Kafka's defaults.
    fn default() -> Self {
        LogConfig {
            segment_bytes: 1 << 30,
            segment_ms: 7 * 24 * 60 * 60 * 1000,
            segment_jitter_ms: 0,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            preallocate: false,
            flush_messages: i64::MAX,
            flush_ms: i64::MAX,
            retention_ms: 7 * 24 * 60 * 60 * 1000,
            retention_bytes: -1,
            delete: true,
            compact: false,
            compaction_codec: Some(Codec::None),
            max_message_bytes: 1_048_588,
            delete_retention_ms: 24 * 60 * 60 * 1000,
            min_cleanable_dirty_ratio: 0.5,
            min_compaction_lag_ms: 0,
            max_compaction_lag_ms: i64::MAX,
            producer_id_expiration_ms: 24 * 60 * 60 * 1000,
        }
    }
}

impl LogConfig {
    /// For how long a segment may be written to, before jitter. What has to be cleaned by then has to be sealed by then.
    pub(in crate::storage) fn roll_ms(&self) -> i64 {
        if self.compact { self.segment_ms.min(self.max_compaction_lag_ms.max(0)) } else { self.segment_ms }
    }
}
