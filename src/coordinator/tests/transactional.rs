//! Offsets that transactions commit.

use super::transactions::{Producer, Version};
use super::*;

const P: Producer = Producer { id: 7, epoch: 3 };

impl Harness {
    fn commit_pending(&mut self, producer: Producer, request: CommitRequest) -> Token {
        let token = self.token();
        let actions = self.coordinator.commit_in_transaction(self.now(), token, producer, request);
        self.take(actions);
        token
    }

    fn end_transaction(&mut self, producer: Producer, committed: bool) -> Token {
        let token = self.token();
        let actions = self.coordinator.end_transaction(self.now(), token, producer, Version::V1, committed);
        self.take(actions);
        self.coordinator.check();
        token
    }

    fn ended(&mut self, token: Token) -> Result<(), Error> {
        match self.answer(token) {
            Some(Reply::TransactionEnded(result)) => result,
            other => panic!("not an answer to an end: {other:?}"),
        }
    }

    /// What a reader that wants stable offsets is told of a partition of `t`.
    fn stable_offset(&mut self, partition: i32) -> Result<Option<i64>, Error> {
        let token = self.token();
        let topics = Some(vec![("t".to_owned(), vec![partition])]);
        let request = FetchOffsetsRequest { group_id: "g".into(), topics, require_stable: true };
        let actions = self.coordinator.fetch_offsets(token, request);
        self.take(actions);
        match self.answer(token) {
            Some(Reply::FetchOffsets(fetched)) => fetched[0].1[0].1.clone().map(|o| o.map(|o| o.offset)),
            other => panic!("not an answer to a fetch: {other:?}"),
        }
    }
}

#[test]
fn nobody_sees_an_offset_before_its_transaction_is_committed() {
    let mut h = Harness::new();
    let token = h.commit_pending(P, committing(0, 5));
    h.committed(token).unwrap();
    assert_eq!(h.offset("t", 0), None);
    assert_eq!(h.stable_offset(0), Err(Error::UnstableOffsetCommit));
    assert_eq!(h.stable_offset(1), Ok(None));
    let token = h.end_transaction(Producer { id: 8, epoch: 3 }, true);
    assert_eq!((h.ended(token), h.offset("t", 0)), (Ok(()), None), "of another producer");
    let token = h.end_transaction(P, true);
    assert_eq!(h.ended(token), Ok(()));
    assert_eq!((h.offset("t", 0), h.stable_offset(0)), (Some(5), Ok(Some(5))));
    assert!(h.disk.pending.is_empty());
    let token = h.commit_pending(P, committing(0, 9));
    h.committed(token).unwrap();
    let token = h.end_transaction(P, false);
    assert_eq!((h.ended(token), h.stable_offset(0)), (Ok(()), Ok(Some(5))));
    assert!(h.disk.pending.is_empty());
}

#[test]
fn pending_offsets_survive_a_restart_and_so_does_half_an_end() {
    let mut h = Harness::new();
    for group in ["g", "h"] {
        let token = h.commit_pending(P, CommitRequest { group_id: group.into(), ..committing(0, 5) });
        h.committed(token).unwrap();
    }
    h.restart(Config::default());
    assert_eq!(h.stable_offset(0), Err(Error::UnstableOffsetCommit));
    h.prompt = false;
    let token = h.end_transaction(P, true);
    assert_eq!(h.writes.len(), 2, "one for each group");
    h.end_write(Ok(()));
    h.end_write(Err(WriteFailed));
    assert_eq!(h.ended(token), Err(Error::NotCoordinator));
    assert_eq!(h.disk.pending.len(), 1);
    h.restart(Config::default());
    h.prompt = true;
    let token = h.end_transaction(P, true);
    assert_eq!(h.ended(token), Ok(()));
    assert_eq!((h.disk.pending.len(), h.disk.offsets.len()), (0, 2));
}

#[test]
fn an_end_waits_for_what_is_on_its_way_to_the_disk() {
    let mut h = Harness::new();
    h.prompt = false;
    let first = h.commit_pending(P, committing(0, 5));
    let second = h.commit_pending(P, committing(1, 6));
    let end = h.end_transaction(P, true);
    h.end_write(Ok(()));
    h.committed(first).unwrap();
    assert_eq!(h.answer(end), None);
    h.end_write(Ok(()));
    h.committed(second).unwrap();
    h.end_write(Ok(()));
    assert_eq!(h.ended(end), Ok(()));
    assert_eq!((h.offset("t", 0), h.offset("t", 1)), (Some(5), Some(6)));
    assert!(h.disk.pending.is_empty() && h.writes.is_empty());
}

#[test]
fn a_later_commit_outside_of_the_transaction_stays() {
    let mut h = Harness::new();
    let token = h.commit_pending(P, committing(0, 5));
    h.committed(token).unwrap();
    h.advance(1);
    let token = h.commit(committing(0, 7));
    h.committed(token).unwrap();
    let token = h.end_transaction(P, true);
    assert_eq!((h.ended(token), h.offset("t", 0)), (Ok(()), Some(7)));
}

/// Whatever the wall clock says of two commits, the one that was made later counts.
#[test]
fn a_clock_that_is_set_back_or_stands_still_does_not_change_which_commit_is_the_later() {
    let other = Producer { id: 8, epoch: 3 };
    for prompt in [true, false] {
        for set_back_ms in [0, 3_600_000] {
            // In turn: a commit, one in a transaction, a commit or one in another transaction, and the ends.
            for (after, expected) in [(None, 5), (Some(false), 7), (Some(true), 7)] {
                let what = format!("prompt: {prompt}, back by {set_back_ms} ms, then {after:?}");
                let mut h = Harness::new();
                h.prompt = prompt;
                let mut tokens = vec![h.commit(committing(0, 3))];
                h.wrong_ms -= set_back_ms;
                tokens.push(h.commit_pending(P, committing(0, 5)));
                h.wrong_ms -= set_back_ms;
                match after {
                    None => {}
                    Some(false) => tokens.push(h.commit(committing(0, 7))),
                    Some(true) => tokens.push(h.commit_pending(other, committing(0, 7))),
                }
                while !h.writes.is_empty() {
                    h.end_write(Ok(()));
                }
                tokens.into_iter().for_each(|token| drop(h.committed(token).unwrap()));
                h.prompt = true;
                // The later transaction ends first.
                for producer in [other, P] {
                    let token = h.end_transaction(producer, true);
                    assert_eq!(h.ended(token), Ok(()), "{what}");
                }
                assert_eq!(h.offset("t", 0), Some(expected), "{what}");
            }
        }
    }
}

#[test]
fn members_are_checked_where_the_client_names_them() {
    let mut h = Harness::new();
    let member = h.stable(1).remove(0);
    let mut refused = |request, error| {
        let token = h.commit_pending(P, request);
        assert_eq!(h.committed(token), Err(error));
    };
    let as_member = || committing_as(&member, 0, 5);
    refused(CommitRequest { generation_id: 99, ..as_member() }, Error::IllegalGeneration);
    refused(CommitRequest { member_id: "nobody".into(), ..as_member() }, Error::UnknownMemberId);
    refused(CommitRequest { group_instance_id: Some("i".into()), ..as_member() }, Error::UnknownMemberId);
    refused(CommitRequest { group_id: String::new(), ..as_member() }, Error::InvalidGroupId);
    refused(CommitRequest { group_id: "new".into(), ..as_member() }, Error::IllegalGeneration);
    for request in [as_member(), committing(1, 6)] {
        let token = h.commit_pending(P, request);
        h.committed(token).unwrap();
    }
}

#[test]
fn what_removes_offsets_removes_pending_ones_too() {
    let mut h = Harness::new();
    for partition in [0, 1] {
        let token = h.commit_pending(P, committing(partition, 5));
        h.committed(token).unwrap();
    }
    let token = h.token();
    let request = DeleteOffsetsRequest { group_id: "g".into(), topics: vec![("t".into(), vec![0])] };
    let actions = h.coordinator.delete_offsets(h.now(), token, request);
    h.take(actions);
    assert!(matches!(h.answer(token), Some(Reply::DeleteOffsets(Ok(_)))));
    assert_eq!((h.stable_offset(0), h.disk.pending.len()), (Ok(None), 1));
    let actions = h.coordinator.topic_deleted(h.now(), "t");
    h.take(actions);
    assert_eq!((h.stable_offset(1), h.disk.pending.len()), (Ok(None), 0));
    let token = h.commit_pending(P, committing(0, 5));
    h.committed(token).unwrap();
    let token = h.token();
    let actions = h.coordinator.delete_group(h.now(), token, "g");
    h.take(actions);
    assert_eq!(h.answer(token), Some(Reply::DeleteGroup(Ok(()))));
    assert!(h.disk.pending.is_empty());
    h.coordinator.check();
}

#[test]
fn a_group_with_pending_offsets_is_not_cleared_away() {
    let config = Config { offsets_retention_ms: Some(1_000), ..Config::default() };
    let mut h = Harness::with(config);
    let token = h.commit(committing(0, 1));
    h.committed(token).unwrap();
    let token = h.commit_pending(P, committing(0, 5));
    h.committed(token).unwrap();
    h.advance(3_600_000);
    assert_eq!((h.state(), h.offset("t", 0)), ("Empty", Some(1)));
    let token = h.end_transaction(P, false);
    h.ended(token).unwrap();
    h.advance(3_600_000);
    assert_eq!((h.state(), h.offset("t", 0)), ("none", None));
}

#[test]
fn the_end_of_a_transaction_before_is_refused() {
    let mut h = Harness::new();
    let token = h.commit_pending(P, committing(0, 5));
    h.committed(token).unwrap();
    h.restart(Config::default());
    let token = h.end_transaction(Producer { epoch: 2, ..P }, true);
    assert_eq!(h.ended(token), Err(Error::InvalidProducerEpoch));
    let token = h.token();
    let actions = h.coordinator.end_transaction(h.now(), token, P, Version::V2, true);
    h.take(actions);
    assert_eq!(h.ended(token), Err(Error::InvalidProducerEpoch), "an end of the second version has the next epoch");
    assert_eq!(h.offset("t", 0), None);
    let token = h.token();
    let actions = h.coordinator.end_transaction(h.now(), token, Producer { epoch: 4, ..P }, Version::V2, true);
    h.take(actions);
    assert_eq!((h.ended(token), h.offset("t", 0)), (Ok(()), Some(5)));
}
