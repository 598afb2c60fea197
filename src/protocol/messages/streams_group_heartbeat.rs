//! StreamsGroupHeartbeat (key 88).

use crate::protocol::message::message;

message! {
    StreamsGroupHeartbeatRequest {
        group_id: String;
        member_id: String;
        member_epoch: i32;
        endpoint_information_epoch: i32;
        instance_id: Option<String>, null ..;
        rack_id: Option<String>, null ..;
        rebalance_timeout_ms: i32, default -1;
        topology: Option<Topology>, null ..;
        active_tasks: Option<Vec<RequestTaskIds>>, null ..;
        standby_tasks: Option<Vec<RequestTaskIds>>, null ..;
        warmup_tasks: Option<Vec<RequestTaskIds>>, null ..;
        process_id: Option<String>, null ..;
        user_endpoint: Option<RequestEndpoint>, null ..;
        client_tags: Option<Vec<KeyValue>>, null ..;
        task_offsets: Option<Vec<TaskOffset>>, null ..;
        task_end_offsets: Option<Vec<TaskOffset>>, null ..;
        shutdown_application: bool;
    }

    Topology {
        epoch: i32;
        subtopologies: Vec<Subtopology>;
    }

    Subtopology {
        subtopology_id: String;
        source_topics: Vec<String>;
        source_topic_regex: Vec<String>;
        state_changelog_topics: Vec<TopicInfo>;
        repartition_sink_topics: Vec<String>;
        repartition_source_topics: Vec<TopicInfo>;
        copartition_groups: Vec<CopartitionGroup>;
    }

    TopicInfo {
        name: String;
        partitions: i32;
        replication_factor: i16;
        topic_configs: Vec<KeyValue>;
    }

    KeyValue {
        key: String;
        value: String;
    }

    CopartitionGroup {
        source_topics: Vec<i16>;
        source_topic_regex: Vec<i16>;
        repartition_source_topics: Vec<i16>;
    }

    RequestTaskIds {
        subtopology_id: String;
        partitions: Vec<i32>;
    }

    RequestEndpoint {
        host: String;
        port: u16;
    }

    TaskOffset {
        subtopology_id: String;
        partition: i32;
        offset: i64;
    }

    StreamsGroupHeartbeatResponse {
        throttle_time_ms: i32;
        error_code: i16;
        error_message: Option<String>, null ..;
        member_id: String;
        member_epoch: i32;
        heartbeat_interval_ms: i32;
        acceptable_recovery_lag: i32;
        task_offset_interval_ms: i32;
        status: Option<Vec<Status>>, null .., default Some(vec![]);
        active_tasks: Option<Vec<ResponseTaskIds>>, null ..;
        standby_tasks: Option<Vec<ResponseTaskIds>>, null ..;
        warmup_tasks: Option<Vec<ResponseTaskIds>>, null ..;
        endpoint_information_epoch: i32;
        partitions_by_user_endpoint: Option<Vec<EndpointToPartitions>>, null ..;
    }

    Status {
        status_code: i8;
        status_detail: String;
    }

    ResponseTaskIds {
        subtopology_id: String;
        partitions: Vec<i32>;
    }

    EndpointToPartitions {
        user_endpoint: ResponseEndpoint;
        active_partitions: Vec<TopicPartition>;
        standby_partitions: Vec<TopicPartition>;
    }

    ResponseEndpoint {
        host: String;
        port: u16;
    }

    TopicPartition {
        topic: String;
        partitions: Vec<i32>;
    }
}
