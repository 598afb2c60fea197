//! AlterReplicaLogDirs: there is one data directory, and what is in it stays there.
//!
//! The answer names each partition once, as Apache Kafka's does; of several directories for it the last one counts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::protocol::ErrorCode;
use crate::protocol::messages::alter_replica_log_dirs::{
    AlterReplicaLogDirPartitionResult, AlterReplicaLogDirTopicResult, AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
};

pub(super) const HANDLER: Handler = serial!(AlterReplicaLogDirsRequest, handle);

async fn handle(broker: Arc<Broker>, _: Context, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse {
    let topics = broker.topics();
    let mut errors: BTreeMap<String, BTreeMap<i32, ErrorCode>> = BTreeMap::new();
    for dir in request.dirs {
        let known = Path::new(&dir.path).as_os_str() == broker.store().data_dir().as_os_str();
        for topic in dir.topics {
            let partitions = topics.by_name(&topic.name).map_or(0, |topic| topic.partitions);
            let of_topic = errors.entry(topic.name).or_default();
            for partition in topic.partitions {
                let error = match () {
                    () if !known => ErrorCode::LogDirNotFound,
                    () if !(0..partitions).contains(&partition) => ErrorCode::UnknownTopicOrPartition,
                    () => ErrorCode::None,
                };
                of_topic.insert(partition, error);
            }
        }
    }
    let result = |(partition_index, error): (i32, ErrorCode)| AlterReplicaLogDirPartitionResult {
        partition_index,
        error_code: error.code(),
    };
    let results = errors.into_iter().map(|(topic_name, partitions)| AlterReplicaLogDirTopicResult {
        topic_name,
        partitions: partitions.into_iter().map(result).collect(),
    });
    AlterReplicaLogDirsResponse { results: results.collect(), ..Default::default() }
}
