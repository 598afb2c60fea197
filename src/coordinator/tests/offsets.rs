//! OffsetCommit, OffsetFetch, OffsetDelete, expiry.

use super::*;

fn fetch(h: &mut Harness, topics: Option<&[(&str, &[i32])]>, require_stable: bool) -> Token {
    let token = h.token();
    let topics = topics
        .map(|topics| topics.iter().map(|(topic, partitions)| ((*topic).to_owned(), partitions.to_vec())).collect());
    let actions =
        h.coordinator.fetch_offsets(token, FetchOffsetsRequest { group_id: "g".into(), topics, require_stable });
    h.take(actions);
    token
}

/// Topic, partition and offset of everything in an answer.
fn fetched(h: &mut Harness, token: Token) -> Vec<(String, i32, Option<i64>)> {
    let Some(Reply::FetchOffsets(topics)) = h.answer(token) else { panic!("not answered") };
    let mut flat = Vec::new();
    for (topic, partitions) in topics {
        for (partition, stored) in partitions {
            flat.push((topic.clone(), partition, stored.unwrap().map(|stored| stored.offset)));
        }
    }
    flat
}

fn delete(h: &mut Harness, topics: &[(&str, &[i32])]) -> Token {
    let token = h.token();
    let topics = topics.iter().map(|(topic, partitions)| ((*topic).to_owned(), partitions.to_vec())).collect();
    let actions = h.coordinator.delete_offsets(h.now(), token, DeleteOffsetsRequest { group_id: "g".into(), topics });
    h.take(actions);
    token
}

fn deleted(h: &mut Harness, token: Token) -> Result<PartitionOutcomes, Error> {
    match h.answer(token) {
        Some(Reply::DeleteOffsets(result)) => result,
        other => panic!("not an answer to a delete: {other:?}"),
    }
}

#[test]
fn a_consumer_without_a_group_commits_and_makes_one() {
    let mut h = Harness::new();
    let token = h.commit(committing(3, 42));
    assert_eq!(h.committed(token), Ok(vec![("t".into(), vec![(3, Ok(()))])]));
    let stored = CommittedOffset {
        offset: 42,
        leader_epoch: -1,
        metadata: String::new(),
        commit_timestamp_ms: START_MS,
        expire_timestamp_ms: None,
    };
    assert_eq!(h.stored("t", 3), Some(stored));
    assert_eq!((h.offset("t", 4), h.offset("u", 3)), (None, None));
    let listed = h.coordinator.list(&[], &[]);
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].state, listed[0].protocol_type.as_str()), ("Empty", ""));
}

#[test]
fn a_commit_counts_when_it_is_durable() {
    let mut h = Harness::new();
    let token = h.commit(committing(0, 1));
    h.committed(token).unwrap();
    h.prompt = false;
    let token = h.commit(committing(0, 2));
    assert_eq!((h.answer(token), h.offset("t", 0)), (None, Some(1)));
    h.end_write(Err(WriteFailed));
    assert_eq!(h.committed(token), Err(Error::NotCoordinator));
    assert_eq!(h.offset("t", 0), Some(1));
    let token = h.commit(committing(0, 3));
    h.end_write(Ok(()));
    h.committed(token).unwrap();
    assert_eq!(h.offset("t", 0), Some(3));
}

#[test]
fn a_first_commit_that_fails_leaves_no_group() {
    let mut h = Harness::new();
    h.prompt = false;
    let token = h.commit(committing(0, 2));
    h.end_write(Err(WriteFailed));
    assert_eq!(h.committed(token), Err(Error::NotCoordinator));
    assert_eq!(h.state(), "none");
}

#[test]
fn commits_that_come_while_one_is_written_are_written_together() {
    for outcome in [Ok(()), Err(WriteFailed)] {
        let mut h = Harness::new();
        h.prompt = false;
        let tokens: Vec<Token> = (1..=4).map(|offset| h.commit(committing(0, offset))).collect();
        assert_eq!(h.writes.len(), 1);
        assert_eq!(h.writes[0].changes.len(), 1);
        h.end_write(Err(WriteFailed));
        assert_eq!(h.committed(tokens[0]), Err(Error::NotCoordinator));
        assert_eq!((h.answer(tokens[1]), h.writes.len(), h.writes[0].changes.len()), (None, 1, 3));
        let late = h.commit(committing(0, 5));
        h.end_write(outcome);
        let expected: Vec<Result<(), Error>> = vec![outcome.map_err(|_| Error::NotCoordinator); 3];
        let committed: Vec<Result<(), Error>> =
            tokens[1..].iter().map(|token| h.committed(*token).map(|_| ())).collect();
        assert_eq!(committed, expected);
        assert_eq!(h.offset("t", 0), outcome.ok().map(|()| 4));
        h.end_write(Ok(()));
        h.committed(late).unwrap();
        assert_eq!((h.offset("t", 0), h.writes.len()), (Some(5), 0));
        let offset = h.stored("t", 0).unwrap();
        assert_eq!(h.disk.offsets.values().collect::<Vec<_>>(), [&offset.to_bytes()]);
    }
}

#[test]
fn a_commit_says_what_is_stored() {
    let mut h = Harness::new();
    let partition = |partition| CommitPartition {
        partition,
        offset: 5,
        leader_epoch: 9,
        timestamp_ms: 77,
        metadata: Some("note".into()),
    };
    let mut request = committing(0, 0);
    request.retention_time_ms = 1_000;
    request.topics = vec![("t".into(), vec![partition(0)]), ("u".into(), vec![partition(1), partition(2)])];
    let token = h.commit(request);
    let outcomes = vec![("t".into(), vec![(0, Ok(()))]), ("u".into(), vec![(1, Ok(())), (2, Ok(()))])];
    assert_eq!(h.committed(token), Ok(outcomes));
    let stored = CommittedOffset {
        offset: 5,
        leader_epoch: 9,
        metadata: "note".into(),
        commit_timestamp_ms: 77,
        expire_timestamp_ms: Some(START_MS + 1_000),
    };
    assert_eq!(h.stored("u", 2), Some(stored.clone()));
    h.restart(Config::default());
    assert_eq!(h.stored("t", 0), Some(stored));
}

#[test]
fn long_metadata_is_refused_for_its_partition_only() {
    let mut h = Harness::with(Config { offset_metadata_max_size: 4, ..Config::default() });
    let partition = |partition, metadata: &str| CommitPartition {
        partition,
        offset: 1,
        leader_epoch: -1,
        timestamp_ms: -1,
        metadata: Some(metadata.into()),
    };
    let mut request = committing(0, 0);
    // Kafka counts UTF-16 units: four of them in the second, six in the third.
    request.topics = vec![("t".into(), vec![partition(0, "12345"), partition(1, "äöüß"), partition(2, "😀😀😀")])];
    let token = h.commit(request.clone());
    let too_large = Err(Error::OffsetMetadataTooLarge);
    assert_eq!(h.committed(token), Ok(vec![("t".into(), vec![(0, too_large), (1, Ok(())), (2, too_large)])]));
    assert_eq!((h.offset("t", 0), h.offset("t", 1), h.offset("t", 2)), (None, Some(1), None));
    request.topics[0].1.truncate(1);
    h.prompt = false;
    let token = h.commit(request);
    assert_eq!(h.committed(token), Ok(vec![("t".into(), vec![(0, too_large)])]));
}

#[test]
fn members_commit_with_their_generation() {
    let mut h = Harness::new();
    let members = h.stable(2);
    let mut committed = |request: CommitRequest| {
        let token = h.commit(request);
        h.committed(token).map(|_| ())
    };
    let good = committing_as(&members[1], 0, 7);
    assert_eq!(committed(good.clone()), Ok(()));
    assert_eq!(committed(CommitRequest { generation_id: 1, ..good.clone() }), Err(Error::IllegalGeneration));
    assert_eq!(committed(CommitRequest { generation_id: -1, ..good.clone() }), Err(Error::IllegalGeneration));
    assert_eq!(committed(CommitRequest { member_id: "who".into(), ..good.clone() }), Err(Error::UnknownMemberId));
    assert_eq!(committed(committing(0, 8)), Err(Error::UnknownMemberId), "the group manages its offsets");
    let instance = CommitRequest { group_instance_id: Some("i".into()), ..good.clone() };
    assert_eq!(committed(instance), Err(Error::UnknownMemberId));
    let elsewhere = CommitRequest { group_id: "none".into(), ..good.clone() };
    assert_eq!(committed(elsewhere.clone()), Err(Error::GroupIdNotFound));
    let older = CommitRequest { knows_group_id_not_found: false, ..elsewhere };
    assert_eq!(committed(older), Err(Error::IllegalGeneration));
    // While a round is under way members still commit, until the next generation is there.
    let again = h.rejoining(&members[0]);
    let leading = h.join(again);
    let token = h.commit(CommitRequest { ..good });
    h.committed(token).unwrap();
    let again = h.rejoining(&members[1]);
    h.join(again);
    let leader = h.joined(leading);
    let token = h.commit(committing_as(&leader, 0, 9));
    assert_eq!(h.committed(token), Err(Error::RebalanceInProgress));
    assert_eq!(h.offset("t", 0), Some(7));
}

#[test]
fn committing_is_as_good_as_a_heartbeat() {
    let mut h = Harness::new();
    let members = h.stable(1);
    for round in 0..5 {
        h.advance(9_000);
        let token = h.commit(committing_as(&members[0], 0, round));
        h.committed(token).unwrap();
    }
    assert_eq!(h.state(), "Stable");
}

#[test]
fn some_or_all_offsets_are_fetched() {
    let mut h = Harness::new();
    for partition in [2, 0] {
        h.commit(committing(partition, i64::from(partition) + 10));
    }
    let mut request = committing(1, 5);
    request.topics[0].0 = "a".into();
    h.commit(request);
    let token = fetch(&mut h, None, false);
    let all = vec![("a".into(), 1, Some(5)), ("t".into(), 0, Some(10)), ("t".into(), 2, Some(12))];
    assert_eq!(fetched(&mut h, token), all);
    let token = fetch(&mut h, Some(&[("t", &[2, 1]), ("none", &[0])]), true);
    let some = vec![("t".into(), 2, Some(12)), ("t".into(), 1, None), ("none".into(), 0, None)];
    assert_eq!(fetched(&mut h, token), some);
    let token = h.token();
    let request = FetchOffsetsRequest { group_id: "none".into(), topics: None, require_stable: true };
    let actions = h.coordinator.fetch_offsets(token, request);
    h.take(actions);
    assert_eq!(fetched(&mut h, token), []);
}

#[test]
fn a_stable_fetch_waits_for_the_commits_before_it() {
    let mut h = Harness::new();
    h.prompt = false;
    let committing_first = h.commit(committing(0, 1));
    let waiting = fetch(&mut h, None, true);
    let at_once = fetch(&mut h, None, false);
    let committing_later = h.commit(committing(0, 2));
    assert_eq!(fetched(&mut h, at_once), []);
    assert_eq!(h.answer(waiting), None);
    h.end_write(Ok(()));
    h.committed(committing_first).unwrap();
    assert_eq!(fetched(&mut h, waiting), [("t".into(), 0, Some(1))]);
    h.end_write(Ok(()));
    h.committed(committing_later).unwrap();
}

#[test]
fn offsets_are_deleted_durably_unless_the_topic_is_in_use() {
    let mut h = Harness::new();
    let token = delete(&mut h, &[("t", &[0])]);
    assert_eq!(deleted(&mut h, token), Err(Error::GroupIdNotFound));
    let mut request = committing(0, 5);
    request.topics.push(("u".into(), request.topics[0].1.clone()));
    h.commit(request);
    h.stable(1);
    let subscribed = Err(Error::GroupSubscribedToTopic);
    h.prompt = false;
    let token = delete(&mut h, &[("t", &[0]), ("u", &[0, 9])]);
    assert_eq!(h.answer(token), None);
    assert_eq!(h.offset("u", 0), Some(5));
    h.end_write(Err(WriteFailed));
    assert_eq!(deleted(&mut h, token), Err(Error::NotCoordinator));
    assert_eq!(h.offset("u", 0), Some(5));
    let token = delete(&mut h, &[("t", &[0]), ("u", &[0, 9])]);
    h.end_write(Ok(()));
    let outcomes = vec![("t".into(), vec![(0, subscribed)]), ("u".into(), vec![(0, Ok(())), (9, Ok(()))])];
    assert_eq!(deleted(&mut h, token), Ok(outcomes));
    assert_eq!((h.offset("t", 0), h.offset("u", 0)), (Some(5), None));
    h.restart(Config::default());
    assert_eq!((h.offset("t", 0), h.offset("u", 0)), (Some(5), None));
}

#[test]
fn a_delete_covers_a_commit_that_is_on_its_way() {
    let mut h = Harness::new();
    h.commit(committing(1, 1));
    h.prompt = false;
    h.commit(committing(0, 5));
    let token = delete(&mut h, &[("t", &[0])]);
    h.end_write(Ok(()));
    assert_eq!(h.offset("t", 0), Some(5));
    h.end_write(Ok(()));
    deleted(&mut h, token).unwrap();
    assert_eq!(h.offset("t", 0), None);
    assert_eq!(h.disk.offsets.len(), 1);
}

#[test]
fn only_consumer_groups_let_offsets_go_while_they_have_members() {
    let mut h = Harness::new();
    let connect = JoinRequest { protocol_type: "connect".into(), ..joining() };
    h.join(connect);
    let token = delete(&mut h, &[("t", &[0])]);
    assert_eq!(deleted(&mut h, token), Err(Error::NonEmptyGroup));
    // A subscription that cannot be read may be to anything.
    let mut h = Harness::new();
    let protocols = vec![Protocol { name: "range".into(), metadata: Bytes::from_static(b"\x00") }];
    h.join(JoinRequest { protocols, ..joining() });
    let token = delete(&mut h, &[("u", &[0])]);
    assert_eq!(deleted(&mut h, token), Ok(vec![("u".into(), vec![(0, Err(Error::GroupSubscribedToTopic))])]));
    let token = h.token();
    let nameless = DeleteOffsetsRequest { group_id: String::new(), topics: vec![] };
    let actions = h.coordinator.delete_offsets(h.now(), token, nameless);
    h.take(actions);
    assert_eq!(deleted(&mut h, token), Err(Error::InvalidGroupId));
}

#[test]
fn a_deleted_topic_takes_its_offsets_along_in_every_group() {
    let mut h = Harness::new();
    for group in ["g", "h"] {
        for topic in ["t", "u"] {
            let mut request = committing(0, 5);
            request.group_id = group.into();
            request.topics[0].0 = topic.into();
            h.commit(request);
        }
    }
    h.prompt = false;
    h.commit(CommitRequest { group_id: "new".into(), ..committing(0, 9) });
    let actions = h.coordinator.topic_deleted(h.now(), "t");
    h.take(actions);
    h.prompt = true;
    h.take(Actions::new());
    let left: Vec<String> =
        h.disk.offsets.keys().map(|(group, topic, partition)| format!("{group} {topic}-{partition}")).collect();
    assert_eq!(left, ["g u-0", "h u-0"]);
    assert_eq!((h.offset("t", 0), h.offset("u", 0)), (None, Some(5)));
}

#[test]
fn offsets_stay_for_ever_unless_told_otherwise() {
    let mut h = Harness::new();
    h.commit(committing(0, 5));
    let mut request = committing(1, 5);
    request.retention_time_ms = 3_600_000;
    h.commit(request);
    h.advance(3_599_999);
    assert_eq!((h.offset("t", 0), h.offset("t", 1)), (Some(5), Some(5)));
    h.advance(600_000);
    assert_eq!((h.offset("t", 0), h.offset("t", 1)), (Some(5), None), "the client said how long");
    h.advance(365 * 86_400_000);
    assert_eq!(h.offset("t", 0), Some(5));
    assert_eq!(h.disk.offsets.len(), 1);
}

#[test]
fn offsets_of_a_group_without_members_expire_and_take_it_along() {
    const HOUR: u64 = 3_600_000;
    let config = Config { offsets_retention_ms: Some(HOUR as i64), ..Config::default() };
    // A group that never had members: from the commit on.
    let mut h = Harness::with(config.clone());
    h.commit(committing(0, 5));
    h.advance(HOUR - 1);
    assert_eq!(h.offset("t", 0), Some(5));
    h.advance(1);
    assert_eq!((h.offset("t", 0), h.state()), (None, "none"));
    assert_eq!(h.disk, Disk::default());

    // A group that had some: from when the last one left. Before that, only what nobody subscribes to.
    let mut h = Harness::with(config.clone());
    let members = h.stable_with(vec![JoinRequest { session_timeout_ms: 1_800_000, ..joining() }]);
    let mut request = committing_as(&members[0], 0, 5);
    request.topics.push(("u".into(), request.topics[0].1.clone()));
    h.commit(request);
    for _ in 0..8 {
        h.advance(HOUR / 4);
        assert_eq!(h.heartbeat(&members[0].member_id, 1), Ok(()));
    }
    assert_eq!((h.offset("t", 0), h.offset("u", 0)), (Some(5), None));
    h.leave(&[(&members[0].member_id, None)]);
    h.advance(HOUR - 1);
    assert_eq!((h.offset("t", 0), h.state()), (Some(5), "Empty"));
    h.advance(1);
    assert_eq!((h.offset("t", 0), h.state()), (None, "none"));
    assert_eq!(h.disk, Disk::default());
}
