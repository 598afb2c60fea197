//! What is in force for one topic.

use super::Overrides;
use super::broker::BrokerConfig;
use super::checks;
use super::error::ConfigError;
use super::table::TOPIC;
use super::value::Value;

/// What happens to old data. Neither keeps everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanupPolicy {
    pub delete: bool,
    pub compact: bool,
}

/// The codec that a topic's batches are stored in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressionType {
    /// Each as it came.
    Producer,
    Uncompressed,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

/// Whose time records carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampType {
    CreateTime,
    LogAppendTime,
}

/// What is in force for one topic: its own configs over the broker's. Units are in the names; `-1` is no limit and
/// `i64::MAX` is never, as in Kafka.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicSettings {
    pub cleanup_policy: CleanupPolicy,
    pub compression_type: CompressionType,
    /// 1 to 9, or -1 for the codec's default.
    pub compression_gzip_level: i32,
    /// 1 to 17.
    pub compression_lz4_level: i32,
    /// -131072 to 22.
    pub compression_zstd_level: i32,
    pub delete_retention_ms: i64,
    pub file_delete_delay_ms: i64,
    /// At least 1.
    pub flush_messages: i64,
    pub flush_ms: i64,
    pub index_interval_bytes: i32,
    pub max_compaction_lag_ms: i64,
    pub max_message_bytes: i32,
    pub message_timestamp_after_max_ms: i64,
    pub message_timestamp_before_max_ms: i64,
    pub message_timestamp_type: TimestampType,
    /// 0 to 1.
    pub min_cleanable_dirty_ratio: f64,
    pub min_compaction_lag_ms: i64,
    pub min_insync_replicas: i32,
    pub preallocate: bool,
    /// Negative is no limit.
    pub retention_bytes: i64,
    pub retention_ms: i64,
    /// At least 1 MiB, but for topics with `internal.segment.bytes`, a key for tests.
    pub segment_bytes: i32,
    pub segment_index_bytes: i32,
    pub segment_jitter_ms: i64,
    pub segment_ms: i64,
}

impl TopicSettings {
    /// Puts `overrides`, a topic's own configs, over the broker's. Fails at a key that is not in the table, a bad
    /// value, and values that do not go together: the check for CreateTopics, too.
    pub fn new(broker: &BrokerConfig, overrides: &Overrides) -> Result<TopicSettings, ConfigError> {
        for (name, text) in overrides {
            check_one(name, text)?;
        }
        let settings = TopicSettings::read(broker, overrides)?;
        let remote = effective(broker, overrides, "remote.storage.enable")? == Some(Value::Boolean(true));
        checks::topic(&settings, remote)?;
        Ok(settings)
    }

    /// What is in force of configs that were accepted once. The broker's may have changed since, or this doze may be older
    /// than the one that accepted them: what cannot be read does not count and is handed back, and values that do not go
    /// together with the broker's count all the same, as in Kafka.
    pub fn stored(broker: &BrokerConfig, overrides: &Overrides) -> (TopicSettings, Vec<ConfigError>) {
        let (readable, errors) = super::readable(overrides, check_one);
        (TopicSettings::read(broker, &readable).expect("every one of these values has been read before"), errors)
    }

    fn read(broker: &BrokerConfig, overrides: &Overrides) -> Result<TopicSettings, ConfigError> {
        let values = Values { broker, overrides };
        let policy = values.list("cleanup.policy")?;
        let has = |word: &str| policy.iter().any(|item| item == word);
        Ok(TopicSettings {
            cleanup_policy: CleanupPolicy { delete: has("delete"), compact: has("compact") },
            compression_type: match values.text("compression.type")?.as_str() {
                "uncompressed" => CompressionType::Uncompressed,
                "gzip" => CompressionType::Gzip,
                "snappy" => CompressionType::Snappy,
                "lz4" => CompressionType::Lz4,
                "zstd" => CompressionType::Zstd,
                _ => CompressionType::Producer,
            },
            compression_gzip_level: values.int("compression.gzip.level")?,
            compression_lz4_level: values.int("compression.lz4.level")?,
            compression_zstd_level: values.int("compression.zstd.level")?,
            delete_retention_ms: values.long("delete.retention.ms")?,
            file_delete_delay_ms: values.long("file.delete.delay.ms")?,
            flush_messages: values.long("flush.messages")?,
            flush_ms: values.long("flush.ms")?,
            index_interval_bytes: values.int("index.interval.bytes")?,
            max_compaction_lag_ms: values.long("max.compaction.lag.ms")?,
            max_message_bytes: values.int("max.message.bytes")?,
            message_timestamp_after_max_ms: values.long("message.timestamp.after.max.ms")?,
            message_timestamp_before_max_ms: values.long("message.timestamp.before.max.ms")?,
            message_timestamp_type: match values.text("message.timestamp.type")?.as_str() {
                "LogAppendTime" => TimestampType::LogAppendTime,
                _ => TimestampType::CreateTime,
            },
            min_cleanable_dirty_ratio: match values.get("min.cleanable.dirty.ratio")? {
                Some(Value::Double(ratio)) => ratio,
                _ => 0.0,
            },
            min_compaction_lag_ms: values.long("min.compaction.lag.ms")?,
            min_insync_replicas: values.int("min.insync.replicas")?,
            preallocate: values.get("preallocate")? == Some(Value::Boolean(true)),
            retention_bytes: values.long("retention.bytes")?,
            retention_ms: values.long("retention.ms")?,
            segment_bytes: match values.get("internal.segment.bytes")? {
                Some(Value::Int(bytes)) => bytes,
                _ => values.int("segment.bytes")?,
            },
            segment_index_bytes: values.int("segment.index.bytes")?,
            segment_jitter_ms: values.long("segment.jitter.ms")?,
            segment_ms: values.long("segment.ms")?,
        })
    }
}

/// Whether `text` is a value that `name` takes.
fn check_one(name: &str, text: &str) -> Result<(), ConfigError> {
    match TOPIC.get(name) {
        Some(def) => def.parse(text).map(drop),
        None => Err(ConfigError::UnknownTopicConfig { name: name.to_owned() }),
    }
}

/// The value that is in force for one key of a topic; `None` is null.
pub(super) fn effective(
    broker: &BrokerConfig,
    overrides: &Overrides,
    name: &str,
) -> Result<Option<Value>, ConfigError> {
    Values { broker, overrides }.get(name)
}

struct Values<'a> {
    broker: &'a BrokerConfig,
    overrides: &'a Overrides,
}

impl Values<'_> {
    fn get(&self, name: &str) -> Result<Option<Value>, ConfigError> {
        let Some(def) = TOPIC.get(name) else {
            return Err(ConfigError::UnknownTopicConfig { name: name.to_owned() });
        };
        if let Some(text) = self.overrides.get(name) {
            return def.parse(text).map(Some);
        }
        Ok(match def.broker.and_then(|key| self.broker.first_of(key)) {
            Some((key, value)) => Some(in_millis(name, key, value)),
            None => def.default_value(),
        })
    }

    fn int(&self, name: &str) -> Result<i32, ConfigError> {
        match self.get(name)? {
            Some(Value::Int(n)) => Ok(n),
            other => panic!("{name} was read as an int, and is {other:?}"),
        }
    }

    fn long(&self, name: &str) -> Result<i64, ConfigError> {
        match self.get(name)? {
            Some(Value::Long(n)) => Ok(n),
            other => panic!("{name} was read as a long, and is {other:?}"),
        }
    }

    fn text(&self, name: &str) -> Result<String, ConfigError> {
        match self.get(name)? {
            Some(Value::Text(text)) => Ok(text),
            other => panic!("{name} was read as text, and is {other:?}"),
        }
    }

    fn list(&self, name: &str) -> Result<Vec<String>, ConfigError> {
        match self.get(name)? {
            Some(Value::List(items)) => Ok(items),
            other => panic!("{name} was read as a list, and is {other:?}"),
        }
    }
}

/// A broker's value as its topics have it: hours and minutes in milliseconds, and one unlimited time for all.
fn in_millis(name: &str, key: &str, value: &Value) -> Value {
    let unit = match key.rsplit_once('.') {
        Some((_, "hours")) => 3_600_000,
        Some((_, "minutes")) => 60_000,
        _ => 1,
    };
    match value {
        Value::Int(n) if unit > 1 => whole_or_unlimited(name, i64::from(*n) * unit),
        Value::Long(n) => whole_or_unlimited(name, *n),
        other => other.clone(),
    }
}

fn whole_or_unlimited(name: &str, millis: i64) -> Value {
    Value::Long(if name == "retention.ms" { millis.max(-1) } else { millis })
}
