//! What the coordinator refuses with, under Kafka's own names. The broker maps each to its code on the wire.

use thiserror::Error;

/// Why a group or offset request was refused. The text names the protocol error, for logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Error {
    /// The group is being removed; the client finds the coordinator again and retries.
    #[error("COORDINATOR_NOT_AVAILABLE: the group is being removed")]
    CoordinatorNotAvailable,
    /// The change could not be made durable; the client finds the coordinator again and retries.
    #[error("NOT_COORDINATOR: the change could not be stored")]
    NotCoordinator,
    #[error("INVALID_GROUP_ID: the group id is empty")]
    InvalidGroupId,
    #[error("GROUP_ID_NOT_FOUND: there is no such group")]
    GroupIdNotFound,
    #[error("NON_EMPTY_GROUP: the group has members")]
    NonEmptyGroup,
    #[error("GROUP_MAX_SIZE_REACHED: the group takes no more members")]
    GroupMaxSizeReached,
    #[error("GROUP_SUBSCRIBED_TO_TOPIC: members of the group subscribe to the topic")]
    GroupSubscribedToTopic,
    #[error("INCONSISTENT_GROUP_PROTOCOL: the protocol type or names do not fit the group's")]
    InconsistentGroupProtocol,
    #[error("INVALID_SESSION_TIMEOUT: the session timeout is outside the allowed range")]
    InvalidSessionTimeout,
    /// The member is to join again with the member id that comes with this refusal.
    #[error("MEMBER_ID_REQUIRED: join again with the member id of this answer")]
    MemberIdRequired,
    #[error("UNKNOWN_MEMBER_ID: the group has no such member")]
    UnknownMemberId,
    /// Another member has taken this one's `group.instance.id`.
    #[error("FENCED_INSTANCE_ID: another member has this group instance id now")]
    FencedInstanceId,
    #[error("ILLEGAL_GENERATION: the generation is not the group's current one")]
    IllegalGeneration,
    #[error("REBALANCE_IN_PROGRESS: the group is rebalancing, join again")]
    RebalanceInProgress,
    /// A transaction that has not ended may still change the offset.
    #[error("UNSTABLE_OFFSET_COMMIT: a transaction that is open has an offset for the partition")]
    UnstableOffsetCommit,
    #[error("INVALID_PRODUCER_EPOCH: the end is of a transaction before the one that is open")]
    InvalidProducerEpoch,
    /// The transaction was open a moment ago.
    #[error("INVALID_TXN_STATE: the transaction that the offsets belong to is over")]
    TransactionOver,
    #[error("OFFSET_METADATA_TOO_LARGE: the metadata of a committed offset is too long")]
    OffsetMetadataTooLarge,
    #[error("INVALID_REQUEST: the request makes no sense")]
    InvalidRequest,
    #[error("UNSUPPORTED_VERSION: the request has to be made in a later version")]
    UnsupportedVersion,
    /// The member is not where it thinks; it gives up its partitions and joins anew.
    #[error("FENCED_MEMBER_EPOCH: the member's epoch is not the one that the group has for it")]
    FencedMemberEpoch,
    /// The member has not heard of its newest epoch yet; with that it may ask again.
    #[error("STALE_MEMBER_EPOCH: the member has a newer epoch")]
    StaleMemberEpoch,
    /// The member that has this `group.instance.id` has not left.
    #[error("UNRELEASED_INSTANCE_ID: another member still has this group instance id")]
    UnreleasedInstanceId,
    #[error("UNSUPPORTED_ASSIGNOR: the broker does not offer this assignor")]
    UnsupportedAssignor,
    #[error("STREAMS_INVALID_TOPOLOGY: the topology can never work")]
    StreamsInvalidTopology,
    #[error("INVALID_REGULAR_EXPRESSION: the subscription is not a regular expression")]
    InvalidRegularExpression,
    /// The request contradicts itself in a way that no client of Kafka's does.
    #[error("UNKNOWN_SERVER_ERROR: the request contradicts itself")]
    UnknownServerError,
}
