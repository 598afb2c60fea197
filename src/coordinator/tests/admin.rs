//! DescribeGroups, ListGroups, DeleteGroups, and clearing away.

use super::*;

fn delete(h: &mut Harness, group: &str) -> Token {
    let token = h.token();
    let actions = h.coordinator.delete_group(h.now(), token, group);
    h.take(actions);
    token
}

#[test]
fn a_description_shows_members_and_what_they_do() {
    let mut h = Harness::new();
    assert_eq!(h.coordinator.describe("g"), None);
    let members = h.stable_with(vec![joining(), static_joining("a")]);
    let described = h.coordinator.describe("g").unwrap();
    assert_eq!((described.group_id.as_str(), described.state), ("g", "Stable"));
    assert_eq!((described.protocol_type.as_str(), described.protocol_name.as_str()), ("consumer", "range"));
    let member = described.members.iter().find(|member| member.member_id == members[1].member_id).unwrap();
    let expected = DescribedMember {
        member_id: members[1].member_id.clone(),
        group_instance_id: Some("a".into()),
        client_id: "client".into(),
        client_host: "/127.0.0.1".into(),
        metadata: protocol("range").metadata,
        assignment: Bytes::from_static(b"1"),
    };
    assert_eq!(*member, expected);
    // Outside of Stable the protocol is not settled.
    let again = h.rejoining(&members[0]);
    h.join(again);
    let described = h.coordinator.describe("g").unwrap();
    assert_eq!((described.state, described.protocol_name.as_str()), ("PreparingRebalance", ""));
    assert!(described.members.iter().all(|member| member.metadata.is_empty()));
}

#[test]
fn lists_are_filtered_by_state_and_type() {
    let mut h = Harness::new();
    h.stable(1);
    h.commit(CommitRequest { group_id: "offsets".into(), ..committing(0, 1) });
    h.join(JoinRequest { group_id: "round".into(), ..joining() });
    let list = |states: &[&str], types: &[&str]| -> Vec<String> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        h.coordinator.list(&owned(states), &owned(types)).into_iter().map(|group| group.group_id).collect()
    };
    assert_eq!(list(&[], &[]), ["g", "offsets", "round"]);
    assert_eq!(list(&["stable", "EMPTY"], &[]), ["g", "offsets"]);
    assert_eq!(list(&["CompletingRebalance"], &["Classic"]), ["round"]);
    assert_eq!(list(&["Dead"], &[]), [""; 0]);
    assert_eq!(list(&[], &["consumer"]), [""; 0]);
    assert_eq!(list(&[], &["consumer", "classic"]).len(), 3);
    let listed = h.coordinator.list(&["Stable".into()], &[]);
    let expected = ListedGroup {
        group_id: "g".into(),
        protocol_type: "consumer".into(),
        state: "Stable",
        group_type: GroupType::Classic,
    };
    assert_eq!(listed, [expected]);
}

#[test]
fn only_groups_without_members_are_deleted() {
    let mut h = Harness::new();
    let token = delete(&mut h, "g");
    assert_eq!(h.answer(token), Some(Reply::DeleteGroup(Err(Error::GroupIdNotFound))));
    let members = h.stable(1);
    h.commit(committing_as(&members[0], 0, 5));
    let token = delete(&mut h, "g");
    assert_eq!(h.answer(token), Some(Reply::DeleteGroup(Err(Error::NonEmptyGroup))));
    h.leave(&[(&members[0].member_id, None)]);
    let token = delete(&mut h, "g");
    assert_eq!(h.answer(token), Some(Reply::DeleteGroup(Ok(()))));
    assert_eq!((h.state(), h.offset("t", 0)), ("none", None));
    assert_eq!(h.disk, Disk::default());
    assert_eq!(h.coordinator.timers.len(), 1);
}

#[test]
fn a_group_that_is_being_deleted_is_dead_until_that_is_settled() {
    for outcome in [Ok(()), Err(WriteFailed)] {
        let mut h = Harness::new();
        h.commit(committing(0, 5));
        let token = h.join(JoinRequest { member_id_required: true, ..joining() });
        let pending = h.join_refused(token).member_id;
        h.prompt = false;
        let on_its_way = h.commit(committing(1, 6));
        let deleting = delete(&mut h, "g");
        assert_eq!((h.answer(deleting), h.state()), (None, "Dead"));
        let token = h.join(joining());
        assert_eq!(h.join_refused(token).error, Error::CoordinatorNotAvailable);
        let token = h.commit(committing(0, 7));
        assert_eq!(h.committed(token), Err(Error::CoordinatorNotAvailable));
        let token = h.sync(&Joined { member_id: pending.clone(), ..dummy() }, &[]);
        assert_eq!(h.synced(token), Err(Error::CoordinatorNotAvailable));
        assert_eq!(h.heartbeat(&pending, 0), Err(Error::CoordinatorNotAvailable));
        let token = h.leave(&[(&pending, None)]);
        assert_eq!(h.answer(token), Some(Reply::Leave(Err(Error::CoordinatorNotAvailable))));
        let token = delete(&mut h, "g");
        assert_eq!(h.answer(token), Some(Reply::DeleteGroup(Err(Error::GroupIdNotFound))));
        h.end_write(Ok(()));
        h.committed(on_its_way).unwrap();
        h.end_write(outcome);
        assert_eq!(h.answer(deleting), Some(Reply::DeleteGroup(outcome.map_err(|_| Error::NotCoordinator))));
        match outcome {
            Ok(()) => {
                assert_eq!((h.state(), h.offset("t", 0), h.offset("t", 1)), ("none", None, None));
                assert_eq!(h.disk, Disk::default(), "what was on its way went with the rest");
            }
            Err(_) => {
                assert_eq!((h.state(), h.offset("t", 0), h.offset("t", 1)), ("Empty", Some(5), Some(6)));
                let token = h.join(JoinRequest { member_id: pending, ..joining() });
                assert_eq!(h.joined(token).generation_id, 1);
            }
        }
    }
}

fn dummy() -> Joined {
    Joined {
        generation_id: 0,
        protocol_type: None,
        protocol_name: None,
        leader: String::new(),
        skip_assignment: false,
        member_id: String::new(),
        members: vec![],
    }
}

#[test]
fn groups_with_nothing_in_them_are_cleared_away() {
    let mut h = Harness::new();
    let members = h.stable(1);
    h.leave(&[(&members[0].member_id, None)]);
    h.commit(CommitRequest { group_id: "kept".into(), ..committing(0, 1) });
    assert_eq!(h.disk.groups.len(), 1);
    h.prompt = false;
    h.advance(600_000);
    assert_eq!(h.state(), "Dead");
    h.end_write(Err(WriteFailed));
    assert_eq!(h.state(), "Empty");
    h.prompt = true;
    h.advance(600_000);
    let left: Vec<String> = h.coordinator.list(&[], &[]).into_iter().map(|group| group.group_id).collect();
    assert_eq!(left, ["kept"]);
    assert!(h.disk.groups.is_empty());
}

#[test]
fn a_thousand_groups_cost_no_more_a_tick_than_those_that_are_due() {
    let mut h = Harness::new();
    for number in 0..1000 {
        let token =
            h.join(JoinRequest { group_id: format!("group {number}"), session_timeout_ms: 60_000, ..joining() });
        h.joined(token);
    }
    h.join(joining());
    h.now_ms = 10_000;
    let actions = h.coordinator.tick(h.now());
    assert_eq!(actions.len(), 1, "the one group whose member is silent is written");
    assert_eq!(h.coordinator.next_deadline(), Some(Duration::from_millis(30_000)));
}
