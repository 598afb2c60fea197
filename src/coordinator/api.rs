//! What goes into the coordinator and what comes out of it: requests, replies, and actions for the caller to carry out.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::error::Error;
use super::offsets::CommittedOffset;
use super::pending::PendingOffset;
use super::streams::StreamsHeartbeat;
use crate::protocol::Uuid;

/// Names the request that a later [`Action::Reply`] answers. Chosen by the caller, who never uses one twice.
pub type Token = u64;

/// The time of an event, on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Steady time, for timeouts.
    pub monotonic: Duration,
    /// Milliseconds since the Unix epoch, for what is stored: commit times, expiry.
    pub wall_ms: i64,
}

/// What the caller has to do, in this order.
pub type Actions = Vec<Action>;

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Answer a request. Each token is answered exactly once.
    Reply { token: Token, reply: Reply },
    /// Make a write durable, then call [`persisted`](super::GroupCoordinator::persisted) with its id.
    Persist(Write),
}

/// Changes to what is stored of one group, in order: all of them or none. A group has one write under way at most, so the
/// order in which writes are carried out does not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    pub id: WriteId,
    pub group: Arc<str>,
    pub changes: Vec<Change>,
}

/// Names a write until its completion has been reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId(pub(super) u64);

/// One change to what is stored of a group. Putting replaces, removing what is not there is fine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The group's metadata, in the form that [`restore_group`](super::GroupCoordinator::restore_group) reads.
    PutGroup(Bytes),
    /// The group's metadata goes. Its offsets are named one by one.
    RemoveGroup,
    PutOffset {
        topic: Arc<str>,
        partition: i32,
        offset: CommittedOffset,
    },
    RemoveOffset {
        topic: Arc<str>,
        partition: i32,
    },
    /// An offset that a transaction will commit, under [`PendingOffsetKey`](super::PendingOffsetKey).
    PutPendingOffset {
        producer_id: i64,
        topic: Arc<str>,
        partition: i32,
        offset: PendingOffset,
    },
    RemovePendingOffset {
        producer_id: i64,
        topic: Arc<str>,
        partition: i32,
    },
    /// How far a share group has come in a partition, in the form of [`ShareState`](super::ShareState), under
    /// [`SharePartitionKey`](super::SharePartitionKey).
    PutSharePartition {
        topic: Uuid,
        partition: i32,
        value: Bytes,
    },
    RemoveSharePartition {
        topic: Uuid,
        partition: i32,
    },
}

/// The write did not become durable and left nothing behind. Whoever made the write has reported why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteFailed;

#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Join(Result<Joined, JoinRefused>),
    Sync(Result<Synced, Error>),
    /// One outcome a member, in the order of the request.
    Leave(Result<Vec<LeaveOutcome>, Error>),
    /// Topics and partitions in the order of the request.
    Commit(Result<PartitionOutcomes, Error>),
    FetchOffsets(FetchedOffsets),
    /// Topics and partitions in the order of the request.
    DeleteOffsets(Result<PartitionOutcomes, Error>),
    DeleteGroup(Result<(), Error>),
    TransactionEnded(Result<(), Error>),
    ConsumerHeartbeat(Result<ConsumerHeartbeat, ConsumerRefused>),
    ShareHeartbeat(Result<ShareHeartbeat, ConsumerRefused>),
    /// AlterShareGroupOffsets and DeleteShareGroupOffsets: all of what was asked for is done.
    ShareOffsets(Result<(), ConsumerRefused>),
    StreamsHeartbeat(Result<Box<StreamsHeartbeat>, ConsumerRefused>),
}

impl Reply {
    /// The same answer with a refusal in place of whatever it says.
    pub(super) fn refused(self, error: Error) -> Self {
        match self {
            Reply::Join(Ok(joined)) => Reply::Join(Err(JoinRefused { error, member_id: joined.member_id })),
            Reply::Join(Err(refused)) => Reply::Join(Err(JoinRefused { error, ..refused })),
            Reply::Sync(_) => Reply::Sync(Err(error)),
            Reply::Leave(_) => Reply::Leave(Err(error)),
            Reply::Commit(_) => Reply::Commit(Err(error)),
            Reply::DeleteOffsets(_) => Reply::DeleteOffsets(Err(error)),
            Reply::DeleteGroup(_) => Reply::DeleteGroup(Err(error)),
            Reply::TransactionEnded(_) => Reply::TransactionEnded(Err(error)),
            Reply::ConsumerHeartbeat(_) => {
                Reply::ConsumerHeartbeat(Err(ConsumerRefused { error, message: error.to_string() }))
            }
            Reply::ShareHeartbeat(_) => {
                Reply::ShareHeartbeat(Err(ConsumerRefused { error, message: error.to_string() }))
            }
            Reply::ShareOffsets(_) => Reply::ShareOffsets(Err(ConsumerRefused { error, message: error.to_string() })),
            Reply::StreamsHeartbeat(_) => {
                Reply::StreamsHeartbeat(Err(ConsumerRefused { error, message: error.to_string() }))
            }
            // Nothing is refused of what was only read.
            Reply::FetchOffsets(_) => self,
        }
    }

    /// What is answered in its place when what it says could not be stored.
    pub(super) fn not_stored(self) -> Self {
        self.refused(Error::NotCoordinator)
    }
}

/// A protocol (an assignor, for consumers) that a member can speak, and what the member says about itself in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocol {
    pub name: String,
    pub metadata: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinRequest {
    pub group_id: String,
    /// Empty for somebody new.
    pub member_id: String,
    pub group_instance_id: Option<String>,
    pub client_id: String,
    /// As it is shown in descriptions, for example `/127.0.0.1`.
    pub client_host: String,
    pub session_timeout_ms: i32,
    /// Version 0 of the request has none; the session timeout stands in for it.
    pub rebalance_timeout_ms: i32,
    pub protocol_type: String,
    /// In the member's order of preference.
    pub protocols: Vec<Protocol>,
    /// Whether a new member without an instance id has to join again with an id it is given (versions from 4 on).
    pub member_id_required: bool,
    /// Whether a returning static leader can be told to skip the assignment (versions from 9 on).
    pub can_skip_assignment: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    pub generation_id: i32,
    pub protocol_type: Option<String>,
    pub protocol_name: Option<String>,
    pub leader: String,
    pub skip_assignment: bool,
    pub member_id: String,
    /// Every member of the group for the leader, nobody for the others.
    pub members: Vec<JoinedMember>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedMember {
    pub member_id: String,
    pub group_instance_id: Option<String>,
    /// Of the protocol that was chosen.
    pub metadata: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinRefused {
    pub error: Error,
    /// The id that goes into the answer: the member's own, a new one with [`Error::MemberIdRequired`], or none.
    pub member_id: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncRequest {
    pub group_id: String,
    pub generation_id: i32,
    pub member_id: String,
    pub group_instance_id: Option<String>,
    pub protocol_type: Option<String>,
    pub protocol_name: Option<String>,
    /// Member id and assignment; from the leader only.
    pub assignments: Vec<(String, Bytes)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synced {
    pub protocol_type: Option<String>,
    pub protocol_name: Option<String>,
    pub assignment: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatRequest {
    pub group_id: String,
    pub generation_id: i32,
    pub member_id: String,
    pub group_instance_id: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaveRequest {
    pub group_id: String,
    pub members: Vec<LeavingMember>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeavingMember {
    /// Empty when an administrator removes a static member by its instance id.
    pub member_id: String,
    pub group_instance_id: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaveOutcome {
    pub member_id: String,
    pub group_instance_id: Option<String>,
    pub result: Result<(), Error>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitRequest {
    pub group_id: String,
    /// Empty for a consumer that manages its partitions by itself.
    pub member_id: String,
    pub group_instance_id: Option<String>,
    /// Negative for a consumer that manages its partitions by itself.
    pub generation_id: i32,
    /// Milliseconds from now after which the offsets may go (versions 2 to 4); -1 leaves it to the broker.
    pub retention_time_ms: i64,
    /// Whether the client knows GROUP_ID_NOT_FOUND as an answer to a commit (versions from 9 on).
    pub knows_group_id_not_found: bool,
    pub topics: Vec<(String, Vec<CommitPartition>)>,
}

impl CommitRequest {
    /// Whether it names a member on whose behalf it commits.
    pub(super) fn says_who(&self) -> bool {
        self.generation_id >= 0 || !self.member_id.is_empty() || self.group_instance_id.is_some()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitPartition {
    pub partition: i32,
    pub offset: i64,
    /// -1 when the client does not know it.
    pub leader_epoch: i32,
    /// Milliseconds since the Unix epoch (version 1 of the request); -1 for the broker's clock.
    pub timestamp_ms: i64,
    pub metadata: Option<String>,
}

/// For each topic: something about each of its partitions.
pub type ByPartition<T> = Vec<(String, Vec<(i32, T)>)>;

/// How it went with each partition.
pub type PartitionOutcomes = ByPartition<Result<(), Error>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchOffsetsRequest {
    pub group_id: String,
    /// Topics with partitions; `None` asks for everything that the group has committed.
    pub topics: Option<Vec<(String, Vec<i32>)>>,
    /// Whether to wait for commits that are on their way to the disk.
    pub require_stable: bool,
}

/// What is committed for each partition, `None` where nothing is. An error is about that partition alone.
pub type FetchedOffsets = ByPartition<Result<Option<CommittedOffset>, Error>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteOffsetsRequest {
    pub group_id: String,
    pub topics: Vec<(String, Vec<i32>)>,
}

/// What a member of a consumer group says about itself. What it leaves out (`None`, or -1 for the timeout) has not
/// changed since it said it last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerHeartbeatRequest {
    pub group_id: String,
    /// Empty for somebody new of version 0.
    pub member_id: String,
    /// 0 to join, -1 to leave, -2 for a static member that is to come back.
    pub member_epoch: i32,
    pub instance_id: Option<String>,
    pub rack_id: Option<String>,
    /// Milliseconds in which it gives up partitions when it is asked to.
    pub rebalance_timeout_ms: i32,
    pub client_id: String,
    /// As it is shown in descriptions, for example `/127.0.0.1`.
    pub client_host: String,
    pub topic_names: Option<Vec<String>>,
    /// Empty for none.
    pub topic_regex: Option<String>,
    pub server_assignor: Option<String>,
    /// Partitions that it has, by topic id.
    pub owned: Option<Vec<(Uuid, Vec<i32>)>>,
    /// Whether members make their own ids (versions from 1 on).
    pub member_id_required: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerHeartbeat {
    pub member_id: String,
    pub member_epoch: i32,
    /// Milliseconds; 0 for a member that has left.
    pub heartbeat_interval_ms: i32,
    /// What the member is to have now, by topic id; `None` if that is what it was told before.
    pub assignment: Option<Vec<(Uuid, Vec<i32>)>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerRefused {
    pub error: Error,
    /// For the client's log.
    pub message: String,
}

/// What a member of a share group says about itself. What it leaves out has not changed since it said it last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareHeartbeatRequest {
    pub group_id: String,
    pub member_id: String,
    /// 0 to join, -1 to leave.
    pub member_epoch: i32,
    pub rack_id: Option<String>,
    pub client_id: String,
    /// As it is shown in descriptions, for example `/127.0.0.1`.
    pub client_host: String,
    pub topic_names: Option<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareHeartbeat {
    pub member_id: String,
    pub member_epoch: i32,
    /// Milliseconds; 0 for a member that has left.
    pub heartbeat_interval_ms: i32,
    /// What the member is to fetch from now, by topic id; `None` if that is what it was told before.
    pub assignment: Option<Vec<(Uuid, Vec<i32>)>>,
}

/// A share group as ShareGroupDescribe shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedShareGroup {
    pub group_id: String,
    pub state: &'static str,
    pub epoch: i32,
    /// The epoch that the assignment was made for.
    pub assignment_epoch: i32,
    pub assignor: &'static str,
    pub members: Vec<DescribedShareMember>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedShareMember {
    pub member_id: String,
    pub rack_id: Option<String>,
    pub epoch: i32,
    pub client_id: String,
    pub client_host: String,
    pub topic_names: Vec<String>,
    pub assigned: Vec<AssignedTopic>,
}

/// A consumer group as ConsumerGroupDescribe shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedConsumerGroup {
    pub group_id: String,
    pub state: &'static str,
    pub epoch: i32,
    /// The epoch that the target assignment was made for.
    pub assignment_epoch: i32,
    pub assignor: String,
    pub members: Vec<DescribedConsumerMember>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedConsumerMember {
    pub member_id: String,
    pub instance_id: Option<String>,
    pub rack_id: Option<String>,
    /// -2 for a static member that is away.
    pub epoch: i32,
    pub client_id: String,
    pub client_host: String,
    pub topic_names: Vec<String>,
    pub topic_regex: Option<String>,
    pub assigned: Vec<AssignedTopic>,
    pub target: Vec<AssignedTopic>,
    /// Whether it speaks the classic protocol.
    pub is_classic: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignedTopic {
    pub id: Uuid,
    pub name: String,
    pub partitions: Vec<i32>,
}

/// Which protocol a group follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupType {
    Classic,
    Consumer,
    Share,
    Streams,
}

impl GroupType {
    /// As ListGroups shows it.
    pub fn name(self) -> &'static str {
        match self {
            GroupType::Classic => "classic",
            GroupType::Consumer => "consumer",
            GroupType::Share => "share",
            GroupType::Streams => "streams",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedGroup {
    pub group_id: String,
    /// Empty for a group that only holds offsets.
    pub protocol_type: String,
    pub state: &'static str,
    pub group_type: GroupType,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedGroup {
    pub group_id: String,
    pub state: &'static str,
    /// Empty for a group that only holds offsets.
    pub protocol_type: String,
    /// The chosen protocol; empty unless the group is Stable.
    pub protocol_name: String,
    pub members: Vec<DescribedMember>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedMember {
    pub member_id: String,
    pub group_instance_id: Option<String>,
    pub client_id: String,
    pub client_host: String,
    /// Empty unless the group is Stable.
    pub metadata: Bytes,
    pub assignment: Bytes,
}
