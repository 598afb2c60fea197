//! What a client may do, as Apache Kafka says it where no authorizer is set: everything that the kind of resource knows.
//!
//! The bits are those of Kafka's `AclOperation`: read 3, write 4, create 5, delete 6, alter 7, describe 8, cluster action 9,
//! describe configs 10, alter configs 11, idempotent write 12.

const READ: i32 = 1 << 3;
const WRITE: i32 = 1 << 4;
const CREATE: i32 = 1 << 5;
const DELETE: i32 = 1 << 6;
const ALTER: i32 = 1 << 7;
const DESCRIBE: i32 = 1 << 8;
const CLUSTER_ACTION: i32 = 1 << 9;
const DESCRIBE_CONFIGS: i32 = 1 << 10;
const ALTER_CONFIGS: i32 = 1 << 11;
const IDEMPOTENT_WRITE: i32 = 1 << 12;

pub const CLUSTER: i32 =
    CREATE | ALTER | DESCRIBE | CLUSTER_ACTION | DESCRIBE_CONFIGS | ALTER_CONFIGS | IDEMPOTENT_WRITE;
pub const TOPIC: i32 = READ | WRITE | CREATE | DELETE | ALTER | DESCRIBE | DESCRIBE_CONFIGS | ALTER_CONFIGS;
pub const GROUP: i32 = READ | DELETE | DESCRIBE | DESCRIBE_CONFIGS | ALTER_CONFIGS;

#[cfg(test)]
mod tests {
    /// What Apache Kafka 4.3.1 answers to Metadata v10 and DescribeGroups v3.
    #[test]
    fn the_bits_are_kafkas() {
        assert_eq!((super::CLUSTER, super::TOPIC, super::GROUP), (0x1fa0, 0x0df8, 0x0d48));
    }
}
