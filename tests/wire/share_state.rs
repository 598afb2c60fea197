//! The state of share groups as brokers keep it (KIP-932), over the wire: what the group has, changed past the members that are
//! at work, and of groups that there are not.

use doze::protocol::ErrorCode::*;
use doze::protocol::Uuid;
use doze::protocol::messages::delete_share_group_state::{self, DeleteShareGroupStateRequest, DeleteStateData};
use doze::protocol::messages::initialize_share_group_state::{
    self, InitializeShareGroupStateRequest, InitializeStateData,
};
use doze::protocol::messages::read_share_group_state::{
    self, PartitionResult as State, ReadShareGroupStateRequest, ReadStateData,
};
use doze::protocol::messages::read_share_group_state_summary::{
    self, ReadShareGroupStateSummaryRequest, ReadStateSummaryData,
};
use doze::protocol::messages::write_share_group_state::{
    self, StateBatch, WriteShareGroupStateRequest, WriteStateData,
};

use crate::asks::*;
use crate::harness::{Broker, Client};
use crate::share_groups::{ACCEPT, Member, QUICK, RELEASE, prepare};

/// Asks about partition 0 of a topic for a group.
struct Coordinator {
    client: Client,
    topic_id: Uuid,
    group: &'static str,
}

impl Coordinator {
    fn new(broker: &Broker, group: &'static str, topic_id: Uuid) -> Self {
        Coordinator { client: broker.connect(), topic_id, group }
    }

    fn initialize(&mut self, state_epoch: i32, start_offset: i64) -> i16 {
        let partition = initialize_share_group_state::PartitionData { partition: 0, state_epoch, start_offset };
        let topics = vec![InitializeStateData { topic_id: self.topic_id, partitions: vec![partition] }];
        let request = InitializeShareGroupStateRequest { group_id: self.group.into(), topics };
        self.client.call(0, &request).results[0].partitions[0].error_code
    }

    fn read(&mut self, leader_epoch: i32) -> State {
        let partition = read_share_group_state::PartitionData { partition: 0, leader_epoch };
        let topics = vec![ReadStateData { topic_id: self.topic_id, partitions: vec![partition] }];
        let request = ReadShareGroupStateRequest { group_id: self.group.into(), topics };
        self.client.call(0, &request).results.remove(0).partitions.remove(0)
    }

    /// The start offset and the batches: offsets, delivery states and delivery counts.
    #[track_caller]
    fn state(&mut self) -> (i64, Vec<(i64, i64, i8, i16)>) {
        let state = self.read(-1);
        assert_eq!((state.error_code, &state.error_message), (0, &Option::None));
        let shown = |batch: &read_share_group_state::StateBatch| {
            (batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
        };
        (state.start_offset, state.state_batches.iter().map(shown).collect())
    }

    fn write(&mut self, start_offset: i64, batches: &[(i64, i64, i8, i16)]) -> i16 {
        let batch = |(first_offset, last_offset, delivery_state, delivery_count): &(i64, i64, i8, i16)| StateBatch {
            first_offset: *first_offset,
            last_offset: *last_offset,
            delivery_state: *delivery_state,
            delivery_count: *delivery_count,
        };
        let partition = write_share_group_state::PartitionData {
            partition: 0,
            state_epoch: -1,
            leader_epoch: -1,
            start_offset,
            delivery_complete_count: 0,
            state_batches: batches.iter().map(batch).collect(),
        };
        let topics = vec![WriteStateData { topic_id: self.topic_id, partitions: vec![partition] }];
        let request = WriteShareGroupStateRequest { group_id: self.group.into(), topics };
        self.client.call(1, &request).results[0].partitions[0].error_code
    }

    fn delete(&mut self) -> i16 {
        let partition = delete_share_group_state::PartitionData { partition: 0 };
        let topics = vec![DeleteStateData { topic_id: self.topic_id, partitions: vec![partition] }];
        let request = DeleteShareGroupStateRequest { group_id: self.group.into(), topics };
        self.client.call(0, &request).results[0].partitions[0].error_code
    }

    /// Start offset and number of records that are done with.
    fn summary(&mut self) -> (i64, i32) {
        let partition = read_share_group_state_summary::PartitionData::default();
        let topics = vec![ReadStateSummaryData { topic_id: self.topic_id, partitions: vec![partition] }];
        let request = ReadShareGroupStateSummaryRequest { group_id: self.group.into(), topics };
        let result = self.client.call(1, &request).results.remove(0).partitions.remove(0);
        assert_eq!(result.error_code, 0);
        (result.start_offset, result.delivery_complete_count)
    }
}

#[test]
fn what_a_group_has_is_read_and_what_others_write_counts_when_it_is_read_in_again() {
    let broker = Broker::start_with(QUICK);
    let topic = prepare(&mut broker.connect(), 10);
    let mut coordinator = Coordinator::new(&broker, "g", topic);
    assert_code(coordinator.read(-1).error_code, InvalidRequest);
    let mut a = Member::new(&broker, "a", topic);
    assert_eq!((coordinator.state(), coordinator.summary()), ((-1, vec![]), (-1, -1)), "nobody has fetched yet");
    assert_eq!(a.acquire(&[]), [(0, 9, 1)]);
    assert_eq!(coordinator.state(), (0, vec![]));
    for (first, last, kind) in [(0, 1, ACCEPT), (3, 3, ACCEPT), (4, 4, RELEASE)] {
        assert_eq!(a.acknowledge(first, last, kind), 0);
    }
    assert_eq!(coordinator.state(), (2, vec![(3, 3, 2, 1), (4, 4, 0, 1)]));
    assert_eq!(coordinator.summary(), (2, 1));
    // Past the member that has them: it knows nothing of it, and its own word adds to what is there.
    assert_eq!(coordinator.write(-1, &[(6, 7, 2, 3), (9, 9, 0, 2)]), 0);
    assert_eq!(a.acknowledge(8, 8, ACCEPT), 0);
    assert_eq!(a.acknowledge(6, 6, RELEASE), 0);
    let state = (2, vec![(3, 3, 2, 1), (4, 4, 0, 1), (6, 7, 2, 3), (8, 8, 2, 1), (9, 9, 0, 2)]);
    assert_eq!(coordinator.state(), state);
    let mut b = Member::new(&broker, "b", topic);
    assert_eq!(b.acquire(&[]), [(4, 4, 2), (6, 6, 2)], "records are handed out by what is in memory");
    let broker = broker.kill().start();
    let mut coordinator = Coordinator::new(&broker, "g", topic);
    assert_eq!(coordinator.state(), state);
    let mut c = Member::new(&broker, "c", topic);
    assert_eq!(c.acquire(&[]), [(2, 2, 1), (4, 4, 2), (5, 5, 1), (9, 9, 3)]);
}

#[test]
fn whoever_is_fenced_acknowledges_and_fetches_no_more() {
    let broker = Broker::start_with(QUICK);
    let topic = prepare(&mut broker.connect(), 5);
    let mut a = Member::new(&broker, "a", topic);
    assert_eq!(a.acquire(&[]), [(0, 4, 1)]);
    let mut coordinator = Coordinator::new(&broker, "g", topic);
    assert_eq!(coordinator.read(1).error_code, 0, "there is another leader");
    assert_code(a.acknowledge(0, 0, ACCEPT), NotLeaderOrFollower);
    let refused = a.fetch(0, &[]);
    assert_code(refused.error_code, NotLeaderOrFollower);
    assert_eq!(coordinator.state(), (0, vec![]), "nothing was stored");
}

#[test]
fn what_is_deleted_takes_no_acknowledgement_until_it_is_initialized_again() {
    let broker = Broker::start_with(QUICK);
    let topic = prepare(&mut broker.connect(), 5);
    let mut a = Member::new(&broker, "a", topic);
    assert_eq!(a.acquire(&[]), [(0, 4, 1)]);
    let mut coordinator = Coordinator::new(&broker, "g", topic);
    assert_eq!(coordinator.delete(), 0);
    assert_code(a.acknowledge(0, 0, ACCEPT), UnknownServerError);
    let refused = a.fetch(0, &[]);
    assert_code(refused.error_code, UnknownServerError);
    assert_eq!(coordinator.initialize(9, 3), 0);
    assert_eq!(a.acquire(&[]), [(3, 4, 1)]);
    assert_eq!(a.acknowledge(3, 3, ACCEPT), 0);
    assert_eq!(coordinator.state(), (4, vec![]));
    assert_eq!(coordinator.read(-1).state_epoch, 9);
}

#[test]
fn state_without_a_group_outlives_a_kill_and_goes_with_its_topic() {
    let broker = Broker::start_with(QUICK);
    let topic = create_topic(&mut broker.connect(), "t", 1);
    let other = create_topic(&mut broker.connect(), "other", 1);
    let mut coordinator = Coordinator::new(&broker, "nobody", topic);
    assert_eq!((coordinator.initialize(4, 6), coordinator.write(7, &[(8, 9, 0, 2)])), (0, 0));
    assert_eq!(Coordinator::new(&broker, "nobody", other).initialize(0, 1), 0);
    let broker = broker.kill().start();
    let mut coordinator = Coordinator::new(&broker, "nobody", topic);
    assert_eq!(coordinator.state(), (7, vec![(8, 9, 0, 2)]));
    assert_code(coordinator.initialize(3, 0), FencedStateEpoch);
    assert_eq!(coordinator.initialize(4, -1), 0);
    delete_topic(&mut coordinator.client, "t");
    assert_code(coordinator.initialize(9, 0), UnknownTopicOrPartition);
    assert_code(coordinator.read(-1).error_code, InvalidRequest);
    let broker = broker.kill().start();
    let mut coordinator = Coordinator::new(&broker, "nobody", other);
    assert_eq!(coordinator.state(), (1, vec![]));
    assert_eq!(coordinator.delete(), 0);
    let broker = broker.kill().start();
    assert_code(Coordinator::new(&broker, "nobody", other).read(-1).error_code, InvalidRequest);
}
