//! The rules of the consumer group protocol: joining, reconciling, fencing, leaving, timeouts, subscriptions, restarts.

use super::*;
use crate::protocol::Uuid;

/// The id of a topic in these tests: made of its name.
pub fn topic_id(name: &str) -> Uuid {
    let mut id = [0; 16];
    id[..name.len()].copy_from_slice(name.as_bytes());
    Uuid(id)
}

/// A full heartbeat of a new member of group `g` that subscribes to `t`.
pub fn entering(member: &str) -> ConsumerHeartbeatRequest {
    ConsumerHeartbeatRequest {
        group_id: "g".into(),
        member_id: member.into(),
        member_epoch: 0,
        instance_id: None,
        rack_id: None,
        rebalance_timeout_ms: 30_000,
        client_id: "client".into(),
        client_host: "/127.0.0.1".into(),
        topic_names: Some(vec!["t".into()]),
        topic_regex: None,
        server_assignor: None,
        owned: Some(vec![]),
        member_id_required: true,
    }
}

/// A heartbeat with nothing new.
pub fn beating(member: &str, epoch: i32) -> ConsumerHeartbeatRequest {
    ConsumerHeartbeatRequest {
        member_epoch: epoch,
        rebalance_timeout_ms: -1,
        topic_names: None,
        owned: None,
        ..entering(member)
    }
}

pub fn owning(member: &str, epoch: i32, partitions: &[i32]) -> ConsumerHeartbeatRequest {
    let owned = if partitions.is_empty() { vec![] } else { vec![(topic_id("t"), partitions.to_vec())] };
    ConsumerHeartbeatRequest { owned: Some(owned), ..beating(member, epoch) }
}

impl Harness {
    /// One in which these topics have so many partitions.
    pub fn with_topics(topics: &[(&str, i32)]) -> Self {
        let mut h = Harness::new();
        h.set_topics(topics);
        h
    }

    pub fn set_topics(&mut self, topics: &[(&str, i32)]) {
        let metadata = |(name, partitions): &(&str, i32)| TopicMetadata {
            name: (*name).into(),
            id: topic_id(name),
            partitions: *partitions,
        };
        self.coordinator.set_topics(topics.iter().map(metadata).collect());
    }

    pub fn beat(&mut self, request: ConsumerHeartbeatRequest) -> Token {
        let token = self.token();
        let actions = self.coordinator.consumer_heartbeat(self.now(), token, request);
        self.take(actions);
        self.coordinator.check();
        token
    }

    pub fn beaten(&mut self, token: Token) -> Result<ConsumerHeartbeat, Error> {
        match self.answer(token) {
            Some(Reply::ConsumerHeartbeat(result)) => result.map_err(|refused| {
                assert!(!refused.message.is_empty());
                refused.error
            }),
            other => panic!("not an answer to a heartbeat: {other:?}"),
        }
    }

    /// Sends a heartbeat whose answer is at hand: the member's epoch, and its partitions of `t` if it is told of any.
    pub fn told(&mut self, request: ConsumerHeartbeatRequest) -> Result<(i32, Option<Vec<i32>>), Error> {
        let token = self.beat(request);
        self.beaten(token).map(|answer| (answer.member_epoch, answer.assignment.map(of_t)))
    }

    pub fn consumer_state(&self) -> &'static str {
        self.coordinator.describe_consumer("g").map_or("none", |group| group.state)
    }
}

fn of_t(assignment: Vec<(Uuid, Vec<i32>)>) -> Vec<i32> {
    assignment.into_iter().filter(|(topic, _)| *topic == topic_id("t")).flat_map(|(_, partitions)| partitions).collect()
}

/// A group of `a` and `b`, each of which has three of the six partitions of `t`.
fn two() -> Harness {
    let mut h = Harness::with_topics(&[("t", 6)]);
    assert_eq!(h.told(entering("a")), Ok((2, Some(vec![0, 1, 2, 3, 4, 5]))));
    h.advance(1_000);
    assert_eq!(h.told(entering("b")), Ok((3, Some(vec![]))));
    assert_eq!(h.told(owning("a", 2, &[0, 1, 2, 3, 4, 5])), Ok((2, Some(vec![0, 1, 2]))));
    assert_eq!(h.told(owning("a", 2, &[0, 1, 2])), Ok((3, None)));
    assert_eq!(h.told(beating("b", 3)), Ok((3, Some(vec![3, 4, 5]))));
    assert_eq!(h.consumer_state(), "Stable");
    h
}

#[test]
fn partitions_are_given_up_before_they_are_given() {
    let mut h = Harness::with_topics(&[("t", 6)]);
    assert_eq!(h.told(entering("a")), Ok((2, Some(vec![0, 1, 2, 3, 4, 5]))));
    assert_eq!(h.told(beating("a", 2)), Ok((2, None)), "nothing new");
    h.advance(1_000);
    assert_eq!(h.told(entering("b")), Ok((3, Some(vec![]))), "everything is somebody's");
    assert_eq!(h.consumer_state(), "Reconciling");
    assert_eq!(h.told(beating("b", 3)), Ok((3, None)));
    assert_eq!(h.told(beating("a", 2)), Ok((2, Some(vec![0, 1, 2]))), "the rest is to be given up");
    assert_eq!(h.told(owning("a", 2, &[0, 1, 2, 5])), Ok((2, None)), "not yet");
    assert_eq!(h.told(beating("b", 3)), Ok((3, None)));
    assert_eq!(h.told(owning("a", 2, &[0, 1, 2])), Ok((3, None)));
    assert_eq!(h.told(beating("b", 3)), Ok((3, Some(vec![3, 4, 5]))));
    assert_eq!(h.consumer_state(), "Stable");
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let mut h = Harness::with_topics(&[("t", 1)]);
    let a = || entering("a");
    let invalid = [
        ConsumerHeartbeatRequest { group_id: String::new(), ..a() },
        ConsumerHeartbeatRequest { member_id: String::new(), ..a() },
        ConsumerHeartbeatRequest { member_id: String::new(), member_id_required: false, member_epoch: 1, ..a() },
        ConsumerHeartbeatRequest { instance_id: Some(String::new()), ..a() },
        ConsumerHeartbeatRequest { rack_id: Some(String::new()), ..a() },
        ConsumerHeartbeatRequest { rebalance_timeout_ms: -1, ..a() },
        ConsumerHeartbeatRequest { owned: None, ..a() },
        ConsumerHeartbeatRequest { owned: Some(vec![(topic_id("t"), vec![0])]), ..a() },
        ConsumerHeartbeatRequest { topic_names: None, ..a() },
        ConsumerHeartbeatRequest { member_epoch: -2, ..a() },
        ConsumerHeartbeatRequest { member_epoch: -3, ..a() },
    ];
    for request in invalid {
        assert_eq!(h.told(request.clone()), Err(Error::InvalidRequest), "{request:?}");
    }
    let assignor = |name: &str| ConsumerHeartbeatRequest { server_assignor: Some(name.into()), ..a() };
    assert_eq!(h.told(assignor("sticky")), Err(Error::UnsupportedAssignor));
    let pattern = |pattern: &str| ConsumerHeartbeatRequest { topic_regex: Some(pattern.into()), ..a() };
    assert_eq!(h.told(pattern("[")), Err(Error::InvalidRegularExpression));
    assert_eq!(h.told(beating("a", 2)), Err(Error::GroupIdNotFound));
    assert_eq!(h.told(beating("a", -1)), Err(Error::GroupIdNotFound));
    assert_eq!(h.coordinator.list(&[], &[]), [], "nothing of all that made a group");
    assert_eq!(h.told(assignor("range")), Ok((2, Some(vec![0]))));
    assert_eq!(h.told(beating("b", 2)), Err(Error::UnknownMemberId));
    assert_eq!(h.coordinator.describe_consumer("g").unwrap().assignor, "range");
}

#[test]
fn a_broker_that_makes_the_ids_tells_them() {
    let mut h = Harness::with_topics(&[("t", 1)]);
    let token = h.beat(ConsumerHeartbeatRequest { member_id_required: false, ..entering("") });
    let answer = h.beaten(token).unwrap();
    assert_eq!(answer.member_id.len(), 22);
    assert_eq!(answer.heartbeat_interval_ms, 5_000);
    assert_eq!(h.told(beating(&answer.member_id, 2)), Ok((2, None)));
}

#[test]
fn wrong_epochs_are_fenced_and_lost_answers_are_not() {
    let mut h = two();
    assert_eq!(h.told(beating("a", 4)), Err(Error::FencedMemberEpoch));
    assert_eq!(h.told(beating("a", 2)), Err(Error::FencedMemberEpoch), "it does not say what it has");
    assert_eq!(h.told(owning("a", 2, &[0, 1, 2, 3])), Err(Error::FencedMemberEpoch));
    assert_eq!(h.told(owning("a", 2, &[0, 1])), Ok((3, Some(vec![0, 1, 2]))), "the answer with epoch 3 was lost");
    assert_eq!(h.told(entering("a")), Ok((3, Some(vec![0, 1, 2]))), "whoever starts over is told everything");
}

#[test]
fn who_leaves_or_falls_silent_makes_room() {
    let mut h = two();
    h.advance(1_000);
    assert_eq!(h.told(beating("b", -1)), Ok((-1, None)));
    assert_eq!(h.consumer_state(), "Assigning");
    assert_eq!(h.told(beating("a", 3)), Ok((4, Some(vec![0, 1, 2, 3, 4, 5]))));
    h.advance(1_000);
    assert_eq!(h.told(entering("c")), Ok((5, Some(vec![]))));
    h.advance(44_000);
    // `a` has 45 seconds from its last heartbeat, `c` from a second later.
    assert_eq!(h.told(beating("c", 5)), Ok((6, Some(vec![0, 1, 2, 3, 4, 5]))));
    h.advance(45_000);
    assert_eq!(h.consumer_state(), "Empty");
    assert_eq!(h.told(beating("c", 6)), Err(Error::UnknownMemberId));
}

#[test]
fn who_does_not_give_up_partitions_in_time_is_out() {
    let mut h = Harness::with_topics(&[("t", 2)]);
    assert_eq!(h.told(entering("a")), Ok((2, Some(vec![0, 1]))));
    h.advance(1_000);
    assert_eq!(h.told(entering("b")), Ok((3, Some(vec![]))));
    assert_eq!(h.told(owning("a", 2, &[0, 1])), Ok((2, Some(vec![0]))));
    for _ in 0..3 {
        h.advance(9_900);
        assert_eq!(h.told(owning("a", 2, &[0, 1])), Ok((2, None)));
        assert_eq!(h.told(beating("b", 3)), Ok((3, None)));
    }
    h.advance(300);
    assert_eq!(h.told(owning("a", 2, &[0, 1])), Err(Error::UnknownMemberId));
    assert_eq!(h.told(beating("b", 3)), Ok((4, Some(vec![0, 1]))));
}

#[test]
fn a_group_takes_no_more_than_it_may() {
    let mut h = Harness::with(Config { consumer_max_size: 1, ..Config::default() });
    assert_eq!(h.told(entering("a")), Ok((2, Some(vec![]))));
    assert_eq!(h.told(entering("b")), Err(Error::GroupMaxSizeReached));
    assert_eq!(h.told(entering("a")), Ok((2, Some(vec![]))));
}

#[test]
fn targets_are_made_no_faster_than_the_interval() {
    let mut h = Harness::with_topics(&[("t", 2)]);
    assert_eq!(h.told(entering("a")), Ok((2, Some(vec![0, 1]))));
    assert_eq!(h.told(entering("b")), Ok((2, Some(vec![]))));
    assert_eq!(h.consumer_state(), "Assigning");
    h.advance(1_000);
    assert_eq!(h.told(beating("b", 2)), Ok((3, None)));
    assert_eq!(h.consumer_state(), "Reconciling");
    // A group's own settings come before the broker's.
    let settings =
        ConsumerSettings { session_timeout_ms: 50_000, heartbeat_interval_ms: 7_000, assignment_interval_ms: 0 };
    let Config { share, streams, .. } = Config::default();
    let settings = GroupSettings { consumer: settings, share, streams };
    h.coordinator.set_group_settings([("g".into(), settings)].into());
    let token = h.beat(entering("c"));
    let answer = h.beaten(token).unwrap();
    assert_eq!((answer.member_epoch, answer.heartbeat_interval_ms), (4, 7_000));
    h.advance(49_000);
    // The others had the shorter session timeout and are out.
    assert_eq!(h.told(beating("c", 4)).map(|(epoch, _)| epoch), Ok(6));
}

#[test]
fn static_members_that_go_for_a_while_keep_their_partitions() {
    let mut h = Harness::with_topics(&[("t", 4)]);
    let of = |instance: &str, request| ConsumerHeartbeatRequest { instance_id: Some(instance.into()), ..request };
    assert_eq!(h.told(of("i", entering("a"))), Ok((2, Some(vec![0, 1, 2, 3]))));
    h.advance(1_000);
    assert_eq!(h.told(of("j", entering("b"))), Ok((3, Some(vec![]))));
    assert_eq!(h.told(of("i", owning("a", 2, &[0, 1]))), Ok((3, Some(vec![0, 1]))));
    assert_eq!(h.told(of("j", beating("b", 3))), Ok((3, Some(vec![2, 3]))));
    assert_eq!(h.told(of("i", entering("c"))), Err(Error::UnreleasedInstanceId));
    assert_eq!(h.told(of("i", beating("c", 3))), Err(Error::FencedInstanceId));
    assert_eq!(h.told(of("k", beating("c", 3))), Err(Error::UnknownMemberId));
    assert_eq!(h.told(of("i", beating("c", -2))), Err(Error::FencedInstanceId));
    assert_eq!(h.told(of("i", beating("a", -2))), Ok((-2, None)));
    h.advance(20_000);
    assert_eq!(h.told(of("j", beating("b", 3))), Ok((3, None)), "nobody gets what it had");
    assert_eq!(h.told(of("i", entering("c"))), Ok((3, Some(vec![0, 1]))));
    assert_eq!(h.told(of("i", beating("a", 3))), Err(Error::FencedInstanceId));
    // One that does not come back in time is out.
    assert_eq!(h.told(of("i", beating("c", -2))), Ok((-2, None)));
    h.advance(30_000);
    assert_eq!(h.told(of("j", beating("b", 3))), Ok((3, None)));
    h.advance(15_000);
    assert_eq!(h.told(of("j", beating("b", 3))), Ok((4, Some(vec![0, 1, 2, 3]))));
}

#[test]
fn changed_topics_are_assigned_anew() {
    let mut h = Harness::with_topics(&[]);
    assert_eq!(h.told(entering("a")), Ok((2, Some(vec![]))), "a topic may come later");
    h.set_topics(&[("other", 3)]);
    assert_eq!(h.told(beating("a", 2)), Ok((2, None)));
    h.set_topics(&[("other", 3), ("t", 2)]);
    h.advance(1_000);
    assert_eq!(h.told(beating("a", 2)), Ok((3, Some(vec![0, 1]))));
    h.set_topics(&[("t", 3)]);
    h.advance(1_000);
    assert_eq!(h.told(beating("a", 3)), Ok((4, Some(vec![0, 1, 2]))));
    h.set_topics(&[]);
    h.advance(1_000);
    assert_eq!(h.told(owning("a", 4, &[])), Ok((5, Some(vec![]))));
}

#[test]
fn expressions_follow_the_topics() {
    let mut h = Harness::with_topics(&[("t", 1), ("ta", 1), ("b", 1)]);
    let assigned = |h: &mut Harness, request| {
        let token = h.beat(request);
        let answer = h.beaten(token).unwrap();
        (answer.member_epoch, answer.assignment.map(|topics| topics.len()))
    };
    let by = |pattern: &str, request| ConsumerHeartbeatRequest {
        topic_names: None,
        topic_regex: Some(pattern.into()),
        ..request
    };
    assert_eq!(assigned(&mut h, by("x.*", entering("z"))), (1, Some(0)), "it means nothing yet");
    assert_eq!(h.told(beating("z", -1)), Ok((-1, None)));
    h.advance(1_000);
    assert_eq!(assigned(&mut h, by("t.*", entering("a"))), (3, Some(2)));
    h.set_topics(&[("t", 1), ("ta", 1), ("tb", 1), ("b", 1)]);
    h.advance(1_000);
    assert_eq!(assigned(&mut h, beating("a", 3)), (4, Some(3)));
    h.advance(1_000);
    assert_eq!(h.told(by("(", beating("a", 4))), Err(Error::InvalidRegularExpression));
    assert_eq!(assigned(&mut h, by("b", owning("a", 4, &[]))), (5, Some(1)));
    assert!(h.coordinator.describe_consumer("g").unwrap().members[0].topic_regex.as_deref() == Some("b"));
    // Names and an expression go together, and what is empty is none.
    let both = ConsumerHeartbeatRequest { topic_names: Some(vec!["t".into()]), ..by("b", beating("a", 5)) };
    h.advance(1_000);
    assert_eq!(assigned(&mut h, both), (6, Some(2)));
    h.advance(1_000);
    assert_eq!(assigned(&mut h, by("", owning("a", 6, &[0]))), (7, Some(1)));
}

#[test]
fn what_is_not_subscribed_to_any_more_goes_at_once() {
    let mut h = Harness::with_topics(&[("t", 1), ("u", 1)]);
    let to = |names: &[&str], request| ConsumerHeartbeatRequest {
        topic_names: Some(names.iter().map(|name| (*name).to_owned()).collect()),
        ..request
    };
    let token = h.beat(to(&["t", "u"], entering("a")));
    assert_eq!(h.beaten(token).unwrap().assignment.unwrap().len(), 2);
    // Before there is a new target.
    let token = h.beat(to(&["u"], beating("a", 2)));
    let answer = h.beaten(token).unwrap();
    assert_eq!((answer.member_epoch, answer.assignment), (2, Some(vec![(topic_id("u"), vec![0])])));
}

#[test]
fn nobody_is_told_what_is_not_durable() {
    let mut h = Harness::with_topics(&[("t", 2)]);
    h.prompt = false;
    let first = h.beat(entering("a"));
    let second = h.beat(beating("a", 2));
    assert_eq!((h.answer(first), h.answer(second)), (None, None));
    assert_eq!(h.consumer_state(), "none");
    assert_eq!(h.coordinator.list(&[], &[]), []);
    h.end_write(Ok(()));
    assert_eq!(h.beaten(first).unwrap().member_epoch, 2);
    assert_eq!(h.beaten(second).unwrap().member_epoch, 2);
    assert_eq!(h.consumer_state(), "Stable");
    h.advance(1_000);
    // What fails is refused and forgotten.
    let third = h.beat(entering("b"));
    assert_eq!(h.coordinator.describe_consumer("g").unwrap().members.len(), 1);
    h.end_write(Err(WriteFailed));
    assert_eq!(h.beaten(third), Err(Error::NotCoordinator));
    assert_eq!(h.coordinator.describe_consumer("g").unwrap().members.len(), 1);
    let fourth = h.beat(entering("b"));
    h.end_write(Ok(()));
    assert_eq!(h.beaten(fourth).unwrap().member_epoch, 3);
    assert_eq!(h.coordinator.describe_consumer("g").unwrap().members.len(), 2);
}

#[test]
fn a_restart_is_noticed_by_nobody() {
    let mut h = two();
    let before = h.coordinator.describe_consumer("g").unwrap();
    h.restart_with_topics(&[("t", 6)]);
    assert_eq!(h.coordinator.describe_consumer("g").unwrap(), before);
    assert_eq!(h.told(beating("a", 3)), Ok((3, None)));
    assert_eq!(h.told(beating("b", 3)), Ok((3, None)));
    // In the middle of a move.
    h.advance(1_000);
    assert_eq!(h.told(entering("c")), Ok((4, Some(vec![]))));
    assert_eq!(h.told(beating("a", 3)), Ok((3, Some(vec![0, 1]))));
    h.restart_with_topics(&[("t", 7)]);
    h.advance(1_000);
    assert_eq!(h.told(owning("a", 3, &[0, 1])), Ok((5, Some(vec![0, 1, 6]))), "the topic has grown meanwhile");
    assert_eq!(h.told(beating("c", 4)).unwrap().0, 5);
    h.advance(45_000);
    assert_eq!(h.consumer_state(), "Empty", "sessions start anew and end");
}

#[test]
fn commits_and_fetches_know_the_epoch() {
    let mut h = two();
    let commit = |h: &mut Harness, member: &str, epoch, partition| {
        let token =
            h.commit(CommitRequest { member_id: member.into(), generation_id: epoch, ..committing(partition, 7) });
        h.committed(token).map(drop)
    };
    assert_eq!(commit(&mut h, "a", 3, 0), Ok(()));
    assert_eq!(commit(&mut h, "a", 2, 0), Ok(()), "it has had the partition since then");
    assert_eq!(commit(&mut h, "b", 2, 3), Err(Error::StaleMemberEpoch));
    assert_eq!(commit(&mut h, "a", 2, 3), Err(Error::StaleMemberEpoch));
    assert_eq!(commit(&mut h, "a", 4, 0), Err(Error::StaleMemberEpoch));
    assert_eq!(commit(&mut h, "c", 3, 0), Err(Error::UnknownMemberId));
    assert_eq!(commit(&mut h, "", -1, 0), Err(Error::UnknownMemberId));
    let old =
        CommitRequest { member_id: "a".into(), generation_id: 3, knows_group_id_not_found: false, ..committing(0, 7) };
    let token = h.commit(old);
    assert_eq!(h.committed(token), Err(Error::UnsupportedVersion));
    assert_eq!(h.coordinator.check_fetch("g", "a", 3), Ok(()));
    assert_eq!(h.coordinator.check_fetch("g", "a", 2), Err(Error::StaleMemberEpoch));
    assert_eq!(h.coordinator.check_fetch("g", "x", 2), Err(Error::UnknownMemberId));
    for member in ["a", "b"] {
        assert_eq!(h.told(beating(member, -1)), Ok((-1, None)));
    }
    assert_eq!(commit(&mut h, "", -1, 0), Ok(()));
}

#[test]
fn groups_are_listed_described_and_deleted_by_what_they_are() {
    let mut h = two();
    let listed = h.coordinator.list(&["stable".into()], &["Consumer".into()]);
    assert_eq!((listed[0].protocol_type.as_str(), listed[0].group_type), ("consumer", GroupType::Consumer));
    assert_eq!(h.coordinator.list(&[], &["classic".into()]), []);
    assert_eq!((h.coordinator.describe("g"), h.coordinator.group_type("g")), (None, Some(GroupType::Consumer)));
    let described = h.coordinator.describe_consumer("g").unwrap();
    assert_eq!((described.epoch, described.assignment_epoch, described.assignor.as_str()), (3, 3, "uniform"));
    assert_eq!(described.members[0].assigned, described.members[0].target);
    assert_eq!(described.members[1].assigned[0].partitions, [0, 1, 2]);
    let delete = |h: &mut Harness| {
        let token = h.token();
        let actions = h.coordinator.delete_group(h.now(), token, "g");
        h.take(actions);
        h.answer(token).unwrap()
    };
    assert_eq!(delete(&mut h), Reply::DeleteGroup(Err(Error::NonEmptyGroup)));
    for member in ["a", "b"] {
        assert_eq!(h.told(beating(member, -1)), Ok((-1, None)));
    }
    assert_eq!(h.consumer_state(), "Empty");
    assert_eq!(delete(&mut h), Reply::DeleteGroup(Ok(())));
    assert!(h.disk.groups.is_empty());
    assert_eq!(h.coordinator.describe_consumer("g").unwrap_err().error, Error::GroupIdNotFound);
    assert_eq!(h.told(entering("a")).unwrap().0, 2, "a new group starts from nothing");
}

#[test]
fn damaged_bytes_are_never_worse_than_an_error() {
    let h = two();
    let good = h.disk.groups["g"].clone();
    let random = SeededRandom::new(3);
    for _ in 0..2_000 {
        let mut bytes = good.to_vec();
        match random.below(3) {
            0 => bytes.truncate(random.below(bytes.len())),
            _ => {
                for _ in 0..1 + random.below(3) {
                    let place = random.below(bytes.len());
                    bytes[place] = random.next() as u8;
                }
            }
        }
        let mut other = Harness::with_topics(&[("t", 6)]);
        let now = other.now();
        if other.coordinator.restore_group(now, "g", &bytes).is_ok() {
            let _ = other.beat(beating("a", 3));
            let _ = other.beat(entering("b"));
        }
    }
}

impl Harness {
    fn restart_with_topics(&mut self, topics: &[(&str, i32)]) {
        let config = self.coordinator.config.clone();
        self.restart(config);
        self.set_topics(topics);
    }
}
