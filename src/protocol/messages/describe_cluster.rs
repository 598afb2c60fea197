//! DescribeCluster (key 60).

use crate::protocol::message::message;

message! {
    DescribeClusterRequest {
        include_cluster_authorized_operations: bool;
        endpoint_type: i8, in 1.., default 1;
        include_fenced_brokers: bool, in 2..;
    }

    DescribeClusterResponse {
        throttle_time_ms: i32;
        error_code: i16;
        error_message: Option<String>, null ..;
        endpoint_type: i8, in 1.., default 1;
        cluster_id: String;
        controller_id: i32, default -1;
        brokers: Vec<DescribeClusterBroker>;
        cluster_authorized_operations: i32, default i32::MIN;
    }

    DescribeClusterBroker {
        broker_id: i32;
        host: String;
        port: i32;
        rack: Option<String>, null ..;
        is_fenced: bool, in 2..;
    }
}
