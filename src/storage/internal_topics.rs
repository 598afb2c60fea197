//! The topics in which Apache Kafka keeps what its coordinators know. Clients expect them to be there, so doze has topics of
//! these names; what they would hold is in the catalog, and nothing is ever read from them. Nothing is written to the first two;
//! the third is only there for those who ask for it (the broker keeps a journal of share groups there).
//!
//! So their partitions have no directory: they are in the catalog alone and cost nothing, neither on the disk nor at a
//! start. A partition gets its directory when its log is opened because somebody reads it, and then is as empty as before.

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
