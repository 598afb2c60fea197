//! DescribeCluster: this node.
//!
//! - v1 asks for brokers or for controllers (KIP-919); doze has no controller listener, so it answers as a broker does.
//! - v2 can include fenced brokers; there are none.

use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::{Broker, operations};
use crate::protocol::ErrorCode;
use crate::protocol::messages::describe_cluster::{
    DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse,
};

pub(super) const HANDLER: Handler = serial!(DescribeClusterRequest, handle);

const BROKERS: i8 = 1;

async fn handle(broker: Arc<Broker>, context: Context, request: DescribeClusterRequest) -> DescribeClusterResponse {
    if context.version >= 1 && request.endpoint_type != BROKERS {
        let (error, message) = match request.endpoint_type {
            2 => {
                let message =
                    "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER";
                (ErrorCode::MismatchedEndpointType, message.to_owned())
            }
            other => (ErrorCode::UnsupportedEndpointType, format!("Unsupported endpoint type {other}")),
        };
        return DescribeClusterResponse {
            error_code: error.code(),
            error_message: Some(message),
            ..Default::default()
        };
    }
    let (host, port) = broker.advertised(&context.client);
    let node =
        DescribeClusterBroker { broker_id: broker.node_id(), host, port, rack: broker.rack(), ..Default::default() };
    DescribeClusterResponse {
        cluster_id: broker.cluster_id(),
        controller_id: broker.node_id(),
        brokers: vec![node],
        cluster_authorized_operations: match request.include_cluster_authorized_operations {
            true => operations::CLUSTER,
            false => i32::MIN,
        },
        endpoint_type: BROKERS,
        ..Default::default()
    }
}
