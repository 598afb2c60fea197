//! Share groups: members come and go, epochs rise, partitions are initialized and shared out.

use super::*;
use crate::protocol::Uuid;

fn topic(number: u8) -> Uuid {
    Uuid([number; 16])
}

fn topics(counts: &[(&str, u8, i32)]) -> Topics {
    let metadata = |(name, id, partitions): &(&str, u8, i32)| TopicMetadata {
        name: (*name).into(),
        id: topic(*id),
        partitions: *partitions,
    };
    counts.iter().map(metadata).collect()
}

fn beating(member: &str, epoch: i32) -> ShareHeartbeatRequest {
    ShareHeartbeatRequest {
        group_id: "g".into(),
        member_id: member.into(),
        member_epoch: epoch,
        rack_id: None,
        client_id: "client".into(),
        client_host: "/127.0.0.1".into(),
        topic_names: None,
    }
}

fn joining(member: &str, topics: &[&str]) -> ShareHeartbeatRequest {
    let topic_names = Some(topics.iter().map(|name| (*name).to_owned()).collect());
    ShareHeartbeatRequest { topic_names, ..beating(member, 0) }
}

/// Assigns at once.
fn harness() -> Harness {
    let mut config = Config::default();
    config.share.assignment_interval_ms = 0;
    Harness::with(config)
}

fn ask(h: &mut Harness, request: ShareHeartbeatRequest) -> Result<ShareHeartbeat, ConsumerRefused> {
    let token = h.token();
    let actions = h.coordinator.share_heartbeat(h.now(), token, request);
    h.take(actions);
    h.coordinator.check();
    match h.answer(token) {
        Some(Reply::ShareHeartbeat(answer)) => answer,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn beat(h: &mut Harness, request: ShareHeartbeatRequest) -> (i32, Option<Vec<i32>>) {
    let answer = ask(h, request).unwrap();
    let assignment = answer.assignment.map(|topics| topics.into_iter().flat_map(|(_, all)| all).collect());
    (answer.member_epoch, assignment)
}

fn refused(h: &mut Harness, request: ShareHeartbeatRequest) -> Error {
    ask(h, request).unwrap_err().error
}

fn offsets(h: &mut Harness, change: impl FnOnce(&mut GroupCoordinator, Now, Token) -> Actions) -> Result<(), Error> {
    let token = h.token();
    let now = h.now();
    let actions = change(&mut h.coordinator, now, token);
    h.take(actions);
    match h.answer(token) {
        Some(Reply::ShareOffsets(answer)) => answer.map_err(|refused| refused.error),
        other => panic!("{other:?}"),
    }
}

#[test]
fn partitions_are_assigned_in_the_epoch_after_they_were_initialized() {
    let mut h = harness();
    assert_eq!(beat(&mut h, joining("a", &["t"])), (2, Some(vec![])));
    h.coordinator.set_topics(topics(&[("t", 1, 3)]));
    assert_eq!(beat(&mut h, beating("a", 2)), (3, None));
    assert!(h.coordinator.keeps_share_partition("g", topic(1), 2));
    assert_eq!(beat(&mut h, beating("a", 3)), (4, Some(vec![0, 1, 2])));
    assert_eq!(beat(&mut h, beating("a", 4)), (4, None));
    // Who has lost the answer comes with the epoch before.
    assert_eq!(beat(&mut h, beating("a", 3)), (4, None));
    assert_eq!(beat(&mut h, joining("a", &["t"])), (4, Some(vec![0, 1, 2])));
    assert_eq!(refused(&mut h, beating("a", 2)), Error::FencedMemberEpoch);
    assert_eq!(refused(&mut h, beating("a", 5)), Error::FencedMemberEpoch);
    assert_eq!(refused(&mut h, beating("b", 4)), Error::UnknownMemberId);
    // More members than partitions: all have something.
    for member in ["b", "c", "d"] {
        beat(&mut h, joining(member, &["t"]));
    }
    for member in ["a", "b", "c", "d"] {
        let (_, assigned) = beat(&mut h, joining(member, &["t"]));
        assert!(assigned.is_some_and(|assigned| !assigned.is_empty()), "{member}");
    }
}

#[test]
fn a_group_outlives_a_restart_and_those_who_fall_silent_are_out() {
    let mut h = harness();
    h.coordinator.set_topics(topics(&[("t", 1, 2)]));
    beat(&mut h, joining("a", &["t"]));
    assert_eq!(beat(&mut h, beating("a", 2)), (3, Some(vec![0, 1])));
    let config = h.coordinator.config.clone();
    h.restart(config);
    h.coordinator.set_topics(topics(&[("t", 1, 2)]));
    assert_eq!(beat(&mut h, beating("a", 3)), (3, None));
    assert_eq!(h.coordinator.describe_share("g").unwrap().state, "Stable");
    h.advance(45_000);
    assert_eq!(refused(&mut h, beating("a", 3)), Error::UnknownMemberId);
    let described = h.coordinator.describe_share("g").unwrap();
    assert_eq!((described.state, described.epoch, described.members.len()), ("Empty", 4, 0));
    assert_eq!(beat(&mut h, joining("a", &["t"])), (5, Some(vec![0, 1])));
    let left = ask(&mut h, beating("a", -1)).unwrap();
    assert_eq!((left.member_epoch, left.heartbeat_interval_ms), (-1, 0));
}

#[test]
fn what_cannot_be_is_refused() {
    let mut h = harness();
    assert_eq!(refused(&mut h, joining("", &["t"])), Error::InvalidRequest);
    assert_eq!(refused(&mut h, joining(&"m".repeat(37), &["t"])), Error::InvalidRequest);
    assert_eq!(refused(&mut h, joining("a", &[])), Error::InvalidRequest);
    assert_eq!(refused(&mut h, beating("a", 0)), Error::InvalidRequest);
    assert_eq!(refused(&mut h, beating("a", -2)), Error::InvalidRequest);
    assert_eq!(refused(&mut h, beating("a", 1)), Error::GroupIdNotFound);
    assert!(h.coordinator.list(&[], &[]).is_empty(), "nothing is left of all that");
    h.coordinator.config.share_max_size = 1;
    beat(&mut h, joining("a", &["t"]));
    assert_eq!(refused(&mut h, joining("b", &["t"])), Error::GroupMaxSizeReached);
    // The other protocols have no place in such a group.
    let token = h.join(super::joining());
    assert_eq!(h.join_refused(token).error, Error::InconsistentGroupProtocol);
    let token = h.commit(committing(0, 5));
    assert_eq!(h.committed(token), Err(Error::GroupIdNotFound));
}

#[test]
fn a_write_that_fails_takes_the_group_back() {
    let mut h = harness();
    h.coordinator.set_topics(topics(&[("t", 1, 2)]));
    beat(&mut h, joining("a", &["t"]));
    h.prompt = false;
    let token = h.token();
    let actions = h.coordinator.share_heartbeat(h.now(), token, joining("b", &["t"]));
    h.take(actions);
    assert_eq!(h.answer(token), None, "not before it is durable");
    h.end_write(Err(WriteFailed));
    assert!(matches!(
        h.answer(token),
        Some(Reply::ShareHeartbeat(Err(ConsumerRefused { error: Error::NotCoordinator, .. })))
    ));
    h.prompt = true;
    assert_eq!(h.coordinator.describe_share("g").unwrap().members.len(), 1);
}

#[test]
fn offsets_are_altered_and_deleted_where_nobody_is_in_the_group() {
    let mut h = harness();
    h.coordinator.set_topics(topics(&[("t", 1, 2), ("u", 2, 1)]));
    let alter = |coordinator: &mut GroupCoordinator, now, token| {
        coordinator.alter_share_offsets(now, token, "g", &[(topic(1), 0, 7), (topic(2), 0, 9)])
    };
    assert_eq!(offsets(&mut h, alter), Ok(()));
    let key = |number, partition| SharePartitionKey::new("g", topic(number), partition).to_bytes();
    let start = |h: &Harness, number, partition| {
        h.disk
            .shares
            .get(&key(number, partition))
            .map(|bytes| ShareState::from_bytes(bytes).unwrap().start_offset().unwrap())
    };
    assert_eq!((start(&h, 1, 0), start(&h, 1, 1), start(&h, 2, 0)), (Some(7), None, Some(9)));
    beat(&mut h, joining("a", &["t"]));
    assert_eq!(offsets(&mut h, alter), Err(Error::NonEmptyGroup));
    let delete = |coordinator: &mut GroupCoordinator, now, token| {
        coordinator.delete_share_offsets(now, token, "g", &BTreeSet::from([topic(1)]))
    };
    assert_eq!(offsets(&mut h, delete), Err(Error::NonEmptyGroup));
    ask(&mut h, beating("a", -1)).unwrap();
    assert_eq!(offsets(&mut h, delete), Ok(()));
    assert_eq!((start(&h, 1, 0), start(&h, 2, 0)), (None, Some(9)));
    assert!(!h.coordinator.keeps_share_partition("g", topic(1), 0));
    // A topic that is deleted takes what is left with it.
    h.coordinator.set_topics(topics(&[("t", 1, 2)]));
    let actions = h.coordinator.topic_deleted(h.now(), "u");
    h.take(actions);
    assert!(h.disk.shares.is_empty());
    let token = h.token();
    let actions = h.coordinator.delete_group(h.now(), token, "g");
    h.take(actions);
    assert_eq!(h.answer(token), Some(Reply::DeleteGroup(Ok(()))));
    assert!(h.disk.groups.is_empty());
}
