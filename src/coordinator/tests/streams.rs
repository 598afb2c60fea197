//! The rules of the streams group protocol: joining, reconciling, fencing, leaving, timeouts, commits, endpoints, restarts,
//! and groups that were of another kind.

use super::*;

/// What `Topology` and its parts are made of in these tests.
pub fn internal(name: &str, partitions: i32) -> InternalTopic {
    InternalTopic { name: name.into(), partitions, replication_factor: 0, configs: BTreeMap::new() }
}

pub fn subtopology(id: &str, sources: &[&str]) -> Subtopology {
    let source_topics = sources.iter().map(|topic| (*topic).to_owned()).collect();
    Subtopology { id: id.into(), source_topics, ..Subtopology::default() }
}

/// One subtopology that reads `t`, without state.
pub fn stateless() -> Topology {
    Topology { epoch: 0, subtopologies: vec![subtopology("0", &["t"])] }
}

/// Words of `t` go through a repartition topic and are counted.
pub fn counting() -> Topology {
    let words = Subtopology { sink_topics: vec!["r".into()], ..subtopology("0", &["t"]) };
    let counts = Subtopology {
        repartition_sources: vec![internal("r", 0)],
        changelogs: vec![internal("c", 0)],
        ..subtopology("1", &[])
    };
    Topology { epoch: 0, subtopologies: vec![words, counts] }
}

/// Subtopologies with partitions.
pub type Ids<'a> = &'a [(&'a str, &'a [i32])];

pub fn tasks(ids: Ids) -> TaskSet {
    ids.iter().map(|(id, partitions)| (Arc::from(*id), partitions.iter().copied().collect())).collect()
}

/// A new member of group `g`, in a process of its own.
pub fn starting(member: &str, topology: Topology) -> StreamsHeartbeatRequest {
    StreamsHeartbeatRequest {
        group_id: "g".into(),
        member_id: member.into(),
        member_epoch: 0,
        endpoint_epoch: -1,
        instance_id: None,
        rack_id: None,
        rebalance_timeout_ms: 30_000,
        client_id: "client".into(),
        client_host: "/127.0.0.1".into(),
        topology: Some(topology),
        active: Some(TaskSet::new()),
        standby: Some(TaskSet::new()),
        warmup: Some(TaskSet::new()),
        process_id: Some(format!("process of {member}")),
        endpoint: None,
        client_tags: None,
        has_task_offsets: false,
        has_task_end_offsets: false,
        shutdown: false,
    }
}

/// A heartbeat with nothing new.
pub fn running(member: &str, epoch: i32) -> StreamsHeartbeatRequest {
    StreamsHeartbeatRequest {
        member_epoch: epoch,
        rebalance_timeout_ms: -1,
        topology: None,
        active: None,
        standby: None,
        warmup: None,
        process_id: None,
        ..starting(member, stateless())
    }
}

pub fn having(member: &str, epoch: i32, active: Ids) -> StreamsHeartbeatRequest {
    having_both(member, epoch, active, &[])
}

pub fn having_both(member: &str, epoch: i32, active: Ids, standby: Ids) -> StreamsHeartbeatRequest {
    StreamsHeartbeatRequest {
        active: Some(tasks(active)),
        standby: Some(tasks(standby)),
        warmup: Some(TaskSet::new()),
        ..running(member, epoch)
    }
}

/// Settings under which nothing waits.
pub fn at_once() -> Config {
    let mut config = Config::default();
    config.streams.initial_rebalance_delay_ms = 0;
    config.streams.assignment_interval_ms = 0;
    config
}

impl Harness {
    /// One in which nothing waits and these topics have so many partitions.
    pub fn streaming(topics: &[(&str, i32)]) -> Self {
        let mut h = Harness::with(at_once());
        h.set_topics(topics);
        h
    }

    pub fn stream(&mut self, request: StreamsHeartbeatRequest) -> Token {
        let token = self.token();
        let actions = self.coordinator.streams_heartbeat(self.now(), token, request);
        self.take(actions);
        self.coordinator.check();
        token
    }

    pub fn streamed(&mut self, token: Token) -> Result<StreamsHeartbeat, (Error, String)> {
        match self.answer(token) {
            Some(Reply::StreamsHeartbeat(result)) => {
                result.map(|answer| *answer).map_err(|refused| (refused.error, refused.message))
            }
            other => panic!("not an answer to a heartbeat: {other:?}"),
        }
    }

    /// Sends a heartbeat whose answer is at hand.
    #[track_caller]
    pub fn hears(&mut self, request: StreamsHeartbeatRequest) -> StreamsHeartbeat {
        let token = self.stream(request);
        self.streamed(token).unwrap()
    }

    pub fn turned_away(&mut self, request: StreamsHeartbeatRequest) -> (Error, String) {
        let token = self.stream(request);
        self.streamed(token).unwrap_err()
    }

    pub fn streams_state(&self) -> &'static str {
        self.coordinator.describe_streams("g").map_or("none", |group| group.state)
    }
}

/// The epoch and the active tasks that an answer tells.
pub fn active(answer: &StreamsHeartbeat) -> (i32, Option<TaskSet>) {
    (answer.member_epoch, answer.tasks.as_ref().map(|tasks| tasks.active.clone()))
}

pub fn statuses(answer: &StreamsHeartbeat) -> Vec<StreamsStatus> {
    answer.statuses.iter().map(|(status, _)| *status).collect()
}

#[test]
fn tasks_are_given_up_before_they_are_given() {
    let mut h = Harness::streaming(&[("t", 4)]);
    let all: Ids = &[("0", &[0, 1, 2, 3])];
    assert_eq!(active(&h.hears(starting("a", stateless()))), (2, Some(tasks(all))));
    assert_eq!(active(&h.hears(running("a", 2))), (2, None), "nothing new");
    assert_eq!(active(&h.hears(starting("b", stateless()))), (3, Some(tasks(&[]))), "everything is somebody's");
    assert_eq!(h.streams_state(), "Reconciling");
    assert_eq!(active(&h.hears(running("a", 2))), (2, Some(tasks(&[("0", &[0, 1])]))), "the rest is to be given up");
    assert_eq!(active(&h.hears(running("a", 2))), (2, None), "not yet");
    assert_eq!(active(&h.hears(running("b", 3))), (3, None));
    assert_eq!(active(&h.hears(having("a", 2, &[("0", &[0, 1])]))), (3, None));
    assert_eq!(active(&h.hears(running("b", 3))), (3, Some(tasks(&[("0", &[2, 3])]))));
    assert_eq!(h.streams_state(), "Stable");
    // Who leaves makes room.
    assert_eq!(h.hears(running("b", -1)).member_epoch, -1);
    assert_eq!(active(&h.hears(running("a", 3))), (4, Some(tasks(all))));
    h.advance(45_000);
    assert_eq!(h.streams_state(), "Empty", "and so does who falls silent");
    assert_eq!(h.turned_away(running("a", 4)).0, Error::UnknownMemberId);
}

#[test]
fn who_does_not_give_up_tasks_in_time_is_out() {
    let mut h = Harness::streaming(&[("t", 2)]);
    h.hears(starting("a", stateless()));
    h.hears(starting("b", stateless()));
    h.hears(running("a", 2));
    h.advance(29_000);
    h.hears(running("a", 2));
    h.hears(running("b", 3));
    h.advance(1_000);
    assert_eq!(h.turned_away(running("a", 2)).0, Error::UnknownMemberId);
    assert_eq!(active(&h.hears(running("b", 3))), (4, Some(tasks(&[("0", &[0, 1])]))));
}

#[test]
fn requests_that_make_no_sense_are_refused_in_kafkas_words() {
    let mut h = Harness::streaming(&[("t", 1)]);
    let a = || starting("a", stateless());
    let some = Some(tasks(&[("0", &[0])]));
    let invalid = [
        (StreamsHeartbeatRequest { instance_id: Some("i".into()), ..a() }, "Static membership is not yet supported."),
        (StreamsHeartbeatRequest { has_task_offsets: true, ..a() }, "TaskOffsets are not supported yet."),
        (StreamsHeartbeatRequest { has_task_end_offsets: true, ..a() }, "TaskEndOffsets are not supported yet."),
        (StreamsHeartbeatRequest { warmup: some.clone(), ..a() }, "WarmupTasks are not supported yet."),
        (StreamsHeartbeatRequest { member_id: String::new(), ..a() }, "MemberId can't be empty."),
        (StreamsHeartbeatRequest { group_id: String::new(), ..a() }, "GroupId can't be empty."),
        (StreamsHeartbeatRequest { rack_id: Some(String::new()), ..a() }, "RackId can't be empty."),
        (
            StreamsHeartbeatRequest { rebalance_timeout_ms: -1, ..a() },
            "RebalanceTimeoutMs must be provided in first request.",
        ),
        (StreamsHeartbeatRequest { active: some.clone(), ..a() }, "ActiveTasks must be empty when (re-)joining."),
        (StreamsHeartbeatRequest { standby: some.clone(), ..a() }, "StandbyTasks must be empty when (re-)joining."),
        (StreamsHeartbeatRequest { topology: None, ..a() }, "Topology must be non-null when (re-)joining."),
        (StreamsHeartbeatRequest { member_epoch: -2, ..a() }, "InstanceId can't be null."),
        (
            StreamsHeartbeatRequest { member_epoch: -3, ..a() },
            "MemberEpoch is -3, but must be greater than or equal to -2.",
        ),
        (
            StreamsHeartbeatRequest { standby: None, warmup: None, ..having("a", 2, &[]) },
            "If one task-type is non-null, all must be non-null.",
        ),
        (StreamsHeartbeatRequest { member_epoch: 2, ..a() }, "Topology can only be provided when (re-)joining."),
    ];
    for (request, message) in invalid {
        assert_eq!(h.turned_away(request.clone()), (Error::InvalidRequest, message.to_owned()), "{request:?}");
    }
    assert_eq!(h.turned_away(running("a", 2)), (Error::GroupIdNotFound, "Streams group g not found.".into()));
    assert_eq!(h.turned_away(running("a", -1)), (Error::GroupIdNotFound, "Group g not found.".into()));
    assert_eq!(h.coordinator.list(&[], &[]), [], "nothing of all that made a group");
    h.hears(a());
    assert_eq!(h.turned_away(running("b", 2)).1, "Member b is not a member of group g.");
    let (error, message) = h.turned_away(having("a", 2, &[("1", &[0])]));
    assert_eq!((error, message.as_str()), (Error::InvalidRequest, "Subtopology 1 does not exist in the topology."));
    let (error, message) = h.turned_away(having("a", 2, &[("0", &[1])]));
    assert_eq!(error, Error::InvalidRequest);
    assert_eq!(message, "Task 1 for subtopology 0 is invalid. Number of tasks for this subtopology: 1");
}

#[test]
fn wrong_epochs_are_fenced_and_lost_answers_are_not() {
    let mut h = Harness::streaming(&[("t", 4)]);
    h.hears(starting("a", stateless()));
    h.hears(starting("b", stateless()));
    h.hears(running("a", 2));
    assert_eq!(h.hears(having("a", 2, &[("0", &[0, 1])])).member_epoch, 3);
    assert_eq!(h.turned_away(running("a", 4)).0, Error::FencedMemberEpoch);
    assert_eq!(h.turned_away(running("a", 2)).0, Error::FencedMemberEpoch, "it does not say what it has");
    assert_eq!(h.turned_away(having("a", 2, &[("0", &[0, 1, 2])])).0, Error::FencedMemberEpoch);
    let told = Some(tasks(&[("0", &[0, 1])]));
    assert_eq!(active(&h.hears(having("a", 2, &[("0", &[0])]))), (3, told.clone()), "the answer with epoch 3 was lost");
    assert_eq!(active(&h.hears(starting("a", stateless()))), (3, told), "whoever starts over is told everything");
    h.hears(running("b", 3));
    // The answer that gave it its tasks was lost, and they came without a new epoch.
    assert_eq!(active(&h.hears(having("b", 3, &[]))), (3, Some(tasks(&[("0", &[2, 3])]))));
    assert_eq!(active(&h.hears(having("b", 3, &[("0", &[2, 3])]))), (3, None));
}

#[test]
fn the_first_assignment_waits_for_more_members() {
    let mut config = at_once();
    config.streams.initial_rebalance_delay_ms = 3_000;
    let mut h = Harness::with(config);
    h.set_topics(&[("t", 2)]);
    let answer = h.hears(starting("a", stateless()));
    assert_eq!(active(&answer), (1, Some(tasks(&[]))));
    let detail = "Assignment delayed due to the configured initial rebalance delay.";
    assert_eq!(answer.statuses, [(StreamsStatus::AssignmentDelayed, detail.to_owned())]);
    assert_eq!(h.streams_state(), "Assigning");
    h.advance(2_000);
    assert_eq!(active(&h.hears(starting("b", stateless()))), (1, Some(tasks(&[]))));
    h.advance(999);
    assert_eq!(active(&h.hears(running("a", 1))), (1, None));
    h.advance(1);
    assert_eq!(active(&h.hears(running("a", 1))), (3, Some(tasks(&[("0", &[0])]))));
    assert_eq!(active(&h.hears(running("b", 1))), (3, Some(tasks(&[("0", &[1])]))));
    assert_eq!(h.streams_state(), "Stable");
    // One that comes later does not wait.
    assert_eq!(h.hears(starting("c", stateless())).statuses, []);
}

#[test]
fn assignments_are_made_no_faster_than_they_may_be() {
    let mut config = at_once();
    config.streams.assignment_interval_ms = 1_000;
    let mut h = Harness::with(config);
    h.set_topics(&[("t", 2)]);
    assert_eq!(h.hears(starting("a", stateless())).member_epoch, 2);
    let answer = h.hears(starting("b", stateless()));
    let detail = "Assignment delayed due to the configured assignment interval.";
    assert_eq!(answer.statuses, [(StreamsStatus::AssignmentDelayed, detail.to_owned())]);
    assert_eq!(active(&answer), (2, Some(tasks(&[]))));
    h.advance(1_000);
    assert_eq!(h.hears(running("b", 2)).member_epoch, 3);
}

#[test]
fn standbys_are_kept_in_other_processes() {
    let mut config = at_once();
    config.streams.num_standby_replicas = 1;
    let mut h = Harness::with(config);
    h.set_topics(&[("t", 2), ("r", 2), ("c", 2)]);
    let answer = h.hears(starting("a", counting()));
    assert_eq!(answer.tasks.unwrap().standby, tasks(&[]), "there is no other process");
    h.hears(starting("b", counting()));
    h.hears(running("a", 2));
    let (kept, copies): (Ids, Ids) = (&[("0", &[0]), ("1", &[0])], &[("1", &[1])]);
    let answer = h.hears(having("a", 2, kept));
    assert_eq!(answer.tasks.unwrap(), Tasks { active: tasks(kept), standby: tasks(copies) });
    let answer = h.hears(running("b", 3));
    let others = Tasks { active: tasks(&[("0", &[1]), ("1", &[1])]), standby: tasks(&[("1", &[0])]) };
    assert_eq!(answer.tasks, Some(others));
    // Whoever has a copy takes over; it gives the copy up first.
    h.hears(running("b", -1));
    let told = h.hears(having_both("a", 3, kept, copies)).tasks.unwrap();
    assert_eq!(told, Tasks { active: tasks(kept), standby: tasks(&[]) });
    let told = h.hears(having("a", 3, kept)).tasks.unwrap();
    assert_eq!(told.active, tasks(&[("0", &[0, 1]), ("1", &[0, 1])]));
    // Another number of standbys is a reason for a new target.
    let Config { consumer, share, .. } = Config::default();
    let mut settings = GroupSettings { consumer, share, streams: at_once().streams };
    settings.streams.num_standby_replicas = 0;
    h.hears(starting("b", counting()));
    let before = h.coordinator.describe_streams("g").unwrap().epoch;
    h.coordinator.set_group_settings(BTreeMap::from([("g".into(), settings)]));
    h.hears(running("b", before));
    assert_eq!(h.coordinator.describe_streams("g").unwrap().epoch, before + 1);
}

#[test]
fn threads_of_one_process_wait_for_each_other() {
    let mut config = at_once();
    config.streams.num_standby_replicas = 1;
    let mut h = Harness::with(config);
    let topology = Topology {
        epoch: 0,
        subtopologies: vec![Subtopology { changelogs: vec![internal("c", 0)], ..subtopology("0", &["t"]) }],
    };
    h.set_topics(&[("t", 1), ("c", 1)]);
    let of = |request, process: &str| StreamsHeartbeatRequest { process_id: Some(process.into()), ..request };
    h.hears(of(starting("a", topology.clone()), "p"));
    let answer = h.hears(of(starting("b", topology.clone()), "q"));
    assert_eq!(answer.tasks.unwrap().standby, tasks(&[("0", &[0])]));
    h.hears(running("a", 2));
    // A second thread of q; then a goes, and q has the task active in one of its threads once the copy is closed.
    h.hears(of(starting("c", topology), "q"));
    h.hears(running("a", -1));
    let epoch = h.hears(running("b", 3)).member_epoch;
    let told = [h.hears(running("c", 4)), h.hears(having("b", epoch, &[])), h.hears(running("c", 5))];
    let active: usize = told.iter().filter_map(|answer| Some(answer.tasks.as_ref()?.active.len())).sum();
    assert_eq!(active, 1, "{told:?}");
}

#[test]
fn a_member_that_comes_back_in_another_process_starts_anew() {
    let mut h = Harness::streaming(&[("t", 2)]);
    h.hears(starting("a", stateless()));
    let other = StreamsHeartbeatRequest { process_id: Some("another".into()), ..starting("a", stateless()) };
    assert_eq!(active(&h.hears(other)), (3, Some(tasks(&[("0", &[0, 1])]))));
}

#[test]
fn one_member_can_stop_the_whole_application() {
    let mut h = Harness::streaming(&[("t", 2)]);
    h.hears(starting("a", stateless()));
    h.hears(starting("b", stateless()));
    let answer = h.hears(StreamsHeartbeatRequest { shutdown: true, ..running("a", 2) });
    let detail =
        "Streams group member a encountered a fatal error and requested a shutdown for the entire application.";
    assert_eq!(answer.statuses, [(StreamsStatus::ShutdownApplication, detail.to_owned())]);
    h.hears(StreamsHeartbeatRequest { shutdown: true, ..running("a", -1) });
    assert_eq!(statuses(&h.hears(running("b", 3))), [StreamsStatus::ShutdownApplication]);
    h.hears(running("b", -1));
    assert_eq!(h.hears(starting("b", stateless())).statuses, [], "those who come later are not meant");
}

#[test]
fn members_are_told_where_partitions_are_served() {
    let mut h = Harness::streaming(&[("t", 4)]);
    let at = |port| Some(Endpoint { host: "localhost".into(), port });
    let served = |port, partitions: &[i32]| {
        let active = if partitions.is_empty() { vec![] } else { vec![("t".to_owned(), partitions.to_vec())] };
        EndpointPartitions { endpoint: at(port).unwrap(), active, standby: vec![] }
    };
    let answer = h.hears(StreamsHeartbeatRequest { endpoint: at(1), ..starting("a", stateless()) });
    assert_eq!((answer.endpoint_epoch, answer.endpoints), (1, Some(vec![served(1, &[0, 1, 2, 3])])));
    let knowing = |endpoint_epoch, request| StreamsHeartbeatRequest { endpoint_epoch, ..request };
    assert_eq!(h.hears(knowing(1, running("a", 2))).endpoints, None);
    let answer = h.hears(StreamsHeartbeatRequest { endpoint: at(2), ..starting("b", stateless()) });
    assert_eq!((answer.endpoint_epoch, answer.endpoints), (2, Some(vec![served(1, &[0, 1, 2, 3]), served(2, &[])])));
    let answer = h.hears(knowing(2, running("a", 2)));
    assert_eq!((answer.endpoint_epoch, answer.endpoints), (3, Some(vec![served(2, &[]), served(1, &[0, 1])])));
    // One without an endpoint hears of those that there are.
    let answer = h.hears(starting("c", stateless()));
    assert_eq!(answer.endpoints.unwrap().len(), 2);
    // The epoch goes on rising over a restart.
    h.restart(at_once());
    h.set_topics(&[("t", 4)]);
    let answer = h.hears(knowing(3, running("a", 2)));
    assert_eq!(answer.endpoint_epoch, 3);
}

#[test]
fn commits_come_with_an_epoch_of_the_member() {
    let mut h = Harness::streaming(&[("t", 4), ("other", 1)]);
    h.hears(starting("a", stateless()));
    h.hears(starting("b", stateless()));
    h.hears(running("a", 2));
    h.hears(having("a", 2, &[("0", &[0, 1])]));
    h.hears(running("b", 3));
    let commit = |h: &mut Harness, member: &str, epoch: i32, partition: i32| {
        let token =
            h.commit(CommitRequest { member_id: member.into(), generation_id: epoch, ..committing(partition, 7) });
        h.committed(token).map(|_| ())
    };
    assert_eq!(commit(&mut h, "a", 3, 0), Ok(()));
    assert_eq!(commit(&mut h, "a", 2, 0), Ok(()), "it has had the task since then");
    assert_eq!(commit(&mut h, "a", 2, 3), Err(Error::StaleMemberEpoch), "it is not its any more");
    assert_eq!(commit(&mut h, "b", 2, 3), Err(Error::StaleMemberEpoch), "it was not its yet");
    assert_eq!(commit(&mut h, "a", 4, 0), Err(Error::StaleMemberEpoch));
    assert_eq!(commit(&mut h, "c", 3, 0), Err(Error::UnknownMemberId));
    assert_eq!(commit(&mut h, "", -1, 0), Err(Error::UnknownMemberId));
    let old =
        CommitRequest { member_id: "a".into(), generation_id: 3, knows_group_id_not_found: false, ..committing(0, 7) };
    let token = h.commit(old);
    assert_eq!(h.committed(token), Err(Error::UnsupportedVersion));
    assert_eq!(h.coordinator.check_fetch("g", "a", 3), Ok(()));
    assert_eq!(h.coordinator.check_fetch("g", "a", 2), Err(Error::StaleMemberEpoch));
    assert_eq!(h.coordinator.check_fetch("g", "c", 3), Err(Error::UnknownMemberId));
    // In a transaction, too; there the error is another.
    let mut in_transaction = |member: &str, generation_id: i32| {
        let request = CommitRequest {
            member_id: member.into(),
            generation_id,
            knows_group_id_not_found: false,
            ..committing(0, 8)
        };
        let token = h.token();
        let producer = transactions::Producer { id: 9, epoch: 0 };
        let actions = h.coordinator.commit_in_transaction(h.now(), token, producer, request);
        h.take(actions);
        h.committed(token).map(|_| ())
    };
    assert_eq!(in_transaction("a", 3), Ok(()));
    assert_eq!(in_transaction("", -1), Ok(()), "a producer need not say for whom");
    assert_eq!(in_transaction("a", 4), Err(Error::IllegalGeneration));
    assert_eq!(in_transaction("c", 3), Err(Error::UnknownMemberId));
    // What the group reads is not to be forgotten while somebody does.
    let mut delete = |topic: &str| {
        let token = h.token();
        let topics = vec![(topic.to_owned(), vec![0])];
        let request = DeleteOffsetsRequest { group_id: "g".into(), topics };
        let actions = h.coordinator.delete_offsets(h.now(), token, request);
        h.take(actions);
        match h.answer(token) {
            Some(Reply::DeleteOffsets(Ok(outcomes))) => outcomes[0].1[0].1,
            other => panic!("not an answer to a deletion: {other:?}"),
        }
    };
    assert_eq!((delete("t"), delete("other")), (Err(Error::GroupSubscribedToTopic), Ok(())));
}

#[test]
fn a_group_takes_so_many_members() {
    let mut h = Harness::with(Config { streams_max_size: 1, ..at_once() });
    h.set_topics(&[("t", 1)]);
    h.hears(starting("a", stateless()));
    let (error, message) = h.turned_away(starting("b", stateless()));
    assert_eq!(error, Error::GroupMaxSizeReached);
    assert_eq!(message, "The streams group has reached its maximum capacity of 1 members.");
}

#[test]
fn an_empty_group_can_be_of_another_kind() {
    let mut h = Harness::streaming(&[("t", 2)]);
    let members = h.stable(1);
    let (error, message) = h.turned_away(starting("a", stateless()));
    assert_eq!((error, message.as_str()), (Error::GroupIdNotFound, "Group g is not a streams group."));
    let token = h.commit(committing_as(&members[0], 0, 42));
    h.committed(token).unwrap();
    h.leave(&[(&members[0].member_id, None)]);
    // Nobody comes in, so that it stays what it is.
    let impossible = Topology { epoch: 0, subtopologies: vec![subtopology("0", &[])] };
    assert_eq!(h.turned_away(starting("a", impossible)).0, Error::StreamsInvalidTopology);
    assert_eq!(h.coordinator.group_type("g"), Some(GroupType::Classic));
    h.hears(starting("a", stateless()));
    assert_eq!(h.coordinator.group_type("g"), Some(GroupType::Streams));
    assert_eq!(h.offset("t", 0), Some(42), "what it has committed is still there");
    let listed = h.coordinator.list(&["stable".into()], &["streams".into()]);
    assert_eq!((listed.len(), listed[0].protocol_type.as_str()), (1, "streams"));
    assert_eq!(h.coordinator.describe("g"), None);
    // The other way round, too.
    let token = h.join(joining());
    assert_eq!(
        h.join_refused(token),
        JoinRefused { error: Error::InconsistentGroupProtocol, member_id: String::new() }
    );
    let token = h.beat(super::consumer::entering("c"));
    assert_eq!(h.beaten(token), Err(Error::GroupIdNotFound));
    let token = h.token();
    let actions = h.coordinator.delete_group(h.now(), token, "g");
    h.take(actions);
    assert_eq!(h.answer(token), Some(Reply::DeleteGroup(Err(Error::NonEmptyGroup))));
    h.hears(running("a", -1));
    let token = h.beat(super::consumer::entering("c"));
    assert_eq!(h.beaten(token), Err(Error::GroupIdNotFound), "only classic groups take its place");
    let token = h.join(joining());
    h.joined(token);
    assert_eq!(h.coordinator.group_type("g"), Some(GroupType::Classic));
}

#[test]
fn groups_are_deleted_when_nobody_is_left() {
    let mut h = Harness::streaming(&[("t", 2)]);
    h.hears(starting("a", stateless()));
    h.hears(running("a", -1));
    assert_eq!(h.streams_state(), "Empty");
    let token = h.token();
    let actions = h.coordinator.delete_group(h.now(), token, "g");
    h.take(actions);
    assert_eq!(h.answer(token), Some(Reply::DeleteGroup(Ok(()))));
    assert_eq!((h.streams_state(), h.disk.groups.len()), ("none", 0));
    // The topology went with it.
    h.hears(starting("a", Topology { epoch: 7, subtopologies: vec![subtopology("other", &["t"])] }));
}

#[test]
fn a_restart_costs_no_rebalance() {
    let mut config = at_once();
    config.streams.num_standby_replicas = 1;
    let mut h = Harness::with(config.clone());
    let topics = [("t", 2), ("r", 2), ("c", 2)];
    h.set_topics(&topics);
    let tags = BTreeMap::from([("zone".to_owned(), "z".to_owned())]);
    h.hears(StreamsHeartbeatRequest {
        rack_id: Some("rack".into()),
        endpoint: Some(Endpoint { host: "localhost".into(), port: 65_535 }),
        client_tags: Some(tags),
        ..starting("a", counting())
    });
    h.hears(starting("b", counting()));
    h.hears(running("a", 2));
    let before = h.coordinator.describe_streams("g").unwrap();
    h.restart(config);
    h.set_topics(&topics);
    assert_eq!(h.coordinator.describe_streams("g").unwrap(), before);
    h.coordinator.check();
    let kept: &[(&str, &[i32])] = &[("0", &[0]), ("1", &[0])];
    let answer = h.hears(having("a", 2, kept));
    assert_eq!((answer.member_epoch, answer.statuses), (3, vec![]));
    assert_eq!(h.coordinator.describe_streams("g").unwrap().epoch, before.epoch);
    // Its bytes say nothing else wherever they are cut.
    let bytes = h.disk.groups["g"].clone();
    for cut in 0..bytes.len() {
        let result = h.coordinator.restore_group(h.now(), "cut", &bytes[..cut]);
        assert!(result.is_err(), "cut at {cut}");
    }
}

#[test]
fn nothing_is_told_that_could_not_be_stored() {
    let mut h = Harness::streaming(&[("t", 2)]);
    h.hears(starting("a", stateless()));
    h.prompt = false;
    let token = h.stream(starting("b", stateless()));
    assert_eq!(h.answer(token), None);
    assert_eq!(h.coordinator.describe_streams("g").unwrap().members.len(), 1, "nobody sees what is not durable");
    h.end_write(Err(WriteFailed));
    assert_eq!(h.streamed(token).unwrap_err().0, Error::NotCoordinator);
    h.coordinator.check();
    let described = h.coordinator.describe_streams("g").unwrap();
    assert_eq!((described.members.len(), described.epoch), (1, 2));
    h.prompt = true;
    assert_eq!(active(&h.hears(running("a", 2))), (2, None));
}
