//! What is promised of one partition's log.

use std::collections::BTreeMap;

/// What may happen to a log besides appends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Policy {
    /// Nothing but DeleteRecords.
    #[default]
    Keep,
    /// Old segments go.
    Retain,
    /// The latest record of each key stays.
    Compact,
}

/// Where a record is.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    pub id: u64,
    /// It was acknowledged after a flush that covers it: nothing takes it away.
    pub sure: bool,
}

/// What a process leaves to the next of what was not flushed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// It stopped in good order: all is on the medium.
    NothingAndFlushed,
    /// It was killed: all that it wrote is in the page cache.
    Nothing,
    /// The power was cut, or a flush lost pages.
    Unflushed,
}

/// The highest that a client was shown before it asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Floor {
    pub high_watermark: i64,
    pub last_stable: i64,
    pub start: i64,
}

#[derive(Clone, Debug, Default)]
pub struct LogModel {
    pub name: String,
    pub policy: Policy,
    /// What was seen or acknowledged, by offset, and has to be there.
    at: BTreeMap<i64, Placed>,
    place: BTreeMap<u64, i64>,
    /// What was seen or acknowledged: these do not go back.
    floor: Floor,
    /// The farthest that a start was asked for.
    start_asked: i64,
}

impl LogModel {
    pub fn new(name: String, policy: Policy) -> Self {
        LogModel { name, policy, ..LogModel::default() }
    }

    pub fn floor(&self) -> Floor {
        self.floor
    }

    pub fn at(&self) -> &BTreeMap<i64, Placed> {
        &self.at
    }

    /// A record was seen at an offset, or acknowledged there.
    pub fn put(&mut self, offset: i64, id: u64) -> Result<(), String> {
        let name = &self.name;
        if let Some(placed) = self.at.get(&offset).filter(|placed| placed.id != id) {
            return Err(format!("{name}: offset {offset} has record {id}, and had record {}", placed.id));
        }
        // A producer whose records were deleted may have been forgotten with them.
        let kept = self.floor.start.max(self.start_asked);
        if let Some(before) = self.place.get(&id).filter(|before| **before != offset && **before >= kept) {
            return Err(format!("{name}: record {id} is at offset {before} and at {offset} too"));
        }
        self.at.entry(offset).or_insert(Placed { id, sure: false });
        self.place.insert(id, offset);
        Ok(())
    }

    /// All up to `last` is flushed.
    pub fn flushed(&mut self, last: i64) {
        self.at.range_mut(..=last).for_each(|(_, placed)| placed.sure = true);
    }

    /// Whether nothing at or above `offset` was asked to be deleted.
    pub fn keeps(&self, offset: i64) -> bool {
        offset >= self.floor.start.max(self.start_asked)
    }

    /// Whether there has to be a record at `offset`.
    pub fn keeps_record(&self, offset: i64) -> bool {
        self.keeps(offset) && self.at.contains_key(&offset)
    }

    /// Somebody asks for the log to start at `to`.
    pub fn start_asked(&mut self, to: i64) {
        self.start_asked = self.start_asked.max(to);
    }

    /// The log starts here now, as was acknowledged or seen.
    pub fn started(&mut self, start: i64) -> Result<(), String> {
        if self.policy != Policy::Retain && start > self.start_asked {
            return Err(format!(
                "{}: it starts at {start}, and nobody asked for more than {}",
                self.name, self.start_asked
            ));
        }
        self.floor.start = self.floor.start.max(start);
        Ok(())
    }

    /// Takes in the offsets of an answer; `floor` is of before the request.
    pub fn saw_offsets(&mut self, seen: Floor, floor: Floor) -> Result<(), String> {
        let name = &self.name;
        if seen.start < floor.start
            || seen.high_watermark < floor.high_watermark
            || seen.last_stable < floor.last_stable
        {
            return Err(format!("{name}: {seen:?} after {floor:?}: something went back"));
        }
        if seen.last_stable > seen.high_watermark || seen.start > seen.high_watermark {
            return Err(format!("{name}: {seen:?} makes no sense"));
        }
        self.started(seen.start)?;
        self.floor.high_watermark = self.floor.high_watermark.max(seen.high_watermark);
        self.floor.last_stable = self.floor.last_stable.max(seen.last_stable);
        Ok(())
    }

    /// The offset after the last record that nothing takes away.
    pub fn sure_end(&self) -> i64 {
        self.at.iter().rev().find(|(_, placed)| placed.sure).map_or(0, |(offset, _)| offset + 1)
    }

    /// A process has ended.
    pub fn process_ended(&mut self, loss: Loss) {
        match loss {
            Loss::NothingAndFlushed => self.at.values_mut().for_each(|placed| placed.sure = true),
            Loss::Nothing => {}
            Loss::Unflushed => {
                let place = &mut self.place;
                self.at.retain(|_, placed| {
                    if !placed.sure {
                        place.remove(&placed.id);
                    }
                    placed.sure
                });
                self.floor.high_watermark = self.sure_end().max(self.floor.start);
            }
        }
        self.floor.last_stable = 0;
    }
}
