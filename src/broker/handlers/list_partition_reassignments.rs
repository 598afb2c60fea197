//! ListPartitionReassignments: with one node there is nowhere to move a partition to, so none is ever on its way.

use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::protocol::messages::list_partition_reassignments::{
    ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse,
};

pub(super) const HANDLER: Handler = serial!(ListPartitionReassignmentsRequest, handle);

async fn handle(
    _: Arc<Broker>,
    _: Context,
    _: ListPartitionReassignmentsRequest,
) -> ListPartitionReassignmentsResponse {
    ListPartitionReassignmentsResponse { error_message: None, ..Default::default() }
}
