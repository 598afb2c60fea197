//! ListGroups: every group there is.
//!
//! - v4 filters by state (KIP-518), v5 by type (KIP-848); names are compared without regard to case.

use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::protocol::messages::list_groups::{ListGroupsRequest, ListGroupsResponse, ListedGroup};

pub(super) const HANDLER: Handler = serial!(ListGroupsRequest, handle);

async fn handle(broker: Arc<Broker>, _: Context, request: ListGroupsRequest) -> ListGroupsResponse {
    let (states, types) = (&request.states_filter, &request.types_filter);
    let groups = broker.groups().with(|coordinator, _| coordinator.list(states, types));
    // Kafka's hash tables show neighbouring names last to first.
    let groups = groups
        .into_iter()
        .rev()
        .map(|group| ListedGroup {
            group_id: group.group_id,
            protocol_type: group.protocol_type,
            group_state: group.state.into(),
            group_type: group.group_type.name().into(),
        })
        .collect();
    ListGroupsResponse { groups, ..Default::default() }
}
