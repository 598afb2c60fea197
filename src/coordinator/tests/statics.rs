//! Members with a `group.instance.id`.

use super::*;

fn leader_and_follower(h: &mut Harness) -> (Joined, Joined) {
    let members = h.stable_with(vec![static_joining("a"), static_joining("b")]);
    (members[0].clone(), members[1].clone())
}

fn described_ids(h: &Harness) -> Vec<String> {
    h.coordinator.describe("g").unwrap().members.into_iter().map(|member| member.member_id).collect()
}

#[test]
fn a_follower_comes_back_without_a_rebalance() {
    let mut h = Harness::new();
    let (leader, follower) = leader_and_follower(&mut h);
    let token = h.join(static_joining("b"));
    let joined = h.joined(token);
    assert_ne!(joined.member_id, follower.member_id);
    assert_eq!((joined.generation_id, joined.leader.as_str()), (2, leader.member_id.as_str()));
    assert_eq!((joined.members.len(), joined.skip_assignment), (0, false));
    assert_eq!(h.state(), "Stable");
    let token = h.sync(&joined, &[]);
    assert_eq!(h.synced(token).unwrap().assignment, "1", "it has the assignment of its predecessor");
    // The predecessor is fenced where it names its instance, and unknown where it does not.
    assert_eq!(h.heartbeat(&follower.member_id, 2), Err(Error::UnknownMemberId));
    let fenced = HeartbeatRequest {
        group_id: "g".into(),
        generation_id: 2,
        member_id: follower.member_id.clone(),
        group_instance_id: Some("b".into()),
    };
    assert_eq!(h.coordinator.heartbeat(h.now(), &fenced), Err(Error::FencedInstanceId));
    let token = h.join(JoinRequest { member_id: follower.member_id.clone(), ..static_joining("b") });
    assert_eq!(
        h.join_refused(token),
        JoinRefused { error: Error::FencedInstanceId, member_id: follower.member_id.clone() }
    );
    let mut commit = committing_as(&follower, 0, 1);
    commit.group_instance_id = Some("b".into());
    let token = h.commit(commit);
    assert_eq!(h.committed(token), Err(Error::FencedInstanceId));
    let token = h.leave(&[(&follower.member_id, Some("b"))]);
    assert_eq!(h.left(token), [Err(Error::FencedInstanceId)]);
    let mut sync = SyncRequest {
        group_id: "g".into(),
        generation_id: 2,
        member_id: follower.member_id,
        group_instance_id: Some("b".into()),
        protocol_type: None,
        protocol_name: None,
        assignments: vec![],
    };
    let token = h.sync_with(sync.clone());
    assert_eq!(h.synced(token), Err(Error::FencedInstanceId));
    sync.group_instance_id = Some("unheard of".into());
    let token = h.sync_with(sync);
    assert_eq!(h.synced(token), Err(Error::UnknownMemberId));
}

#[test]
fn a_leader_comes_back_without_a_rebalance() {
    let mut h = Harness::new();
    let (leader, _) = leader_and_follower(&mut h);
    let token = h.join(static_joining("a"));
    let joined = h.joined(token);
    assert!(joined.skip_assignment);
    assert_eq!((joined.leader.as_str(), joined.members.len()), (joined.member_id.as_str(), 2));
    assert_eq!(h.state(), "Stable");
    // An older client cannot be told to skip the assignment, so it is not told that it leads.
    let token = h.join(JoinRequest { can_skip_assignment: false, ..static_joining("a") });
    let older = h.joined(token);
    assert_eq!((older.leader.as_str(), older.members.len()), (joined.member_id.as_str(), 0));
    assert!(!older.skip_assignment);
    assert_ne!(older.member_id, joined.member_id);
    assert_ne!(older.leader, leader.member_id);
    assert_eq!(h.state(), "Stable");
}

#[test]
fn a_replacement_counts_when_it_is_durable() {
    let mut h = Harness::new();
    let (_, follower) = leader_and_follower(&mut h);
    h.prompt = false;
    let token = h.join(static_joining("b"));
    assert_eq!(h.answer(token), None);
    assert_eq!(h.heartbeat(&follower.member_id, 2), Ok(()), "until then it is the old one");
    h.end_write(Err(WriteFailed));
    assert_eq!(h.join_refused(token).error, Error::NotCoordinator);
    assert_eq!(h.heartbeat(&follower.member_id, 2), Ok(()), "and it stays the old one if it comes to nothing");
    let token = h.join(static_joining("b"));
    h.end_write(Ok(()));
    let joined = h.joined(token);
    assert_eq!(h.heartbeat(&joined.member_id, 2), Ok(()));
    assert_eq!(h.heartbeat(&follower.member_id, 2), Err(Error::UnknownMemberId));
    h.restart(Config::default());
    assert_eq!(h.heartbeat(&joined.member_id, 2), Ok(()));
}

#[test]
fn two_that_claim_one_instance_come_one_after_the_other() {
    let mut h = Harness::new();
    leader_and_follower(&mut h);
    h.prompt = false;
    let first = h.join(static_joining("b"));
    let second = h.join(static_joining("b"));
    h.end_write(Ok(()));
    let first = h.joined(first);
    h.end_write(Ok(()));
    assert_eq!(h.answer(second), None, "it starts anew, from what the first one left");
    h.end_write(Ok(()));
    let second = h.joined(second);
    assert_eq!(h.heartbeat(&first.member_id, 2), Err(Error::UnknownMemberId));
    assert_eq!(h.heartbeat(&second.member_id, 2), Ok(()));
    assert!(h.writes.is_empty());
}

#[test]
fn a_round_that_starts_before_the_replacement_is_durable_takes_it_in() {
    let mut h = Harness::new();
    let (leader, follower) = leader_and_follower(&mut h);
    h.prompt = false;
    let replacing = h.join(static_joining("b"));
    let leading = h.rejoining(&leader);
    let leading = h.join(leading);
    h.end_write(Ok(()));
    let replaced = h.joined(replacing);
    assert_eq!((replaced.generation_id, h.joined(leading).generation_id), (3, 3));
    assert!(!described_ids(&h).contains(&follower.member_id));
}

#[test]
fn a_replacement_that_changes_the_protocol_starts_a_round() {
    let mut h = Harness::new();
    let (leader, _) = leader_and_follower(&mut h);
    let token = h.join(JoinRequest { protocols: vec![protocol("sticky")], ..static_joining("b") });
    assert_eq!(h.answer(token), None);
    assert_eq!(h.state(), "PreparingRebalance");
    let again = h.rejoining(&leader);
    let leading = h.join(again);
    assert_eq!(h.joined(leading).protocol_name.as_deref(), Some("sticky"));
    assert_eq!(h.joined(token).generation_id, 3);
}

#[test]
fn who_waits_under_a_fenced_id_is_told() {
    let mut h = Harness::new();
    let (leader, follower) = leader_and_follower(&mut h);
    // Preparing: a join waits.
    let again = h.rejoining(&follower);
    h.join(JoinRequest { protocols: vec![protocol("range")], ..again.clone() });
    let waiting = h.join(again);
    let replacing = h.join(static_joining("b"));
    assert_eq!(h.join_refused(waiting), JoinRefused { error: Error::FencedInstanceId, member_id: follower.member_id });
    let again = h.rejoining(&leader);
    let leading = h.join(again);
    let (leader, follower) = (h.joined(leading), h.joined(replacing));
    // Completing: a sync waits, and the round starts over, since the leader may be assigning to the old id.
    let waiting = h.sync(&follower, &[]);
    let replacing = h.join(static_joining("b"));
    assert_eq!(h.synced(waiting), Err(Error::FencedInstanceId));
    assert_eq!(h.state(), "PreparingRebalance");
    let again = h.rejoining(&leader);
    let leading = h.join(again);
    assert_eq!((h.joined(leading).generation_id, h.joined(replacing).generation_id), (4, 4));
}

#[test]
fn a_replaced_member_may_wait_longer_than_its_session() {
    let mut h = Harness::new();
    let patient = JoinRequest { session_timeout_ms: 100_000, ..joining() };
    h.stable_with(vec![patient]);
    h.join(static_joining("b"));
    let replacing = h.join(static_joining("b"));
    h.advance(29_000);
    assert_eq!(h.answer(replacing), None);
    h.advance(1_000);
    assert_eq!(h.joined(replacing).members.len(), 1);
}

#[test]
fn static_members_stay_through_a_round_that_they_miss() {
    let mut h = Harness::new();
    let patient = |instance| JoinRequest { session_timeout_ms: 100_000, ..static_joining(instance) };
    let members = h.stable_with(vec![patient("a"), patient("b")]);
    let token = h.join(JoinRequest { member_id: members[0].member_id.clone(), ..patient("a") });
    h.advance(30_000);
    let joined = h.joined(token);
    assert_eq!(joined.members.len(), 2, "the static member that did not join is still in");
    assert!(joined.members.iter().all(|member| member.group_instance_id.is_some()));
    let token = h.sync(&joined, &[]);
    h.synced(token).unwrap();
    h.advance(30_000);
    assert_eq!(described_ids(&h), [joined.member_id], "it does not sync either, and that ends it");
}

#[test]
fn a_static_leader_that_misses_a_round_leads_no_more() {
    let mut h = Harness::new();
    let patient = |instance| JoinRequest { session_timeout_ms: 100_000, ..static_joining(instance) };
    let members = h.stable_with(vec![patient("a"), patient("b")]);
    let changed = JoinRequest { protocols: vec![protocol("range")], ..patient("b") };
    let token = h.join(JoinRequest { member_id: members[1].member_id.clone(), ..changed });
    h.advance(30_000);
    let joined = h.joined(token);
    assert_eq!(joined.leader, joined.member_id);
    assert_eq!(joined.members.len(), 2);
}

#[test]
fn a_round_that_nobody_joins_waits_for_sessions_to_end() {
    let mut h = Harness::new();
    let patient = |instance| JoinRequest { session_timeout_ms: 100_000, ..static_joining(instance) };
    h.stable_with(vec![patient("a"), patient("b")]);
    let new = h.join(joining());
    h.leave(&[(&described_ids(&h).into_iter().find(|id| id.starts_with("client")).unwrap(), None)]);
    assert_eq!(h.join_refused(new).error, Error::UnknownMemberId);
    h.advance(60_000);
    assert_eq!((h.state(), described_ids(&h).len()), ("PreparingRebalance", 2));
    h.advance(60_000);
    assert_eq!((h.state(), described_ids(&h).len()), ("Empty", 0));
}
