//! The tables of the catalog. This page is the documentation of `meta.db`: what stands in it, under which key, as what.
//!
//! The file is a [redb](https://www.redb.org) database (file format 3). Values that are more than a number are laid out
//! by [`super::codec`]; the version byte at the front of each lets one kind of value change without the others.

use redb::{Key, ReadTransaction, ReadableTable, Table, TableDefinition, TableError, Value, WriteTransaction};

use super::error::Failure;

/// The layout of the catalog as a whole. A file with a higher number is refused.
pub const FORMAT: u32 = 1;

/// | key | value |
/// |---|---|
/// | `format` | the number above, u32 big-endian |
/// | `cluster-id` | 22 characters, as Kafka shows it |
/// | `next-producer-id` | the first producer id that was never handed out, i64 big-endian |
pub const META: TableDefinition<&str, &[u8]> = TableDefinition::new("meta");
pub const META_FORMAT: &str = "format";
pub const META_CLUSTER_ID: &str = "cluster-id";
pub const META_NEXT_PRODUCER_ID: &str = "next-producer-id";

/// Topic name → version 0: id, partition count i32.
pub const TOPICS: TableDefinition<&str, &[u8]> = TableDefinition::new("topics");

/// Topic id → version 0: name, partition count i32. Topics that are deleted, with files that may still be there.
pub const DELETIONS: TableDefinition<[u8; 16], &[u8]> = TableDefinition::new("deletions");

/// (resource type, resource name, config key) → value. The type is Kafka's number of it ([`super::ResourceType`]); the
/// name is empty for the cluster-wide default of a type.
pub const CONFIGS: TableDefinition<(u8, &str, &str), &str> = TableDefinition::new("configs");

/// (group, topic name, partition) → version 0: offset i64, leader epoch i32 (-1 for none), metadata string, commit
/// timestamp ms i64, expire timestamp ms optional i64, topic id.
pub const OFFSETS: TableDefinition<(&str, &str, i32), &[u8]> = TableDefinition::new("offsets");

/// Group → bytes of the group coordinator, versioned by it.
pub const GROUPS: TableDefinition<&str, &[u8]> = TableDefinition::new("groups");

/// (topic id, partition) → log start offset, where it is not 0.
pub const LOG_STARTS: TableDefinition<([u8; 16], i32), i64> = TableDefinition::new("log-starts");

/// Transactional id → bytes of the transaction coordinator, versioned by it.
pub const TRANSACTIONAL_IDS: TableDefinition<&str, &[u8]> = TableDefinition::new("transactional-ids");

/// (space, key) → bytes, versioned by the owner of the space: SCRAM credentials, quotas, feature levels, share state,
/// pending offsets of transactions.
pub const STATE: TableDefinition<(&str, &[u8]), &[u8]> = TableDefinition::new("state");

/// All tables, open for writing.
pub(super) struct Tables<'txn> {
    pub meta: Table<'txn, &'static str, &'static [u8]>,
    pub topics: Table<'txn, &'static str, &'static [u8]>,
    pub deletions: Table<'txn, [u8; 16], &'static [u8]>,
    pub configs: Table<'txn, (u8, &'static str, &'static str), &'static str>,
    pub offsets: Table<'txn, (&'static str, &'static str, i32), &'static [u8]>,
    pub groups: Table<'txn, &'static str, &'static [u8]>,
    pub log_starts: Table<'txn, ([u8; 16], i32), i64>,
    pub transactional_ids: Table<'txn, &'static str, &'static [u8]>,
    pub state: Table<'txn, (&'static str, &'static [u8]), &'static [u8]>,
}

impl<'txn> Tables<'txn> {
    /// Opens the tables, making those that the file does not have yet.
    pub(super) fn open(transaction: &'txn WriteTransaction) -> Result<Self, TableError> {
        Ok(Tables {
            meta: transaction.open_table(META)?,
            topics: transaction.open_table(TOPICS)?,
            deletions: transaction.open_table(DELETIONS)?,
            configs: transaction.open_table(CONFIGS)?,
            offsets: transaction.open_table(OFFSETS)?,
            groups: transaction.open_table(GROUPS)?,
            log_starts: transaction.open_table(LOG_STARTS)?,
            transactional_ids: transaction.open_table(TRANSACTIONAL_IDS)?,
            state: transaction.open_table(STATE)?,
        })
    }
}

/// Reads every entry of every table.
pub(super) fn read_all(transaction: &ReadTransaction) -> Result<(), Failure> {
    fn read<K: Key + 'static, V: Value + 'static>(
        transaction: &ReadTransaction,
        table: TableDefinition<'_, K, V>,
    ) -> Result<(), Failure> {
        // One that nothing was ever put in is not there.
        let table = match transaction.open_table(table) {
            Err(TableError::TableDoesNotExist(_)) => return Ok(()),
            other => other?,
        };
        for entry in table.iter()? {
            let (key, value) = entry?;
            let _ = (key.value(), value.value());
        }
        Ok(())
    }
    read(transaction, META)?;
    read(transaction, TOPICS)?;
    read(transaction, DELETIONS)?;
    read(transaction, CONFIGS)?;
    read(transaction, OFFSETS)?;
    read(transaction, GROUPS)?;
    read(transaction, LOG_STARTS)?;
    read(transaction, TRANSACTIONAL_IDS)?;
    read(transaction, STATE)
}

/// The keys under `group` in [`OFFSETS`] that are of `topic`, found without reading the offsets of other topics.
pub(super) fn partitions_of_topic<T>(offsets: &T, group: &str, topic: &str) -> Result<Vec<i32>, redb::StorageError>
where
    T: ReadableTable<(&'static str, &'static str, i32), &'static [u8]>,
{
    offsets
        .range((group, topic, i32::MIN)..=(group, topic, i32::MAX))?
        .map(|entry| entry.map(|(key, _)| key.value().2))
        .collect()
}

/// The groups that have an offset, found by leaping from one to the next.
pub(super) fn groups_with_offsets<T>(offsets: &T) -> Result<Vec<String>, redb::StorageError>
where
    T: ReadableTable<(&'static str, &'static str, i32), &'static [u8]>,
{
    let mut groups: Vec<String> = Vec::new();
    let mut from = String::new();
    while let Some(entry) = offsets.range((from.as_str(), "", i32::MIN)..)?.next() {
        let group = entry?.0.value().0.to_owned();
        // The next text in order is this one with the smallest character behind it.
        from = format!("{group}\0");
        groups.push(group);
    }
    Ok(groups)
}
