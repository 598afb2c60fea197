//! Requests of the streams group protocol.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::api::{Actions, ConsumerRefused, Now, Reply, Token};
use super::error::Error;
use super::group::Group;
use super::groups::GroupCoordinator;
use super::streams::{DescribedStreamsGroup, StreamsGroup, StreamsHeartbeatRequest, check_request};

impl GroupCoordinator {
    /// StreamsGroupHeartbeat. Answered with [`Reply::StreamsHeartbeat`], when what it says is durable.
    pub fn streams_heartbeat(&mut self, now: Now, token: Token, request: StreamsHeartbeatRequest) -> Actions {
        let mut actions = Actions::new();
        let id: Arc<str> = request.group_id.as_str().into();
        let (mut context, groups, _) = self.split(now, &mut actions);
        let ready = check_request(&request).and_then(|()| ready_group(groups, &id, request.member_epoch));
        match (ready, groups.get_mut(&id)) {
            (Ok(before), Some(Group::Streams(group))) => {
                let taken = group.heartbeat(&mut context, token, request);
                match before {
                    Some(before) if taken => before.cancel_timers(&mut context),
                    // Nobody came in, so that the group is what it was.
                    Some(before) => drop(groups.insert(id.clone(), before)),
                    None => {}
                }
                self.forget_if_blank(&id);
            }
            (Ok(_), _) => context.reply(token, Reply::StreamsHeartbeat(Err(unknown(&id)))),
            (Err(refused), _) => context.reply(token, Reply::StreamsHeartbeat(Err(refused))),
        }
        actions
    }

    /// StreamsGroupDescribe, for one group.
    pub fn describe_streams(&self, group_id: &str) -> Result<DescribedStreamsGroup, ConsumerRefused> {
        if group_id.is_empty() {
            return Err(ConsumerRefused { error: Error::InvalidGroupId, message: String::new() });
        }
        let described = self.groups.get_key_value(group_id).and_then(|(id, group)| {
            group.look(id, |group| match group {
                Group::Streams(group) => Some(group.describe(&self.topics)),
                _ => None,
            })
        });
        match described {
            Some(Some(described)) => Ok(described),
            Some(None) => Err(of_another_kind(group_id)),
            None => Err(unknown(group_id)),
        }
    }
}

fn not_found(message: String) -> ConsumerRefused {
    ConsumerRefused { error: Error::GroupIdNotFound, message }
}

fn unknown(id: &str) -> ConsumerRefused {
    not_found(format!("Group {id} not found."))
}

fn of_another_kind(id: &str) -> ConsumerRefused {
    not_found(format!("Group {id} is not a streams group."))
}

/// Sees to it that there is a streams group if somebody joins it. Answers the empty classic group whose place it takes.
fn ready_group(
    groups: &mut BTreeMap<Arc<str>, Group>,
    id: &Arc<str>,
    member_epoch: i32,
) -> Result<Option<Group>, ConsumerRefused> {
    let joins = member_epoch == 0;
    match groups.get(id) {
        Some(group) if group.is_dead() => {
            let error = Error::CoordinatorNotAvailable;
            Err(ConsumerRefused { error, message: error.to_string() })
        }
        Some(Group::Streams(_)) => Ok(None),
        Some(Group::Classic(classic)) if joins && classic.is_empty() => {
            let group = StreamsGroup::new(id.clone(), classic.stored_form());
            Ok(groups.insert(id.clone(), Group::Streams(group)))
        }
        Some(_) => Err(of_another_kind(id)),
        None if joins => Ok(groups.insert(id.clone(), Group::Streams(StreamsGroup::new(id.clone(), None)))),
        None if member_epoch < 0 => Err(unknown(id)),
        None => Err(not_found(format!("Streams group {id} not found."))),
    }
}
