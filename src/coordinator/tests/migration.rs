//! Groups that go from one protocol to the other while they have members.

use super::consumer::{beating, entering, owning, topic_id};
use super::*;

/// A subscription to `t` of version 1, of somebody who has these partitions of it.
pub fn subscribing(owned: &[i32]) -> Bytes {
    let mut bytes = b"\0\x01\0\0\0\x01\0\x01t\xff\xff\xff\xff".to_vec();
    bytes.extend_from_slice(&partitions_of_t(owned));
    bytes.into()
}

/// An assignment of these partitions of `t`.
pub fn assigning(partitions: &[i32]) -> Bytes {
    let mut bytes = b"\0\x01".to_vec();
    bytes.extend_from_slice(&partitions_of_t(partitions));
    bytes.extend_from_slice(&(-1i32).to_be_bytes());
    bytes.into()
}

fn partitions_of_t(partitions: &[i32]) -> Vec<u8> {
    if partitions.is_empty() {
        return vec![0; 4];
    }
    let mut bytes = b"\0\0\0\x01\0\x01t".to_vec();
    bytes.extend_from_slice(&(partitions.len() as i32).to_be_bytes());
    for partition in partitions {
        bytes.extend_from_slice(&partition.to_be_bytes());
    }
    bytes
}

/// The partitions of `t` in an assignment.
pub fn assigned(bytes: &[u8]) -> Vec<i32> {
    let Some(partitions) = bytes.get(13..bytes.len().saturating_sub(4)) else { return vec![] };
    partitions.chunks(4).map(|chunk| i32::from_be_bytes(chunk.try_into().unwrap())).collect()
}

/// A classic consumer's join.
pub fn classic(member: &str, owned: &[i32]) -> JoinRequest {
    let protocol = Protocol { name: "range".into(), metadata: subscribing(owned) };
    JoinRequest { member_id: member.into(), protocols: vec![protocol], ..joining() }
}

impl Harness {
    /// A Stable classic group of one member that has all the partitions of `t`.
    fn classic_group(&mut self, request: JoinRequest, partitions: &[i32]) -> Joined {
        let token = self.join(request);
        let joined = self.joined(token);
        let token = self.sync_bytes(&joined, vec![(joined.member_id.clone(), assigning(partitions))]);
        assert_eq!(assigned(&self.synced(token).unwrap().assignment), partitions);
        joined
    }

    fn sync_bytes(&mut self, member: &Joined, assignments: Vec<(String, Bytes)>) -> Token {
        self.sync_with(SyncRequest {
            group_id: "g".into(),
            generation_id: member.generation_id,
            member_id: member.member_id.clone(),
            group_instance_id: None,
            protocol_type: member.protocol_type.clone(),
            protocol_name: member.protocol_name.clone(),
            assignments,
        })
    }

    /// A join and a sync of a classic member in a consumer group: its epoch and its partitions.
    fn rejoined(&mut self, member: &str, owned: &[i32]) -> (i32, Vec<i32>) {
        let token = self.join(classic(member, owned));
        let joined = self.joined(token);
        let token = self.sync_bytes(&joined, vec![]);
        let partitions = assigned(&self.synced(token).unwrap().assignment);
        self.coordinator.check();
        (joined.generation_id, partitions)
    }
}

#[test]
fn members_of_both_protocols_share_a_group_on_the_way_up() {
    let mut h = Harness::with_topics(&[("t", 4)]);
    let old = h.classic_group(classic("", &[]), &[0, 1, 2, 3]);
    let id = old.member_id.as_str();
    assert_eq!(h.told(entering("a")), Ok((2, Some(vec![]))));
    assert_eq!(h.coordinator.group_type("g"), Some(GroupType::Consumer));
    assert_eq!(h.heartbeat(id, 1), Err(Error::RebalanceInProgress));
    assert_eq!(h.rejoined(id, &[0, 1, 2, 3]), (1, vec![0, 1]), "it has to give up the others");
    assert_eq!(h.heartbeat(id, 1), Err(Error::RebalanceInProgress), "and to say so");
    assert_eq!(h.told(beating("a", 2)), Ok((2, None)));
    assert_eq!(h.rejoined(id, &[0, 1]), (2, vec![0, 1]));
    assert_eq!(h.heartbeat(id, 2), Ok(()));
    assert_eq!(h.told(beating("a", 2)), Ok((2, Some(vec![2, 3]))));
    assert_eq!(h.consumer_state(), "Stable");
    let described = h.coordinator.describe_consumer("g").unwrap();
    assert_eq!(described.members.iter().filter(|member| member.is_classic).count(), 1);
    // A restart in between is nothing special.
    let config = h.coordinator.config.clone();
    h.restart(config);
    h.set_topics(&[("t", 4)]);
    assert_eq!(h.heartbeat(id, 2), Ok(()));
    // What it commits is checked by its generation.
    let commit = CommitRequest { member_id: id.into(), generation_id: 1, ..committing(2, 7) };
    let token = h.commit(commit);
    assert_eq!(h.committed(token), Err(Error::IllegalGeneration));
    // It goes over to the new protocol under the same id, without losing anything.
    assert_eq!(h.told(entering(id)), Ok((2, Some(vec![0, 1]))));
    assert!(h.coordinator.describe_consumer("g").unwrap().members.iter().all(|member| !member.is_classic));
}

#[test]
fn the_last_one_of_the_new_protocol_leaves_a_classic_group() {
    let mut h = Harness::with_topics(&[("t", 4)]);
    assert_eq!(h.told(entering("a")), Ok((2, Some(vec![0, 1, 2, 3]))));
    h.advance(1_000);
    let required = JoinRequest { member_id_required: true, ..classic("", &[]) };
    let token = h.join(required);
    let refused = h.join_refused(token);
    assert_eq!(refused.error, Error::MemberIdRequired);
    let id = refused.member_id;
    assert_eq!(h.rejoined(&id, &[]), (3, vec![]));
    assert_eq!(h.told(owning("a", 2, &[0, 1, 2, 3])), Ok((2, Some(vec![0, 1]))));
    assert_eq!(h.told(owning("a", 2, &[0, 1])), Ok((3, None)));
    assert_eq!(h.heartbeat(&id, 3), Err(Error::RebalanceInProgress), "what it waits for is free");
    assert_eq!(h.rejoined(&id, &[]), (3, vec![2, 3]));
    h.prompt = false;
    let leaving = h.beat(beating("a", -1));
    assert_eq!(h.answer(leaving), None);
    while !h.writes.is_empty() {
        h.end_write(Ok(()));
    }
    h.prompt = true;
    assert_eq!(h.beaten(leaving).unwrap().member_epoch, -1);
    assert_eq!((h.coordinator.group_type("g"), h.state()), (Some(GroupType::Classic), "PreparingRebalance"));
    assert_eq!(h.heartbeat(&id, 3), Err(Error::RebalanceInProgress));
    let token = h.join(classic(&id, &[2, 3]));
    let joined = h.joined(token);
    assert_eq!((joined.generation_id, joined.leader.as_str()), (4, id.as_str()));
    let token = h.sync_bytes(&joined, vec![(id.clone(), assigning(&[0, 1, 2, 3]))]);
    assert_eq!(assigned(&h.synced(token).unwrap().assignment), [0, 1, 2, 3]);
}

#[test]
fn a_static_member_goes_back_to_the_classic_protocol_and_takes_the_group_along() {
    let mut h = Harness::with_topics(&[("t", 2)]);
    let of = |request| ConsumerHeartbeatRequest { instance_id: Some("i".into()), ..request };
    assert_eq!(h.told(of(entering("a"))), Ok((2, Some(vec![0, 1]))));
    assert_eq!(h.told(of(beating("a", -2))), Ok((-2, None)));
    let token = h.join(JoinRequest { group_instance_id: Some("i".into()), ..classic("", &[]) });
    let joined = h.joined(token);
    assert_eq!(joined.generation_id, 2);
    assert_eq!((h.coordinator.group_type("g"), h.state()), (Some(GroupType::Classic), "Stable"));
    let token = h.sync_bytes(&joined, vec![]);
    assert_eq!(assigned(&h.synced(token).unwrap().assignment), [0, 1], "it keeps what it had");
    // And forward again.
    assert_eq!(h.told(of(entering("b"))), Ok((2, Some(vec![0, 1]))));
    assert_eq!(h.coordinator.group_type("g"), Some(GroupType::Consumer));
    assert_eq!(h.heartbeat(&joined.member_id, 2), Err(Error::UnknownMemberId));
}

#[test]
fn silent_classic_members_make_room() {
    let mut h = Harness::with_topics(&[("t", 2)]);
    let old = h.classic_group(classic("", &[]), &[0, 1]);
    assert_eq!(h.told(entering("a")), Ok((2, Some(vec![]))));
    h.advance(9_000);
    assert_eq!(h.heartbeat(&old.member_id, 1), Err(Error::RebalanceInProgress));
    h.advance(9_000);
    assert_eq!(h.heartbeat(&old.member_id, 1), Err(Error::RebalanceInProgress));
    assert_eq!(h.told(beating("a", 2)), Ok((2, None)));
    // It is alive and does not join: its rebalance timeout ends that.
    h.advance(9_000);
    assert_eq!(h.heartbeat(&old.member_id, 1), Err(Error::RebalanceInProgress));
    h.advance(9_000);
    assert_eq!(h.heartbeat(&old.member_id, 1), Err(Error::RebalanceInProgress));
    h.advance(4_000);
    assert_eq!(h.heartbeat(&old.member_id, 1), Err(Error::UnknownMemberId));
    assert_eq!(h.told(beating("a", 2)), Ok((3, Some(vec![0, 1]))));
    // One that joins and does not sync is out after its rebalance timeout as well.
    let token = h.join(classic("", &[]));
    let joined = h.joined(token);
    for _ in 0..4 {
        h.advance(7_000);
        let _ = h.heartbeat(&joined.member_id, joined.generation_id);
        let _ = h.told(beating("a", 3));
    }
    h.advance(2_000);
    assert_eq!(h.heartbeat(&joined.member_id, joined.generation_id), Err(Error::UnknownMemberId));
}

#[test]
fn administrators_remove_members_of_either_protocol() {
    let mut h = Harness::with_topics(&[("t", 2)]);
    let old = h.classic_group(classic("", &[]), &[0, 1]);
    assert_eq!(h.told(entering("a")), Ok((2, Some(vec![]))));
    let token = h.leave(&[(&old.member_id, None), ("stranger", None)]);
    assert_eq!(h.left(token), [Ok(()), Err(Error::UnknownMemberId)]);
    h.advance(1_000);
    assert_eq!(h.told(beating("a", 2)), Ok((3, Some(vec![0, 1]))));
    let token = h.leave(&[("a", None)]);
    assert_eq!(h.left(token), [Ok(())]);
    assert_eq!(h.consumer_state(), "Empty");
}

#[test]
fn the_policy_is_kept() {
    let policy =
        |upgrade, downgrade| Config { consumer_migration: Migration { upgrade, downgrade }, ..Config::default() };
    let with = |config| {
        let mut h = Harness::with(config);
        h.set_topics(&[("t", 2)]);
        h
    };
    let mut h = with(policy(false, true));
    h.classic_group(classic("", &[]), &[0, 1]);
    assert_eq!(h.told(entering("a")), Err(Error::GroupIdNotFound));
    assert_eq!(h.state(), "Stable");
    let mut h = with(policy(false, false));
    assert_eq!(h.told(entering("a")), Ok((2, Some(vec![0, 1]))));
    let token = h.join(classic("", &[]));
    assert_eq!(h.join_refused(token).error, Error::InconsistentGroupProtocol);
    // Without members, the group takes whoever comes.
    assert_eq!(h.told(beating("a", -1)), Ok((-1, None)));
    h.classic_group(classic("", &[]), &[0, 1]);
    let mut h = with(policy(true, false));
    let old = h.classic_group(classic("", &[]), &[0, 1]);
    assert_eq!(h.told(entering("a")), Ok((2, Some(vec![]))));
    assert_eq!(h.told(beating("a", -1)), Ok((-1, None)));
    assert_eq!(h.coordinator.group_type("g"), Some(GroupType::Consumer), "it may not go back");
    // Nobody but classic members is left, and they get what is free all the same.
    h.advance(1_000);
    assert_eq!(h.heartbeat(&old.member_id, 1), Err(Error::RebalanceInProgress));
    assert_eq!(h.rejoined(&old.member_id, &[0, 1]), (3, vec![0, 1]));
    h.set_topics(&[("t", 3)]);
    h.advance(1_000);
    assert_eq!(h.heartbeat(&old.member_id, 3), Err(Error::RebalanceInProgress));
    assert_eq!(h.rejoined(&old.member_id, &[0, 1]), (4, vec![0, 1, 2]));
}

#[test]
fn groups_that_cannot_be_read_stay_as_they_are() {
    let mut h = Harness::with_topics(&[("t", 2)]);
    let with = |assignment: &'static [u8], protocol_type: &str| {
        let mut h = Harness::with_topics(&[("t", 2)]);
        let token = h.join(JoinRequest { protocol_type: protocol_type.into(), ..classic("", &[]) });
        let joined = h.joined(token);
        let token = h.sync_bytes(&joined, vec![(joined.member_id.clone(), Bytes::from_static(assignment))]);
        h.synced(token).unwrap();
        (h.told(entering("a")), h.state())
    };
    let refused = (Err(Error::GroupIdNotFound), "Stable");
    assert_eq!(with(b"\0\x01\0\0\0\x05", "consumer"), refused, "malformed");
    assert_eq!(with(b"\0\x01\0\0\0\0\0\0\0\x01x", "consumer"), refused, "somebody's own assignor");
    assert_eq!(with(b"", "connect"), refused, "not consumers");
    // And a classic member that says nothing readable does not get in.
    assert_eq!(h.told(entering("a")), Ok((2, Some(vec![0, 1]))));
    let protocol = Protocol { name: "range".into(), metadata: Bytes::from_static(b"\0\x01\0") };
    let token = h.join(JoinRequest { protocols: vec![protocol], ..joining() });
    assert_eq!(h.join_refused(token).error, Error::UnknownServerError);
    let token = h.join(JoinRequest { protocol_type: "connect".into(), ..classic("", &[]) });
    assert_eq!(h.join_refused(token).error, Error::InconsistentGroupProtocol);
    assert_eq!(h.coordinator.describe_consumer("g").unwrap().members[0].assigned[0].id, topic_id("t"));
}
