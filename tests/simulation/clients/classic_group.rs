//! Members of a group in the classic protocol: they join, are told their generation, commit offsets, and leave.

use bytes::Bytes;
use doze::protocol::ErrorCode;
use doze::protocol::messages::heartbeat::HeartbeatRequest;
use doze::protocol::messages::join_group::{JoinGroupRequest, JoinGroupRequestProtocol};
use doze::protocol::messages::leave_group::{LeaveGroupRequest, MemberIdentity};
use doze::protocol::messages::sync_group::{SyncGroupRequest, SyncGroupRequestAssignment};

use super::{Client, Work, error};
use crate::clients::consumer_group::commit;
use crate::net::Connection;

const GROUP: &str = "classic";

pub struct Member {
    name: String,
    id: String,
    generation: Option<i32>,
}

impl Member {
    pub fn new(n: u64) -> Self {
        Member { name: format!("classic-{n}"), id: String::new(), generation: None }
    }

    async fn step(&mut self, connection: &Connection) {
        let Some(generation) = self.generation else { return self.join(connection).await };
        match connection.draw(|prng| prng.below(10)) {
            0..6 => {
                let code = commit(connection, GROUP, &self.id, generation).await;
                if matches!(code, Some(ErrorCode::UnknownMemberId)) {
                    self.id.clear();
                }
                if !matches!(code, None | Some(ErrorCode::None)) {
                    self.generation = None;
                }
            }
            6..9 => {
                let request = HeartbeatRequest {
                    group_id: GROUP.into(),
                    generation_id: generation,
                    member_id: self.id.clone(),
                    ..Default::default()
                };
                let answer = connection.call(4, &request).await;
                match answer.map(|answer| error(answer.error_code)) {
                    Some(ErrorCode::UnknownMemberId) => self.id.clear(),
                    None | Some(ErrorCode::None) => return,
                    Some(_) => {}
                }
                self.generation = None;
            }
            _ => {
                let member = MemberIdentity { member_id: self.id.clone(), ..Default::default() };
                let request = LeaveGroupRequest { group_id: GROUP.into(), members: vec![member], ..Default::default() };
                connection.call(4, &request).await;
                self.id.clear();
                self.generation = None;
            }
        }
    }

    async fn join(&mut self, connection: &Connection) {
        let request = JoinGroupRequest {
            group_id: GROUP.into(),
            session_timeout_ms: 10_000,
            rebalance_timeout_ms: 300,
            member_id: self.id.clone(),
            protocol_type: "consumer".into(),
            protocols: vec![JoinGroupRequestProtocol { name: "range".into(), metadata: Bytes::from_static(b"m") }],
            ..Default::default()
        };
        let Some(joined) = connection.call(6, &request).await else { return };
        match error(joined.error_code) {
            ErrorCode::None => {}
            ErrorCode::MemberIdRequired => {
                self.id = joined.member_id;
                return;
            }
            ErrorCode::UnknownMemberId => {
                self.id.clear();
                return;
            }
            _ => return,
        }
        self.id = joined.member_id.clone();
        let assignments = joined.members.iter().map(|member| SyncGroupRequestAssignment {
            member_id: member.member_id.clone(),
            assignment: Bytes::from_static(b"a"),
        });
        let request = SyncGroupRequest {
            group_id: GROUP.into(),
            generation_id: joined.generation_id,
            member_id: self.id.clone(),
            assignments: assignments.collect(),
            ..Default::default()
        };
        let Some(synced) = connection.call(4, &request).await else { return };
        match error(synced.error_code) {
            ErrorCode::None => {
                connection.note(format_args!("is {} in generation {}", self.id, joined.generation_id));
                connection.world.count("generations of classic groups joined");
                self.generation = Some(joined.generation_id);
            }
            ErrorCode::UnknownMemberId => self.id.clear(),
            _ => {}
        }
    }
}

impl Client for Member {
    fn name(&self) -> &str {
        &self.name
    }

    fn live<'a>(&'a mut self, connection: &'a Connection) -> Work<'a> {
        Box::pin(async move {
            loop {
                connection.think().await;
                self.step(connection).await;
            }
        })
    }
}
