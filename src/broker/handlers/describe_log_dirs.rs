//! DescribeLogDirs: the data directory, with the size of every partition.
//!
//! - A partition whose log is offline has the directory say KAFKA_STORAGE_ERROR, as Kafka says it of a directory that has failed; here the
//!   others go on, and every partition is listed.
//! - v4 adds the size of the disk and what is free of it (KIP-827), v5 whether the directory is cordoned, which it never is.

use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::protocol::ErrorCode;
use crate::protocol::messages::describe_log_dirs::{
    DescribeLogDirsPartition, DescribeLogDirsRequest, DescribeLogDirsResponse, DescribeLogDirsResult,
    DescribeLogDirsTopic,
};

pub(super) const HANDLER: Handler = serial!(DescribeLogDirsRequest, handle);

async fn handle(broker: Arc<Broker>, _: Context, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse {
    let this = broker.clone();
    // Partitions that are not open are measured by their files.
    match broker.blocking(move || describe(&this, request)).await {
        Ok(result) => DescribeLogDirsResponse { results: vec![result], ..Default::default() },
        Err(error) => DescribeLogDirsResponse { error_code: error.code(), ..Default::default() },
    }
}

fn describe(broker: &Broker, request: DescribeLogDirsRequest) -> DescribeLogDirsResult {
    let topics = broker.topics();
    let asked: Vec<(String, Vec<i32>)> = match request.topics {
        None => topics.iter().map(|topic| (topic.name.to_string(), (0..topic.partitions).collect())).collect(),
        Some(asked) => asked.into_iter().map(|topic| (topic.topic, topic.partitions)).collect(),
    };
    let mut result =
        DescribeLogDirsResult { log_dir: broker.store().data_dir().display().to_string(), ..Default::default() };
    for (name, partitions) in asked {
        let Some(topic) = topics.by_name(&name) else { continue };
        let mut described = vec![];
        for partition_index in partitions.into_iter().filter(|index| (0..topic.partitions).contains(index)) {
            if broker.is_offline(topic.id, partition_index) {
                result.error_code = ErrorCode::KafkaStorageError.code();
            }
            match broker.store().partition_size(topic.id, partition_index) {
                Ok(bytes) => described.push(DescribeLogDirsPartition {
                    partition_index,
                    partition_size: i64::try_from(bytes).unwrap_or(i64::MAX),
                    ..Default::default()
                }),
                Err(error) => {
                    tracing::error!(topic = name, partition = partition_index, "cannot measure the partition: {error}");
                    result.error_code = ErrorCode::KafkaStorageError.code();
                }
            }
        }
        if !described.is_empty() {
            result.topics.push(DescribeLogDirsTopic { name, partitions: described });
        }
    }
    if let Ok(space) = broker.store().disk_space() {
        result.total_bytes = i64::try_from(space.total).unwrap_or(i64::MAX);
        result.usable_bytes = i64::try_from(space.available).unwrap_or(i64::MAX);
    }
    result
}
