//! SyncGroup, Heartbeat, LeaveGroup, and members that fall silent.

use super::*;

#[test]
fn followers_wait_for_the_leaders_assignment() {
    let mut h = Harness::new();
    let first = h.join(joining());
    let leader = h.joined(first);
    let second = h.join(joining());
    let again = h.rejoining(&leader);
    let first = h.join(again);
    let (leader, follower) = (h.joined(first), h.joined(second));
    let waiting = h.sync(&follower, &[("ignored", "only the leader assigns")]);
    assert_eq!(h.answer(waiting), None);
    let assigning = h.sync(&leader, &[(&leader.member_id, "one"), ("stranger", "three")]);
    let synced = h.synced(assigning).unwrap();
    assert_eq!(synced.assignment, "one");
    assert_eq!(synced.protocol_type.as_deref(), Some("consumer"));
    assert_eq!(synced.protocol_name.as_deref(), Some("range"));
    assert_eq!(h.synced(waiting).unwrap().assignment, "", "whom the leader forgets gets nothing");
    assert_eq!(h.state(), "Stable");
    // Who asks again is told again.
    let token = h.sync(&leader, &[]);
    assert_eq!(h.synced(token).unwrap().assignment, "one");
}

#[test]
fn nobody_is_told_an_assignment_before_it_is_durable() {
    let mut h = Harness::new();
    h.prompt = false;
    let token = h.join(joining());
    let leader = h.joined(token);
    let token = h.sync(&leader, &[(&leader.member_id, "one")]);
    assert_eq!((h.answer(token), h.state()), (None, "CompletingRebalance"));
    h.end_write(Ok(()));
    assert_eq!(h.synced(token).unwrap().assignment, "one");
    assert_eq!(h.state(), "Stable");
}

#[test]
fn an_assignment_that_cannot_be_stored_is_nobodys() {
    let mut h = Harness::new();
    let members = h.stable(2);
    let disk = h.disk.clone();
    let tokens: Vec<Token> = members
        .iter()
        .map(|member| {
            let again = h.rejoining(member);
            h.join(again)
        })
        .collect();
    let joined: Vec<Joined> = tokens.into_iter().map(|token| h.joined(token)).collect();
    h.prompt = false;
    let waiting = h.sync(&joined[1], &[]);
    let assigning = h.sync(&joined[0], &[(&joined[0].member_id, "lost")]);
    h.end_write(Err(WriteFailed));
    assert_eq!(h.synced(waiting), Err(Error::NotCoordinator));
    assert_eq!(h.synced(assigning), Err(Error::NotCoordinator));
    assert_eq!(h.state(), "PreparingRebalance");
    assert_eq!(h.disk, disk);
    assert!(h.coordinator.describe("g").unwrap().members.iter().all(|member| member.assignment.is_empty()));
}

#[test]
fn a_round_that_starts_while_the_assignment_is_written_wins() {
    let mut h = Harness::new();
    h.prompt = false;
    let token = h.join(joining());
    let leader = h.joined(token);
    let token = h.sync(&leader, &[(&leader.member_id, "one")]);
    let new = h.join(joining());
    assert_eq!(h.synced(token), Err(Error::RebalanceInProgress));
    h.end_write(Ok(()));
    assert_eq!(h.state(), "PreparingRebalance");
    let again = h.rejoining(&leader);
    let leading = h.join(again);
    assert_eq!((h.joined(leading).generation_id, h.joined(new).generation_id), (2, 2));
}

#[test]
fn syncs_that_do_not_fit_are_refused() {
    let mut h = Harness::new();
    let members = h.stable(2);
    let good = SyncRequest {
        group_id: "g".into(),
        generation_id: 2,
        member_id: members[1].member_id.clone(),
        group_instance_id: None,
        protocol_type: None,
        protocol_name: None,
        assignments: vec![],
    };
    let mut refused = |request: SyncRequest| {
        let token = h.sync_with(request);
        h.synced(token).unwrap_err()
    };
    assert_eq!(refused(SyncRequest { group_id: String::new(), ..good.clone() }), Error::InvalidGroupId);
    assert_eq!(refused(SyncRequest { group_id: "none".into(), ..good.clone() }), Error::UnknownMemberId);
    assert_eq!(refused(SyncRequest { member_id: "who".into(), ..good.clone() }), Error::UnknownMemberId);
    assert_eq!(refused(SyncRequest { generation_id: 1, ..good.clone() }), Error::IllegalGeneration);
    let protocol = Some("other".to_owned());
    let other = SyncRequest { protocol_name: protocol.clone(), ..good.clone() };
    assert_eq!(refused(other), Error::InconsistentGroupProtocol);
    assert_eq!(refused(SyncRequest { protocol_type: protocol, ..good.clone() }), Error::InconsistentGroupProtocol);
    let again = h.rejoining(&members[0]);
    h.join(again);
    let token = h.sync_with(good);
    assert_eq!(h.synced(token), Err(Error::RebalanceInProgress));
}

#[test]
fn members_that_do_not_sync_in_time_are_out() {
    let mut h = Harness::new();
    let requests = vec![JoinRequest { session_timeout_ms: 60_000, ..joining() }; 2];
    let members = h.stable_with(requests.clone());
    let tokens: Vec<Token> = members
        .iter()
        .zip(requests)
        .map(|(member, request)| h.join(JoinRequest { member_id: member.member_id.clone(), ..request }))
        .collect();
    let joined: Vec<Joined> = tokens.into_iter().map(|token| h.joined(token)).collect();
    let token = h.sync(&joined[0], &[]);
    h.synced(token).unwrap();
    assert_eq!(h.state(), "Stable", "the leader has assigned, the follower does not ask");
    h.advance(29_999);
    assert_eq!(h.state(), "Stable");
    h.advance(1);
    assert_eq!(h.state(), "PreparingRebalance");
    assert_eq!(h.heartbeat(&joined[1].member_id, 3), Err(Error::UnknownMemberId));
    assert_eq!(h.heartbeat(&joined[0].member_id, 3), Err(Error::RebalanceInProgress));
}

#[test]
fn heartbeats_keep_a_member() {
    let mut h = Harness::new();
    let members = h.stable(2);
    for _ in 0..20 {
        h.advance(9_999);
        for member in &members {
            assert_eq!(h.heartbeat(&member.member_id, 2), Ok(()));
        }
    }
    assert_eq!(h.heartbeat(&members[0].member_id, 1), Err(Error::IllegalGeneration));
    assert_eq!(h.heartbeat("who", 2), Err(Error::UnknownMemberId));
    assert_eq!(h.coordinator.timers.len(), 3, "two sessions and the clean-up");
    let elsewhere = |group_id: &str| HeartbeatRequest {
        group_id: group_id.into(),
        generation_id: 1,
        member_id: "who".into(),
        group_instance_id: None,
    };
    assert_eq!(h.coordinator.heartbeat(h.now(), &elsewhere("")), Err(Error::InvalidGroupId));
    assert_eq!(h.coordinator.heartbeat(h.now(), &elsewhere("none")), Err(Error::UnknownMemberId));
}

#[test]
fn a_silent_member_is_out_and_the_others_rebalance() {
    let mut h = Harness::new();
    let members = h.stable(2);
    h.advance(5_000);
    assert_eq!(h.heartbeat(&members[0].member_id, 2), Ok(()));
    h.advance(5_000);
    assert_eq!(h.heartbeat(&members[0].member_id, 2), Err(Error::RebalanceInProgress));
    assert_eq!(h.heartbeat(&members[1].member_id, 2), Err(Error::UnknownMemberId));
    let again = h.rejoining(&members[0]);
    let token = h.join(again);
    assert_eq!(h.joined(token).members.len(), 1);
}

#[test]
fn a_member_that_waits_is_not_silent() {
    let mut h = Harness::new();
    let members = h.stable(2);
    let again = h.rejoining(&members[0]);
    let waiting = h.join(again);
    h.advance(8_000);
    assert_eq!(h.heartbeat(&members[1].member_id, 2), Err(Error::RebalanceInProgress));
    h.advance(8_000);
    assert_eq!(h.answer(waiting), None, "longer than the session, and still waiting");
    h.advance(2_000);
    let joined = h.joined(waiting);
    assert_eq!((joined.members.len(), joined.generation_id), (1, 3), "the silent one is out");
    h.advance(9_999);
    assert_eq!(h.heartbeat(&joined.member_id, 3), Ok(()), "the answer started the session anew");
}

#[test]
fn a_group_that_loses_its_last_member_is_empty_durably() {
    let mut h = Harness::new();
    h.stable(1);
    h.advance(10_000);
    assert_eq!(h.state(), "Empty");
    let described = h.coordinator.describe("g").unwrap();
    assert_eq!((described.protocol_type.as_str(), described.members.len()), ("consumer", 0));
    h.restart(Config::default());
    assert_eq!(h.state(), "Empty");
    // Generations go on from there.
    let token = h.join(joining());
    assert_eq!(h.joined(token).generation_id, 3);
}

#[test]
fn leaving_is_answered_when_the_empty_group_is_durable() {
    for outcome in [Ok(()), Err(WriteFailed)] {
        let mut h = Harness::new();
        let members = h.stable(2);
        let token = h.leave(&[(&members[0].member_id, None)]);
        assert_eq!(h.left(token), [Ok(())]);
        assert_eq!(h.heartbeat(&members[1].member_id, 2), Err(Error::RebalanceInProgress));
        h.prompt = false;
        let token = h.leave(&[(&members[1].member_id, None)]);
        assert_eq!((h.answer(token), h.state()), (None, "Empty"));
        h.end_write(outcome);
        match outcome {
            Ok(()) => assert_eq!(h.left(token), [Ok(())]),
            Err(_) => assert_eq!(h.answer(token), Some(Reply::Leave(Err(Error::NotCoordinator)))),
        }
    }
}

#[test]
fn leaving_in_a_batch_gives_everybody_an_outcome() {
    let mut h = Harness::new();
    let requests = vec![joining(), static_joining("a"), static_joining("b"), static_joining("c")];
    let members = h.stable_with(requests);
    let token = h.leave(&[
        (&members[0].member_id, None),
        ("", Some("a")),
        ("", Some("nobody")),
        ("", None),
        ("who", None),
        ("who", Some("b")),
        (&members[3].member_id, Some("c")),
    ]);
    let expected = [
        Ok(()),
        Ok(()),
        Err(Error::UnknownMemberId),
        Err(Error::UnknownMemberId),
        Err(Error::UnknownMemberId),
        Err(Error::FencedInstanceId),
        Ok(()),
    ];
    assert_eq!(h.left(token), expected);
    let left: Vec<String> =
        h.coordinator.describe("g").unwrap().members.into_iter().map(|member| member.member_id).collect();
    assert_eq!(left, [members[2].member_id.clone()]);
    let elsewhere = LeaveRequest {
        group_id: "none".into(),
        members: vec![LeavingMember { member_id: "who".into(), group_instance_id: None }],
    };
    let token = h.token();
    let actions = h.coordinator.leave(h.now(), token, elsewhere);
    h.take(actions);
    assert_eq!(h.left(token), [Err(Error::UnknownMemberId)]);
}

#[test]
fn who_leaves_while_waiting_is_answered() {
    let mut h = Harness::new();
    let members = h.stable(2);
    let again = h.rejoining(&members[0]);
    let waiting = h.join(again);
    let left = h.leave(&[(&members[0].member_id, None)]);
    assert_eq!(h.join_refused(waiting).error, Error::UnknownMemberId);
    assert_eq!(h.left(left), [Ok(())]);

    let again = h.rejoining(&members[1]);
    let token = h.join(again);
    let leader = h.joined(token);
    let new = h.join(joining());
    let again = h.rejoining(&leader);
    h.join(again);
    let follower = h.joined(new);
    let waiting = h.sync(&follower, &[]);
    h.leave(&[(&follower.member_id, None)]);
    assert_eq!(h.synced(waiting), Err(Error::UnknownMemberId));
}

#[test]
fn zero_timeouts_do_not_make_the_clock_run_hot() {
    let mut h = Harness::new();
    let hasty = JoinRequest { rebalance_timeout_ms: 0, ..static_joining("a") };
    h.stable_with(vec![hasty.clone()]);
    // A dynamic member comes and goes, so that only a static member that does not join is left in the round.
    let token = h.join(JoinRequest { rebalance_timeout_ms: -5, ..joining() });
    let mut ticks = 0;
    while h.coordinator.next_deadline().is_some_and(|due| due <= Duration::from_millis(100_000)) {
        h.now_ms = h.coordinator.next_deadline().unwrap().as_millis() as u64;
        let actions = h.coordinator.tick(h.now());
        h.take(actions);
        ticks += 1;
        assert!(ticks < 500);
    }
    assert!(h.answer(token).is_some());
}

#[test]
fn shutting_down_answers_everybody_who_waits() {
    let mut h = Harness::new();
    let members = h.stable(2);
    let again = h.rejoining(&members[0]);
    let waiting = h.join(again);
    let actions = h.coordinator.shut_down(h.now());
    h.take(actions);
    assert_eq!(h.join_refused(waiting).error, Error::NotCoordinator);
}
