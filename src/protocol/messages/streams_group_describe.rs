//! StreamsGroupDescribe (key 89).

use crate::protocol::message::message;

message! {
    StreamsGroupDescribeRequest {
        group_ids: Vec<String>;
        include_authorized_operations: bool;
    }

    StreamsGroupDescribeResponse {
        throttle_time_ms: i32;
        groups: Vec<DescribedGroup>;
    }

    DescribedGroup {
        error_code: i16;
        error_message: Option<String>, null ..;
        group_id: String;
        group_state: String;
        group_epoch: i32;
        assignment_epoch: i32;
        topology: Option<Topology>, null ..;
        members: Vec<Member>;
        authorized_operations: i32, default i32::MIN;
    }

    Topology {
        epoch: i32;
        subtopologies: Option<Vec<Subtopology>>, null ..;
    }

    Subtopology {
        subtopology_id: String;
        source_topics: Vec<String>;
        repartition_sink_topics: Vec<String>;
        state_changelog_topics: Vec<TopicInfo>;
        repartition_source_topics: Vec<TopicInfo>;
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

    Member {
        member_id: String;
        member_epoch: i32;
        instance_id: Option<String>, null ..;
        rack_id: Option<String>, null ..;
        client_id: String;
        client_host: String;
        topology_epoch: i32;
        process_id: String;
        user_endpoint: Option<Endpoint>, null ..;
        client_tags: Vec<KeyValue>;
        task_offsets: Vec<TaskOffset>;
        task_end_offsets: Vec<TaskOffset>;
        assignment: Assignment;
        target_assignment: Assignment;
        is_classic: bool;
    }

    Endpoint {
        host: String;
        port: u16;
    }

    TaskOffset {
        subtopology_id: String;
        partition: i32;
        offset: i64;
    }

    Assignment {
        active_tasks: Vec<TaskIds>;
        standby_tasks: Vec<TaskIds>;
        warmup_tasks: Vec<TaskIds>;
    }

    TaskIds {
        subtopology_id: String;
        partitions: Vec<i32>;
    }
}
