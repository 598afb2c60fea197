//! Streams groups on a simulated disk: the power is cut after each file operation of a broker under an application whose
//! topics it makes and whose tasks two members share, and whatever a member was told has to hold: its epoch is still good,
//! what it has is its own, who has left is gone, and what it has committed is there.

use std::collections::BTreeMap;

use doze::protocol::ErrorCode;
use doze::protocol::messages::create_topics::{CreatableTopic, CreateTopicsRequest};
use doze::protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use doze::protocol::messages::offset_fetch::{OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use doze::protocol::messages::streams_group_heartbeat::{
    RequestTaskIds, StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse, Subtopology, TopicInfo, Topology,
};
use doze::sys::sim::SimFileSystem;

use crate::broker::{Life, cut_after_each_operation};

/// What a member knows.
#[derive(Clone, Debug, Default)]
struct Member {
    epoch: i32,
    /// Its tasks; there is one subtopology.
    owned: Vec<i32>,
    /// It has tasks, so that all topics of the application were there.
    worked: bool,
    leaves: bool,
    has_left: bool,
}

#[derive(Debug, Default)]
struct Story {
    members: BTreeMap<&'static str, Member>,
    committed: i64,
    asked_to_commit: i64,
}

impl Story {
    /// A heartbeat that says everything, with a new epoch if it is to join or leave. What it is told, the member knows and does.
    fn beat(&mut self, life: &Life, id: &'static str, epoch: Option<i32>) -> Option<StreamsGroupHeartbeatResponse> {
        let member = self.members.entry(id).or_default();
        member.leaves |= epoch == Some(-1);
        let answer = life.call(0, &request(id, epoch.unwrap_or(member.epoch), &member.owned))?;
        if answer.error_code == 0 {
            (member.epoch, member.has_left) = (answer.member_epoch, member.leaves);
            if let Some(tasks) = &answer.active_tasks {
                member.owned = tasks.iter().flat_map(|ids| ids.partitions.clone()).collect();
                member.worked |= !member.owned.is_empty();
            }
        }
        Some(answer).filter(|answer| answer.error_code == 0)
    }

    fn commit(&mut self, life: &Life, offset: i64) -> Option<()> {
        self.asked_to_commit = offset;
        let partition = OffsetCommitRequestPartition { committed_offset: offset, ..Default::default() };
        let topic = OffsetCommitRequestTopic { name: "t".into(), partitions: vec![partition], ..Default::default() };
        let request = OffsetCommitRequest {
            group_id: "g".into(),
            member_id: "a".into(),
            generation_id_or_member_epoch: self.members["a"].epoch,
            topics: vec![topic],
            ..Default::default()
        };
        let answer = life.call(9, &request)?;
        if answer.topics[0].partitions[0].error_code != 0 {
            return None;
        }
        self.committed = offset;
        Some(())
    }
}

fn topology() -> Topology {
    let changelog = TopicInfo { name: "c".into(), ..Default::default() };
    let subtopology = Subtopology {
        subtopology_id: "0".into(),
        source_topics: vec!["t".into()],
        state_changelog_topics: vec![changelog],
        ..Default::default()
    };
    Topology { epoch: 0, subtopologies: vec![subtopology] }
}

fn request(member: &str, epoch: i32, owned: &[i32]) -> StreamsGroupHeartbeatRequest {
    let joins = epoch == 0;
    let owned = RequestTaskIds { subtopology_id: "0".into(), partitions: owned.to_vec() };
    StreamsGroupHeartbeatRequest {
        group_id: "g".into(),
        member_id: member.into(),
        member_epoch: epoch,
        rebalance_timeout_ms: if joins { 60_000 } else { -1 },
        topology: joins.then(topology),
        process_id: joins.then(|| member.to_owned()),
        active_tasks: Some(if joins { vec![] } else { vec![owned] }),
        standby_tasks: Some(vec![]),
        warmup_tasks: Some(vec![]),
        ..Default::default()
    }
}

/// `a` has the application to itself, `b` comes, they share it, `a` commits, `b` goes. Answers whether it came to its end.
fn tell(life: &Life, story: &mut Story) -> Option<()> {
    let topic = CreatableTopic { name: "t".into(), num_partitions: 4, replication_factor: 1, ..Default::default() };
    life.call(7, &CreateTopicsRequest { topics: vec![topic], ..Default::default() })?;
    life.look_up()?;
    story.beat(life, "a", Some(0))?;
    // The changelog is there now, unless the disk was gone by then.
    story.beat(life, "a", None)?;
    if story.members["a"].owned != [0, 1, 2, 3] {
        return None;
    }
    story.commit(life, 1)?;
    story.beat(life, "b", Some(0))?;
    story.beat(life, "a", None)?;
    story.beat(life, "a", None)?;
    story.beat(life, "b", None)?;
    assert_eq!((&story.members["a"].owned, &story.members["b"].owned), (&vec![0, 1], &vec![2, 3]));
    story.commit(life, 2)?;
    story.beat(life, "b", Some(-1))?;
    story.beat(life, "a", None)?;
    assert_eq!(story.members["a"].owned, [0, 1, 2, 3]);
    story.commit(life, 3)
}

/// Answers how many members there were to look at.
fn check(seed: u64, fs: SimFileSystem, story: &Story) -> usize {
    let life = Life::start(seed, fs).expect("it starts after the cut");
    life.look_up().expect("a look-up is answered");
    let mut owners: BTreeMap<i32, &str> = BTreeMap::new();
    let mut looked_at = 0;
    for (id, member) in story.members.iter().filter(|(_, member)| member.epoch != 0) {
        for task in member.owned.iter().filter(|_| !member.leaves) {
            assert_eq!(owners.insert(*task, id), None, "{task} has two owners; {story:?}");
        }
        let epoch = if member.has_left { 9 } else { member.epoch };
        let answer = life.call(0, &request(id, epoch, &member.owned)).expect("a heartbeat is answered");
        let error = ErrorCode::from_code(answer.error_code);
        match member {
            Member { has_left: true, .. } => {
                assert_eq!(error, Some(ErrorCode::UnknownMemberId), "{id} has left; {story:?}")
            }
            Member { leaves: true, .. } => {}
            _ => {
                assert_eq!(error, Some(ErrorCode::None), "{id} is fenced: {:?}; {story:?}", answer.error_message);
                assert!(answer.member_epoch >= member.epoch, "{id} is set back; {story:?}");
                let missing = answer.status.iter().flatten().count();
                assert!(missing == 0 || !member.worked, "{id} worked, and now topics are missing; {answer:?}");
            }
        }
        looked_at += 1;
    }
    let topics = OffsetFetchRequestTopics { name: "t".into(), partition_indexes: vec![0], ..Default::default() };
    let group = OffsetFetchRequestGroup { group_id: "g".into(), topics: Some(vec![topics]), ..Default::default() };
    let fetched = life.call(9, &OffsetFetchRequest { groups: vec![group], ..Default::default() });
    let offset =
        fetched.expect("an offset fetch is answered").groups[0].topics[0].partitions[0].committed_offset.max(0);
    assert!((story.committed..=story.asked_to_commit).contains(&offset), "{offset} is committed; {story:?}");
    looked_at
}

#[test]
fn the_power_is_cut_after_each_file_operation_of_a_streams_group() {
    let (cuts, looked_at) = cut_after_each_operation(tell, check);
    println!("{cuts} power cuts, {looked_at} members looked at");
    assert!(cuts > 60 && looked_at > 40, "{cuts} cuts, {looked_at} members");
}
