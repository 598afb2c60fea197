//! DeleteGroups: groups without members go, with their committed offsets and what became of the records of share groups.

use std::collections::HashSet;
use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::{Broker, groups};
use crate::coordinator::{GroupCoordinator, GroupType, Reply};
use crate::protocol::ErrorCode;
use crate::protocol::messages::delete_groups::{DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse};

pub(super) const HANDLER: Handler = serial!(DeleteGroupsRequest, handle);

async fn handle(broker: Arc<Broker>, _: Context, request: DeleteGroupsRequest) -> DeleteGroupsResponse {
    let mut results = Vec::with_capacity(request.groups_names.len());
    let mut seen = HashSet::new();
    for group_id in request.groups_names {
        // One that is named twice is deleted and answered once.
        if !seen.insert(group_id.clone()) {
            continue;
        }
        let delete = broker.groups().ask(|coordinator, now, token| coordinator.delete_group(now, token, &group_id));
        let is_idle_share_group = |coordinator: &mut GroupCoordinator, _| {
            coordinator.group_type(&group_id) == Some(GroupType::Share)
                && coordinator.may_change_share_offsets(&group_id).is_ok()
        };
        let reply = match broker.groups().with(is_idle_share_group) {
            true => broker.shares().exclusively(&group_id, |_| true, delete).await,
            false => delete.await,
        };
        let error_code = match reply {
            Some(Reply::DeleteGroup(outcome)) => groups::outcome_code(outcome),
            _ => ErrorCode::CoordinatorNotAvailable.code(),
        };
        results.push(DeletableGroupResult { group_id, error_code });
    }
    DeleteGroupsResponse { results, ..Default::default() }
}
