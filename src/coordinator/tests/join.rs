//! JoinGroup: who gets in, and what starts a round.

use super::*;

#[test]
fn the_first_member_leads_and_is_answered_at_once() {
    let mut h = Harness::new();
    let token = h.join(joining());
    let joined = h.joined(token);
    assert_eq!((joined.generation_id, joined.skip_assignment), (1, false));
    assert_eq!(joined.leader, joined.member_id);
    assert_eq!(joined.protocol_type.as_deref(), Some("consumer"));
    assert_eq!(joined.protocol_name.as_deref(), Some("range"));
    assert_eq!(joined.members.len(), 1);
    assert_eq!(joined.members[0].metadata, protocol("range").metadata);
    assert_eq!(h.state(), "CompletingRebalance");
}

#[test]
fn member_ids_are_the_client_or_instance_id_and_a_random_uuid() {
    let mut h = Harness::new();
    let dynamic = h.join(joining());
    let dynamic = h.joined(dynamic).member_id;
    let uuid = dynamic.strip_prefix("client-").unwrap();
    let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
    assert_eq!(lengths, [8, 4, 4, 4, 12]);
    assert_eq!(&uuid[14..15], "4");
    assert!(uuid.chars().all(|c| c == '-' || c.is_ascii_hexdigit()));
    let fixed = h.join(JoinRequest { group_id: "other".into(), ..static_joining("instance") });
    assert!(h.joined(fixed).member_id.starts_with("instance-"));
}

#[test]
fn a_new_member_may_have_to_come_back_with_its_id() {
    let mut h = Harness::new();
    let required = JoinRequest { member_id_required: true, ..joining() };
    let token = h.join(required.clone());
    let refused = h.join_refused(token);
    assert_eq!(refused.error, Error::MemberIdRequired);
    assert!(refused.member_id.starts_with("client-"));
    assert_eq!(h.state(), "Empty");
    let token = h.join(JoinRequest { member_id: refused.member_id.clone(), ..required.clone() });
    assert_eq!(h.joined(token).member_id, refused.member_id);
    // Static members have a name already.
    let token = h.join(JoinRequest { group_id: "h".into(), group_instance_id: Some("i".into()), ..required });
    assert_eq!(h.joined(token).generation_id, 1);
}

#[test]
fn an_unused_member_id_runs_out_and_leaves_nothing() {
    let mut h = Harness::new();
    let required = JoinRequest { member_id_required: true, ..joining() };
    let token = h.join(required.clone());
    let id = h.join_refused(token).member_id;
    h.advance(9_999);
    assert_eq!(h.state(), "Empty");
    h.advance(1);
    assert_eq!(h.state(), "none");
    let token = h.join(JoinRequest { member_id: id.clone(), ..required });
    assert_eq!(h.join_refused(token), JoinRefused { error: Error::UnknownMemberId, member_id: id });
    assert_eq!(h.coordinator.timers.len(), 1, "only the clean-up is left");
}

#[test]
fn a_round_waits_for_pending_members_until_they_run_out_or_leave() {
    for leaves in [false, true] {
        let mut h = Harness::new();
        let members = h.stable(1);
        let token = h.join(JoinRequest { member_id_required: true, session_timeout_ms: 6_000, ..joining() });
        let pending = h.join_refused(token).member_id;
        let again = h.rejoining(&members[0]);
        let token = h.join(again);
        assert_eq!(h.answer(token), None);
        if leaves {
            let left = h.leave(&[(&pending, None)]);
            assert_eq!(h.left(left), [Ok(())]);
        } else {
            h.advance(6_000);
        }
        assert_eq!(h.joined(token).generation_id, 2);
    }
}

#[test]
fn pending_members_are_limited() {
    let mut h = Harness::with(Config { max_pending_members: 3, ..Config::default() });
    let required = JoinRequest { member_id_required: true, ..joining() };
    for _ in 0..3 {
        let token = h.join(required.clone());
        assert_eq!(h.join_refused(token).error, Error::MemberIdRequired);
    }
    let token = h.join(required);
    assert_eq!(h.join_refused(token).error, Error::GroupMaxSizeReached);
}

#[test]
fn requests_that_cannot_be_are_refused() {
    let mut h = Harness::new();
    let mut refused = |request: JoinRequest| {
        let token = h.join(request);
        h.join_refused(token).error
    };
    assert_eq!(refused(JoinRequest { group_id: String::new(), ..joining() }), Error::InvalidGroupId);
    assert_eq!(refused(JoinRequest { session_timeout_ms: 5_999, ..joining() }), Error::InvalidSessionTimeout);
    assert_eq!(refused(JoinRequest { session_timeout_ms: 1_800_001, ..joining() }), Error::InvalidSessionTimeout);
    assert_eq!(refused(JoinRequest { member_id: "who".into(), ..joining() }), Error::UnknownMemberId);
    assert_eq!(refused(JoinRequest { protocols: vec![], ..joining() }), Error::InconsistentGroupProtocol);
    assert_eq!(refused(JoinRequest { protocol_type: String::new(), ..joining() }), Error::InconsistentGroupProtocol);
    assert_eq!(h.state(), "none", "refused requests leave no group behind");
    h.stable(1);
    let mut refused = |request: JoinRequest| {
        let token = h.join(request);
        h.join_refused(token).error
    };
    assert_eq!(refused(JoinRequest { member_id: "who".into(), ..joining() }), Error::UnknownMemberId);
    assert_eq!(refused(JoinRequest { protocol_type: "connect".into(), ..joining() }), Error::InconsistentGroupProtocol);
    let other = JoinRequest { protocols: vec![protocol("else")], ..joining() };
    assert_eq!(refused(other), Error::InconsistentGroupProtocol);
    assert_eq!(h.state(), "Stable");
}

#[test]
fn the_protocol_with_most_votes_that_all_speak_is_chosen() {
    let mut h = Harness::new();
    let speaking =
        |names: &[&str]| JoinRequest { protocols: names.iter().map(|name| protocol(name)).collect(), ..joining() };
    let first = h.join(speaking(&["a", "b", "c"]));
    let leader = h.joined(first);
    assert_eq!(leader.protocol_name.as_deref(), Some("a"));
    let second = h.join(speaking(&["b", "c"]));
    let third = h.join(speaking(&["c", "d", "b"]));
    let fourth = h.join(speaking(&["c", "b"]));
    let again = h.join(JoinRequest { member_id: leader.member_id, ..speaking(&["a", "b", "c"]) });
    // b: the leader and the second; c: the third and the fourth. The leader prefers b.
    for token in [again, second, third, fourth] {
        assert_eq!(h.joined(token).protocol_name.as_deref(), Some("b"));
    }
}

#[test]
fn a_protocol_named_twice_counts_once() {
    let mut h = Harness::new();
    let token = h.join(JoinRequest { protocols: vec![protocol("a"), protocol("a"), protocol("b")], ..joining() });
    let first = h.joined(token);
    let token = h.join(JoinRequest { protocols: vec![protocol("b")], ..joining() });
    assert_eq!(h.answer(token), None, "b is spoken by all, so it is let in");
    let again = JoinRequest { member_id: first.member_id, protocols: vec![protocol("b")], ..joining() };
    let leader = h.join(again);
    assert_eq!(h.joined(leader).protocol_name.as_deref(), Some("b"));
    assert_eq!(h.joined(token).members, []);
}

#[test]
fn a_frame_full_of_protocols_is_no_trouble() {
    let mut h = Harness::new();
    let protocols: Vec<Protocol> = (0..200_000).map(|n| protocol(&(n % 150_000).to_string())).collect();
    let token = h.join(JoinRequest { protocols, ..joining() });
    let joined = h.joined(token);
    assert_eq!(joined.protocol_name.as_deref(), Some("0"));
    let token = h.sync(&joined, &[]);
    h.synced(token).unwrap();
    h.restart(Config::default());
    assert_eq!(h.heartbeat(&joined.member_id, 1), Ok(()));
}

#[test]
fn a_group_has_a_largest_size() {
    let mut h = Harness::with(Config { max_size: 2, ..Config::default() });
    let members = h.stable(2);
    let token = h.join(joining());
    assert_eq!(h.join_refused(token), JoinRefused { error: Error::GroupMaxSizeReached, member_id: String::new() });
    assert_eq!(h.state(), "Stable");
    // Members are still let in again, and the round does not let anybody else in before them.
    let again = h.rejoining(&members[0]);
    let leader = h.join(again);
    let again = h.rejoining(&members[1]);
    let follower = h.join(again);
    assert_eq!((h.joined(leader).generation_id, h.joined(follower).generation_id), (3, 3));
}

#[test]
fn a_group_that_became_too_large_keeps_those_who_join_first() {
    let mut h = Harness::new();
    let members = h.stable(3);
    h.coordinator.set_config(Config { max_size: 2, ..Config::default() });
    let tokens: Vec<Token> = members
        .iter()
        .map(|member| {
            let again = h.rejoining(member);
            h.join(again)
        })
        .collect();
    assert_eq!(h.join_refused(tokens[2]).error, Error::GroupMaxSizeReached);
    assert_eq!(h.joined(tokens[0]).members.len(), 2, "the round is complete without the third");
    assert_eq!(h.joined(tokens[1]).generation_id, 3);
}

#[test]
fn joining_again_in_each_state() {
    let mut h = Harness::new();
    let members = h.stable(2);
    // Stable: a follower with nothing new is told how things are, the leader starts a round.
    let same = h.rejoining(&members[1]);
    let token = h.join(same.clone());
    assert_eq!(h.joined(token), Joined { members: vec![], ..members[1].clone() });
    assert_eq!(h.state(), "Stable");
    let leader = h.rejoining(&members[0]);
    let first = h.join(leader.clone());
    assert_eq!(h.state(), "PreparingRebalance");
    // Preparing: the round ends when the last one is there.
    assert_eq!(h.heartbeat(&members[1].member_id, 2), Err(Error::RebalanceInProgress));
    let second = h.join(same.clone());
    assert_eq!(h.joined(first).generation_id, 3);
    assert_eq!(h.joined(second).generation_id, 3);
    // Completing: the same again is the same answer, for the leader too; something new starts a round.
    let token = h.join(leader.clone());
    let joined = h.joined(token);
    assert_eq!((joined.generation_id, joined.members.len()), (3, 2));
    assert_eq!(h.state(), "CompletingRebalance");
    let changed = JoinRequest { protocols: vec![protocol("sticky")], ..same };
    let second = h.join(changed);
    assert_eq!(h.state(), "PreparingRebalance");
    let first = h.join(leader);
    assert_eq!(h.joined(first).protocol_name.as_deref(), Some("sticky"));
    assert_eq!(h.joined(second).generation_id, 4);
}

#[test]
fn a_follower_with_new_metadata_starts_a_round() {
    let mut h = Harness::new();
    let members = h.stable(2);
    let same = h.rejoining(&members[1]);
    let metadata: Bytes = subscription(&["t", "u"]).into();
    let protocols = vec![Protocol { name: "range".into(), metadata: metadata.clone() }];
    let second = h.join(JoinRequest { protocols, ..same });
    assert_eq!(h.state(), "PreparingRebalance");
    let again = h.rejoining(&members[0]);
    let first = h.join(again);
    let joined = h.joined(first);
    let told = joined.members.iter().find(|member| member.member_id == members[1].member_id).unwrap();
    assert_eq!(told.metadata, metadata);
    h.joined(second);
}

#[test]
fn members_that_do_not_join_in_time_are_out() {
    let mut h = Harness::new();
    let longer = JoinRequest { rebalance_timeout_ms: 40_000, session_timeout_ms: 60_000, ..joining() };
    let shorter = JoinRequest { session_timeout_ms: 60_000, ..joining() };
    let members = h.stable_with(vec![longer, shorter]);
    let token = h.join(joining());
    h.advance(39_999);
    assert_eq!(h.answer(token), None, "the longest rebalance timeout counts");
    h.advance(1);
    let joined = h.joined(token);
    assert_eq!((joined.generation_id, joined.members.len()), (3, 1));
    assert_eq!(joined.leader, joined.member_id, "the leader is out, the new one leads");
    assert_eq!(h.heartbeat(&members[0].member_id, 2), Err(Error::UnknownMemberId));
}

#[test]
fn a_second_join_of_a_waiting_member_takes_the_place_of_the_first() {
    let mut h = Harness::new();
    let members = h.stable(2);
    let leader = h.rejoining(&members[0]);
    let given_up = h.join(leader.clone());
    let waiting = h.join(leader);
    assert_eq!(h.join_refused(given_up).error, Error::RebalanceInProgress);
    let again = h.rejoining(&members[1]);
    h.join(again);
    assert_eq!(h.joined(waiting).generation_id, 3);
}

#[test]
fn a_new_member_does_not_wait_for_ever() {
    let mut h = Harness::with(Config { new_member_join_timeout_ms: 20_000, ..Config::default() });
    let patient = JoinRequest { rebalance_timeout_ms: 100_000, session_timeout_ms: 100_000, ..joining() };
    h.stable_with(vec![patient.clone()]);
    let token = h.join(patient);
    h.advance(19_999);
    assert_eq!(h.answer(token), None);
    h.advance(1);
    assert_eq!(h.join_refused(token), JoinRefused { error: Error::UnknownMemberId, member_id: String::new() });
}

#[test]
fn the_first_round_can_wait_for_more_members() {
    let config = Config { initial_rebalance_delay_ms: 3_000, ..Config::default() };
    let mut h = Harness::with(config.clone());
    let first = h.join(joining());
    h.advance(2_000);
    assert_eq!(h.answer(first), None);
    // Somebody joined, so it waits for three seconds more, counted from the end of the first three.
    let second = h.join(joining());
    h.advance(3_999);
    assert_eq!((h.answer(first), h.answer(second)), (None, None));
    h.advance(1);
    assert_eq!(h.joined(first).members.len() + h.joined(second).members.len(), 2);

    // The whole is never longer than the rebalance timeout.
    let mut h = Harness::with(config);
    let first = h.join(JoinRequest { rebalance_timeout_ms: 7_000, ..joining() });
    for _ in 0..6 {
        h.advance(1_000);
        h.join(JoinRequest { rebalance_timeout_ms: 7_000, ..joining() });
    }
    h.advance(999);
    assert_eq!(h.answer(first), None);
    h.advance(1);
    assert_eq!(h.joined(first).members.len(), 7);
}

#[test]
fn a_pending_member_that_claims_an_instance_contradicts_itself() {
    let mut h = Harness::new();
    let token = h.join(JoinRequest { member_id_required: true, ..joining() });
    let id = h.join_refused(token).member_id;
    let token = h.join(JoinRequest { member_id: id, ..static_joining("i") });
    assert_eq!(h.join_refused(token).error, Error::UnknownServerError);
}
