//! What was promised, apart from doze: every record, transaction, committed offset and topic that a client was told of.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use doze::protocol::Uuid;
use doze::record::{BatchBuilder, BatchOptions};

use crate::clients::streams_group::SESSION_MS;
use crate::fetched::{Fetched, ReadRecord};
use crate::log_model::{Floor, LogModel, Loss, Policy};
use crate::register::{Moment, Register};
use crate::share_model::ShareModel;

/// What a producer was told of a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    /// Nothing for certain.
    Open,
    Acknowledged,
    /// It was refused, and must never be there.
    Refused,
}

/// A record that was sent.
#[derive(Clone, Debug)]
pub struct Sent {
    pub log: (Uuid, i32),
    pub key: Vec<u8>,
    pub is_tombstone: bool,
    /// The number of its transaction.
    pub transaction: Option<u64>,
    pub fate: Fate,
}

/// What a producer knows of the end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    /// It has not asked for it to be committed.
    NeverCommitted,
    /// It has asked, and does not know.
    Asked,
    Committed,
}

/// A topic as it was made and altered.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicState {
    pub partitions: i32,
    pub configs: BTreeMap<String, String>,
}

/// A task of the streams application: subtopology and partition.
pub type Task = (String, i32);

/// Group, topic and partition.
pub type OffsetKey = (String, String, i32);

/// What is known of the share group, besides its members' own knowledge.
#[derive(Default)]
pub struct ShareGroup {
    /// It has its configs: it starts at the earliest record, and its locks are short.
    pub is_configured: bool,
    /// It is not to see records of transactions that are not committed.
    pub committed: bool,
    pub partitions: BTreeMap<(Uuid, i32), ShareModel>,
    /// Who may be in it.
    pub inside: BTreeSet<String>,
    /// Everybody is to leave, because an administrator wants the group empty.
    pub is_closing: bool,
}

#[derive(Default)]
pub struct Model {
    pub records: BTreeMap<u64, Sent>,
    pub transactions: BTreeMap<u64, End>,
    pub logs: BTreeMap<(Uuid, i32), LogModel>,
    pub topics: BTreeMap<String, Register<Option<TopicState>>>,
    /// The ids of topics that were seen.
    pub ids: BTreeMap<String, Uuid>,
    pub policies: BTreeMap<Uuid, Policy>,
    pub offsets: BTreeMap<OffsetKey, Register<i64>>,
    pub cluster_id: Option<String>,
    /// Which member of the consumer group was told that it has a partition.
    pub owners: BTreeMap<(Uuid, i32), String>,
    /// All that were handed out.
    pub producer_ids: BTreeSet<i64>,
    pub share: ShareGroup,
    /// Which member of the streams group was told that it has a task, and until when it is its for certain, in
    /// milliseconds of the process.
    pub task_owners: BTreeMap<Task, (String, u64)>,
    /// Who may be in the streams group.
    pub inside_streams: BTreeSet<String>,
    /// The highest epoch of each group that a member was told.
    pub group_epochs: BTreeMap<&'static str, i32>,
    last_number: u64,
}

/// The name of the header that has a record's number.
const ID: &[u8] = b"id";

/// A record's value, from its number.
fn value_of(id: u64) -> Vec<u8> {
    vec![b'a' + (id % 26) as u8; 20 + (id * 7 % 90) as usize]
}

impl Model {
    /// A number that nothing has yet.
    pub fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    pub fn log(&mut self, id: Uuid, partition: i32) -> &mut LogModel {
        let policy = self.policies.get(&id).copied().unwrap_or_default();
        let ids = &self.ids;
        self.logs.entry((id, partition)).or_insert_with(|| {
            let name = ids.iter().find(|(_, of)| **of == id).map_or("?", |(name, _)| name);
            LogModel::new(format!("{name}-{partition}"), policy)
        })
    }

    /// A batch with new records for a partition.
    pub fn batch(
        &mut self,
        log: (Uuid, i32),
        keys: &[(Vec<u8>, bool)],
        transaction: Option<u64>,
        now_ms: i64,
        options: BatchOptions,
    ) -> (Vec<u64>, Bytes) {
        let mut builder = BatchBuilder::new(options).unwrap();
        let mut ids = Vec::new();
        for (key, is_tombstone) in keys {
            let id = self.number();
            let value = value_of(id);
            let value = (!is_tombstone).then_some(&value[..]);
            builder.append(now_ms, Some(key), value, &[(ID, Some(&id.to_be_bytes()))]).unwrap();
            let (key, is_tombstone) = (key.clone(), *is_tombstone);
            self.records.insert(id, Sent { log, key, is_tombstone, transaction, fate: Fate::Open });
            ids.push(id);
        }
        (ids, builder.finish(None).unwrap())
    }

    /// A batch was acknowledged at `first`; `durable`: as `acks=all` means it.
    pub fn acknowledged(&mut self, log: (Uuid, i32), ids: &[u64], first: i64, durable: bool) -> Result<(), String> {
        for (offset, id) in (first..).zip(ids) {
            self.records.get_mut(id).expect("it was sent").fate = Fate::Acknowledged;
            self.log(log.0, log.1).put(offset, *id)?;
        }
        if durable {
            self.log(log.0, log.1).flushed(first + ids.len() as i64 - 1);
        }
        Ok(())
    }

    pub fn refused(&mut self, ids: &[u64]) {
        for id in ids {
            self.records.get_mut(id).expect("it was sent").fate = Fate::Refused;
        }
    }

    pub fn read_record(&mut self, log: (Uuid, i32), read: &ReadRecord, committed: bool) -> Result<(), String> {
        let name = self.log(log.0, log.1).name.clone();
        let what = format!("{name}, offset {}", read.offset);
        let sent = self.records.get(&read.id).ok_or_else(|| format!("{what}: nobody has sent {read:?}"))?;
        let value = (!sent.is_tombstone).then(|| value_of(read.id));
        if sent.log != log || sent.key != read.key || value != read.value {
            return Err(format!("{what}: {read:?} was sent as {sent:?}"));
        }
        if sent.fate == Fate::Refused {
            return Err(format!("{what}: record {} was refused", read.id));
        }
        if let Some(number) = sent.transaction.filter(|_| committed) {
            let end = self.transactions.get_mut(&number).expect("it was begun");
            match (*end, read.aborted) {
                (End::NeverCommitted, false) => {
                    return Err(format!(
                        "{what}: record {} of transaction {number}, which was never to be committed, is visible",
                        read.id
                    ));
                }
                (End::Committed, true) => {
                    return Err(format!(
                        "{what}: record {} of transaction {number}, which was committed, is passed over",
                        read.id
                    ));
                }
                // What one reader has seen, all of them see.
                (End::Asked, aborted) => *end = if aborted { End::NeverCommitted } else { End::Committed },
                _ => {}
            }
        }
        self.log(log.0, log.1).put(read.offset, read.id)
    }

    /// Takes in what a fetch has answered. `whole`: it is all of the log, so that what is not there is gone.
    pub fn fetched(&mut self, log: (Uuid, i32), fetched: &Fetched, floor: Floor) -> Result<(), String> {
        let seen = Floor {
            high_watermark: fetched.high_watermark,
            last_stable: fetched.last_stable,
            start: fetched.log_start,
        };
        self.log(log.0, log.1).saw_offsets(seen, floor)?;
        let model = self.log(log.0, log.1);
        let (name, policy) = (model.name.clone(), model.policy);
        let mut next = fetched.from;
        for (n, (first, last)) in fetched.batches.iter().enumerate() {
            let gap = if n == 0 { *first > next } else { *first != next };
            if *last < next || (gap && (policy != Policy::Compact || *first < next)) {
                return Err(format!("{name}: a batch from {first} to {last} where {next} comes next"));
            }
            next = last + 1;
        }
        let end = if fetched.committed { fetched.last_stable } else { fetched.high_watermark };
        for read in &fetched.records {
            if read.offset >= end {
                return Err(format!("{name}: record {} at {} is shown, and the end is {end}", read.id, read.offset));
            }
            self.read_record(log, read, fetched.committed)?;
        }
        if policy != Policy::Compact {
            let found: BTreeSet<i64> = fetched.records.iter().map(|read| read.offset).collect();
            let model = self.log(log.0, log.1);
            if let Some((offset, placed)) =
                model.at().range(fetched.from..next).find(|(offset, _)| !found.contains(offset))
            {
                return Err(format!("{name}: LOST record {} at offset {offset}; a fetch passed over it", placed.id));
            }
        }
        Ok(())
    }

    /// All of the log was read, from `start` to `end`: what has to be there is.
    pub fn read_all(&mut self, log: (Uuid, i32), start: i64, end: i64, found: &BTreeSet<u64>) -> Result<(), String> {
        let Model { logs, records, transactions, .. } = self;
        let Some(model) = logs.get(&log) else { return Ok(()) };
        for (offset, placed) in model.at().range(start..) {
            if found.contains(&placed.id) {
                continue;
            }
            let sent = &records[&placed.id];
            let committed =
                |sent: &Sent| sent.transaction.is_none_or(|number| transactions[&number] != End::NeverCommitted);
            let replaced = model.policy == Policy::Compact && {
                let later = model.at().range(offset + 1..).any(|(_, later)| {
                    let later = &records[&later.id];
                    later.key == sent.key && committed(later)
                });
                // A tombstone goes, with all before it; one that nobody has seen is no proof of anything.
                let tombstone = records.values().any(|other| {
                    other.is_tombstone && other.log == log && other.key == sent.key && other.fate != Fate::Refused
                });
                let aborted = sent.transaction.is_some_and(|number| transactions[&number] != End::Committed);
                later || tombstone || aborted
            };
            if !replaced {
                return Err(format!(
                    "{}: LOST record {} at offset {offset}, {}; the log is from {start} to {end}",
                    model.name,
                    placed.id,
                    if placed.sure { "acknowledged" } else { "written and not cut off from power" },
                ));
            }
        }
        if end < model.sure_end() {
            return Err(format!("{}: it ends at {end}, and {} was acknowledged", model.name, model.sure_end()));
        }
        Ok(())
    }

    pub fn offset(&mut self, key: OffsetKey) -> &mut Register<i64> {
        self.offsets.entry(key).or_insert_with(|| Register::new(-1))
    }

    pub fn topic(&mut self, name: &str) -> &mut Register<Option<TopicState>> {
        self.topics.entry(name.to_owned()).or_insert_with(|| Register::new(None))
    }

    /// The id of a topic that is known to be there.
    pub fn id_of(&self, name: &str) -> Option<(Uuid, i32)> {
        let state = self.topics.get(name)?.known()?.as_ref()?;
        Some((*self.ids.get(name)?, state.partitions))
    }

    /// The model of a partition in the share group, with that of its log, and whether the group is to get a record.
    pub fn shared(&mut self, place: (Uuid, i32)) -> (&mut ShareModel, &LogModel, impl Fn(u64) -> bool) {
        let name = self.log(place.0, place.1).name.clone();
        let Model { share, logs, records, transactions, .. } = self;
        let committed = share.committed;
        let wanted = move |id: u64| {
            let transaction = records.get(&id).and_then(|sent| sent.transaction).filter(|_| committed);
            transaction.is_none_or(|number| transactions.get(&number) == Some(&End::Committed))
        };
        let partition = share.partitions.entry(place).or_insert_with(|| ShareModel::new(name));
        (partition, &logs[&place], wanted)
    }

    pub fn process_ended(&mut self, loss: Loss, now: Moment) {
        // Sessions begin anew with the next process.
        self.task_owners.values_mut().for_each(|(_, until_ms)| *until_ms = SESSION_MS);
        for (place, partition) in &mut self.share.partitions {
            let log = self.logs.get(place).filter(|_| loss == Loss::Unflushed);
            partition.process_ended(log.map(|log| (log, log.sure_end())));
        }
        self.logs.values_mut().for_each(|log| log.process_ended(loss));
        self.topics.values_mut().for_each(|topic| topic.process_ended(now));
        self.offsets.values_mut().for_each(|offset| offset.process_ended(now));
    }
}
