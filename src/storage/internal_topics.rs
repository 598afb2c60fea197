//! The topics in which Apache Kafka keeps what its coordinators know. Clients expect them to be there, so doze has topics of
//! these names. What coordinators know is in the catalog, and nothing is ever read from these topics: the broker copies it there for
//! those who read them, and the third is only there for those who ask for it.
//!
//! So a partition has no directory before something is copied to it, or somebody reads it: until then it is in the catalog
//! alone and costs nothing, neither on the disk nor at a start. Nobody waits for a flush of what is copied.

/// The offsets and members of groups.
pub const OFFSETS: &str = "__consumer_offsets";
/// Transactional ids and the transactions that are open.
pub const TRANSACTIONS: &str = "__transaction_state";
/// What share groups have delivered and not yet seen acknowledged.
pub const SHARE_STATE: &str = "__share_group_state";

/// Whether a topic of this name is one of these.
pub fn is_internal(topic: &str) -> bool {
    matches!(topic, OFFSETS | TRANSACTIONS | SHARE_STATE)
}
