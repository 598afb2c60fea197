//! What a topic's settings ask of the batches that are produced to it, in the terms of the `record` layer.

use super::config::{CompressionType, TimestampType, TopicSettings};
use crate::record::{self, Codec, Rules};

/// The rules for one produce of request version `version` to `topic`-`partition` at `now_ms`.
pub fn produce_rules(settings: &TopicSettings, topic: &str, partition: i32, version: i16, now_ms: i64) -> Rules {
    Rules {
        topic_partition: format!("{topic}-{partition}").into(),
        max_message_bytes: usize::try_from(settings.max_message_bytes).unwrap_or(0),
        compacted: settings.cleanup_policy.compact,
        timestamp_type: match settings.message_timestamp_type {
            TimestampType::CreateTime => record::TimestampType::CreateTime,
            TimestampType::LogAppendTime => record::TimestampType::LogAppendTime,
        },
        timestamp_before_max_ms: settings.message_timestamp_before_max_ms,
        timestamp_after_max_ms: settings.message_timestamp_after_max_ms,
        now_ms,
        codec: topic_codec(settings),
        zstd_allowed: version >= 7,
    }
}

/// The codec that `compression.type` names; `None` leaves each batch as its producer made it.
pub fn topic_codec(settings: &TopicSettings) -> Option<Codec> {
    match settings.compression_type {
        CompressionType::Producer => None,
        CompressionType::Uncompressed => Some(Codec::None),
        CompressionType::Gzip => Some(Codec::Gzip { level: settings.compression_gzip_level }),
        CompressionType::Snappy => Some(Codec::Snappy),
        CompressionType::Lz4 => Some(Codec::Lz4),
        CompressionType::Zstd => Some(Codec::Zstd { level: settings.compression_zstd_level }),
    }
}
