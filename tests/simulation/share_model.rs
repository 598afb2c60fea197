//! What is promised of one partition in a share group: which records may be handed out, to whom and how often, and which
//! have to be.
//!
//! Where an administrator was not told whether the group's start was moved, both may be: the model keeps each state that is
//! possible, and drops those that an answer contradicts. A promise is broken when none is left.

use std::collections::{BTreeMap, BTreeSet};

use crate::log_model::LogModel;
use crate::register::Moment;

/// `share.delivery.count.limit` of the group.
pub const MOST_DELIVERIES: i16 = 4;
/// `share.record.lock.duration.ms` of the group.
pub const LOCK_MS: u64 = 2000;

pub const GAP: i8 = 0;
pub const ACCEPT: i8 = 1;
pub const RELEASE: i8 = 2;
pub const REJECT: i8 = 3;
pub const RENEW: i8 = 4;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Open,
    /// It was accepted or rejected, and there was no answer. `until_restart`: there was one that leaves it open, so that
    /// only the next process knows.
    Perhaps {
        until_restart: bool,
    },
    /// It was accepted or rejected, and that was acknowledged.
    Done {
        at: Moment,
    },
    /// The log has lost what the group knew at this offset, and has another record there.
    Replaced,
}

/// Who has acquired a record, and until when for certain, in milliseconds of the process.
#[derive(Clone, Debug)]
struct Holder {
    member: String,
    until_ms: u64,
}

/// What is known of an offset that was handed out.
#[derive(Clone, Debug)]
struct Known {
    /// The record; `None` for an offset that has none, such as that of a marker.
    id: Option<u64>,
    fate: Fate,
    /// The least and the most deliveries that it may have had.
    deliveries: (i16, i16),
    /// How many of them nothing takes back.
    durable: i16,
    /// How many fetches had been lost when it was last seen.
    lost_fetches: i16,
    holder: Option<Holder>,
    /// The power went before the record was flushed, and nobody has looked yet what is there now.
    in_doubt: bool,
}

impl Known {
    fn new(id: Option<u64>) -> Self {
        Known { id, fate: Fate::Open, deliveries: (0, 0), durable: 0, lost_fetches: 0, holder: None, in_doubt: false }
    }

    /// The broker has only what is stored of it.
    fn read_anew(&mut self) {
        self.holder = None;
        self.deliveries.0 = self.durable;
    }

    fn is_done(&self) -> bool {
        matches!(self.fate, Fate::Done { .. }) && !self.in_doubt
    }

    /// Nobody can have finished with it, for all that is known, unless it was given up after so many deliveries.
    fn is_open(&self, lost_fetches: i16) -> bool {
        self.fate == Fate::Open
            && !self.in_doubt
            && self.deliveries.1 + (lost_fetches - self.lost_fetches) < MOST_DELIVERIES
    }
}

/// Records that a member was given.
#[derive(Clone, Debug)]
pub struct Delivery<'a> {
    pub member: &'a str,
    pub offset: i64,
    pub id: Option<u64>,
    /// As the broker says, this delivery included.
    pub count: i16,
    /// Before the fetch was sent.
    pub begun: Moment,
    pub sent_ms: u64,
    pub now_ms: u64,
}

/// One state that is possible.
#[derive(Clone, Debug, Default)]
struct State {
    /// What is below was passed over by an administrator.
    start: i64,
    /// The highest start offset that anybody was shown.
    shown_start: i64,
    /// When somebody asked last where the group starts, it had been given something,
    was_used: bool,
    /// and all below this was done with.
    done_to: i64,
    known: BTreeMap<i64, Known>,
}

#[derive(Clone, Debug)]
pub struct ShareModel {
    name: String,
    possible: Vec<State>,
    /// Starts that were asked for, and nobody was told whether they hold.
    asked: Vec<(u64, i64)>,
    next_ask: u64,
    /// Fetches whose answers nobody has had: each may have handed out any record.
    lost_fetches: i16,
    fetches_under_way: i16,
}

impl ShareModel {
    pub fn new(name: String) -> Self {
        ShareModel {
            name,
            possible: vec![State::default()],
            asked: Vec::new(),
            next_ask: 0,
            lost_fetches: 0,
            fetches_under_way: 0,
        }
    }

    /// Keeps the states that pass. The first complaint is the error if none does.
    fn narrow(&mut self, check: impl Fn(&mut State) -> Result<(), String>) -> Result<(), String> {
        let mut complaint = None;
        self.possible.retain_mut(|state| match check(state) {
            Ok(()) => true,
            Err(why) => {
                complaint.get_or_insert(why);
                false
            }
        });
        if self.possible.is_empty() {
            // So that the rest of the history can be told.
            self.possible.push(State::default());
            return Err(format!("share group, {}: {}", self.name, complaint.unwrap_or_default()));
        }
        Ok(())
    }

    fn each(&mut self, mut change: impl FnMut(&mut State)) {
        self.possible.iter_mut().for_each(&mut change);
    }

    fn each_known(&mut self, offset: i64, mut change: impl FnMut(&mut Known)) {
        self.each(|state| state.known.get_mut(&offset).into_iter().for_each(&mut change));
    }

    pub fn fetch_begins(&mut self) {
        self.fetches_under_way += 1;
    }

    pub fn fetch_ended(&mut self, is_answered: bool) {
        self.fetches_under_way -= 1;
        self.lost_fetches += i16::from(!is_answered);
    }

    pub fn delivered(&mut self, delivery: &Delivery<'_>) -> Result<(), String> {
        let (lost, under_way) = (self.lost_fetches, self.fetches_under_way);
        self.narrow(|state| state.deliver(delivery, lost, under_way))
    }

    /// The member says of a record that it is `kind`, and then waits for an answer. Gives until when it has the record for
    /// certain; 0 if it may not have it.
    pub fn says(&mut self, member: &str, offset: i64, kind: i8) -> u64 {
        let mut until_ms = u64::MAX;
        self.each(|state| {
            let Some(known) = state.known.get_mut(&offset) else { return until_ms = 0 };
            let is_theirs = known.holder.as_ref().filter(|holder| holder.member == member);
            until_ms = until_ms.min(is_theirs.map_or(0, |holder| holder.until_ms));
            if kind == RENEW {
                return;
            }
            known.holder.take_if(|holder| holder.member == member);
            if kind != RELEASE && known.fate == Fate::Open {
                known.fate = Fate::Perhaps { until_restart: false };
            }
        });
        until_ms
    }

    /// What it said was acknowledged. `count`: of the delivery.
    pub fn acknowledged(&mut self, offset: i64, kind: i8, count: i16, now: Moment, renewed_until_ms: u64) {
        self.each_known(offset, |known| match kind {
            RELEASE => known.durable = known.durable.max(count),
            RENEW => {
                if let Some(holder) = &mut known.holder {
                    holder.until_ms = renewed_until_ms;
                }
            }
            _ if known.fate != Fate::Replaced => known.fate = Fate::Done { at: now },
            _ => {}
        });
    }

    /// What it said was not taken, for certain.
    pub fn refused(&mut self, offset: i64) {
        self.each_known(offset, |known| {
            if known.fate == (Fate::Perhaps { until_restart: false }) {
                known.fate = Fate::Open;
            }
        });
    }

    /// What it said may be found by the next process.
    pub fn left_open(&mut self, offset: i64) {
        self.each_known(offset, |known| {
            if matches!(known.fate, Fate::Perhaps { .. }) {
                known.fate = Fate::Perhaps { until_restart: true };
            }
        });
    }

    /// The member's session has ended: what it had is somebody else's as soon as the broker has noticed.
    pub fn session_ended(&mut self, member: &str) {
        self.each(|state| {
            for known in state.known.values_mut() {
                known.holder.take_if(|holder| holder.member == member);
            }
        });
    }

    /// Somebody asks for the group to start at `start`, with all that it knows of records forgotten.
    pub fn start_asked(&mut self, start: i64) -> u64 {
        // What is only in memory goes, even if nothing comes of it.
        self.each(|state| state.known.values_mut().for_each(Known::read_anew));
        self.next_ask += 1;
        self.asked.push((self.next_ask, start));
        self.next_ask
    }

    fn started(start: i64) -> State {
        State { start, shown_start: start, ..State::default() }
    }

    /// What became of that: `Some(true)` it is so, `Some(false)` it is not, `None` it may be.
    pub fn start_answered(&mut self, ask: u64, is_so: Option<bool>) {
        let Some(place) = self.asked.iter().position(|(number, _)| *number == ask) else { return };
        let (_, start) = self.asked.remove(place);
        match is_so {
            Some(true) => self.possible = vec![Self::started(start)],
            Some(false) => {}
            None => self.possible.push(Self::started(start)),
        }
    }

    /// The process has ended. `log`: as it was before; `flushed_to`: where what is certain to be on the medium ends.
    pub fn process_ended(&mut self, log: Option<(&LogModel, i64)>) {
        self.lost_fetches += std::mem::take(&mut self.fetches_under_way);
        self.each(|state| {
            for known in state.known.values_mut() {
                known.read_anew();
                if matches!(known.fate, Fate::Perhaps { .. }) {
                    known.fate = Fate::Perhaps { until_restart: false };
                }
            }
            let Some((log, flushed_to)) = log else { return };
            let end = log.floor().high_watermark.max(log.at().last_key_value().map_or(0, |(last, _)| last + 1));
            for offset in flushed_to..end {
                let id = log.at().get(&offset).map(|placed| placed.id);
                state.known.entry(offset).or_insert_with(|| Known::new(id)).in_doubt = true;
            }
        });
        for (_, start) in std::mem::take(&mut self.asked) {
            self.possible.push(Self::started(start));
        }
    }

    /// The log was read: records that have survived are what they were. Those that are done with have.
    pub fn log_was_read(&mut self, log: &LogModel) -> Result<(), String> {
        self.narrow(|state| {
            for (offset, known) in state.known.iter_mut().filter(|(_, known)| known.in_doubt) {
                let Some(placed) = log.at().get(offset) else { continue };
                known.in_doubt = false;
                if known.id == Some(placed.id) {
                    continue;
                }
                if matches!(known.fate, Fate::Done { .. }) {
                    return Err(format!("the record at {offset} was done with, and another stands in its place"));
                }
                (known.id, known.fate) = (Some(placed.id), Fate::Replaced);
            }
            Ok(())
        })
    }

    /// Somebody asks where the group starts.
    pub fn show_begins(&mut self) {
        let is_known = |known: &Known| known.deliveries.1 > 0 && !known.in_doubt;
        self.each(|state| {
            state.was_used = state.start > 0 || state.known.values().any(is_known);
            let from = state.start.max(state.shown_start);
            let done = (from..).take_while(|offset| state.known.get(offset).is_some_and(Known::is_done));
            state.done_to = from + done.count() as i64;
        });
    }

    /// The group's start offset was shown; `None`: it has none. `wanted` says of a record whether the group is to get it.
    pub fn shown(&mut self, start: Option<i64>, log: &LogModel, wanted: impl Fn(u64) -> bool) -> Result<(), String> {
        let lost = self.lost_fetches + self.fetches_under_way;
        self.narrow(|state| {
            let Some(start) = start else {
                return match state.was_used {
                    true => Err("what it knew of records is forgotten".into()),
                    false => Ok(()),
                };
            };
            if start < state.shown_start {
                return Err(format!("it starts at {start}, and did at {}", state.shown_start));
            }
            if start < state.done_to {
                return Err(format!("it starts at {start}, and all below {} is done with", state.done_to));
            }
            state.shown_start = start;
            match state.first_open(start, log, lost, &wanted) {
                Some(offset) => {
                    Err(format!("LOST the record at {offset}, which nobody accepted; it starts at {start}"))
                }
                None => Ok(()),
            }
        })
    }

    /// The same at rest, with how many records are to come.
    pub fn lags(&mut self, start: i64, lag: i64, log: &LogModel, wanted: impl Fn(u64) -> bool) -> Result<(), String> {
        let lost = self.lost_fetches;
        let end = log.floor().high_watermark;
        self.narrow(|state| {
            if state.known.values().any(|known| known.in_doubt || known.fate == Fate::Replaced) {
                return Ok(());
            }
            let done = state.known.range(start..end.max(start)).filter(|(_, known)| known.is_done()).count() as i64;
            let open = log.at().range(start..end.max(start)).filter(|(offset, placed)| {
                wanted(placed.id) && state.known.get(offset).is_none_or(|known| known.is_open(lost))
            });
            let (least, most) = (open.count() as i64, end - start - done);
            match lag {
                _ if most < 0 => Ok(()),
                lag if (least..=most).contains(&lag) => Ok(()),
                lag => Err(format!(
                    "{lag} records are to come, where it is {least} to {most}; it starts at {start}, of {end}"
                )),
            }
        })
    }

    /// At rest all was handed out and accepted that could be: `delivered` is what came.
    pub fn drained(
        &mut self,
        delivered: &BTreeSet<i64>,
        log: &LogModel,
        wanted: impl Fn(u64) -> bool,
    ) -> Result<(), String> {
        let lost = self.lost_fetches;
        self.narrow(|state| {
            let wanted = |id: u64| wanted(id);
            let open = log.at().range(state.start.max(log.floor().start)..).find(|(offset, placed)| {
                !delivered.contains(*offset)
                    && wanted(placed.id)
                    && state.known.get(offset).is_none_or(|known| known.is_open(lost))
            });
            match open {
                Some((offset, placed)) => Err(format!(
                    "LOST record {} at offset {offset}: nobody accepted it and it does not come; {:?}",
                    placed.id,
                    state.known.get(offset)
                )),
                None => Ok(()),
            }
        })
    }
}

impl State {
    fn deliver(&mut self, got: &Delivery<'_>, lost: i16, under_way: i16) -> Result<(), String> {
        let Delivery { member, offset, id, count, .. } = *got;
        if offset < self.start {
            return Err(format!("offset {offset} is handed out, and the group was to start at {}", self.start));
        }
        if count > MOST_DELIVERIES {
            return Err(format!(
                "offset {offset} is handed out for the {count}th time; {MOST_DELIVERIES} are the most"
            ));
        }
        let known = self.known.entry(offset).or_insert_with(|| Known::new(id));
        let is_certain = !known.in_doubt && known.fate != Fate::Replaced;
        let (least, most) = known.deliveries;
        let most = most + (lost - known.lost_fetches) + under_way;
        match known.fate {
            Fate::Done { at } if is_certain && at < got.begun => {
                return Err(format!("offset {offset} comes again to {member} after it was done with: {known:?}"));
            }
            _ if is_certain && count <= least => {
                return Err(format!("offset {offset} has a delivery count of {count} after {least} deliveries"));
            }
            _ if is_certain && count > most + 1 => {
                return Err(format!("offset {offset} has a delivery count of {count} after {most} deliveries"));
            }
            _ => {}
        }
        if let Some(holder) = &known.holder
            && got.now_ms < holder.until_ms
        {
            return Err(format!(
                "offset {offset} is acquired by {member}, and {} has it until {} ms",
                holder.member, holder.until_ms
            ));
        }
        *known = Known {
            id,
            fate: match known.fate {
                Fate::Perhaps { until_restart: true } => known.fate,
                _ => Fate::Open,
            },
            deliveries: (count, count),
            durable: known.durable,
            lost_fetches: lost,
            holder: Some(Holder { member: member.to_owned(), until_ms: got.sent_ms + LOCK_MS }),
            in_doubt: false,
        };
        Ok(())
    }

    /// The first record below `end` that nobody can be done with.
    fn first_open(&self, end: i64, log: &LogModel, lost: i16, wanted: impl Fn(u64) -> bool) -> Option<i64> {
        let from = self.start.max(log.floor().start);
        let mut below = log.at().range(from..end.max(from));
        let open = below.find(|(offset, placed)| {
            wanted(placed.id) && self.known.get(offset).is_none_or(|known| known.is_open(lost))
        });
        open.map(|(offset, _)| *offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn got(member: &str, offset: i64, count: i16, at: u64) -> Delivery<'_> {
        Delivery { member, offset, id: Some(1), count, begun: at, sent_ms: at, now_ms: at }
    }

    #[test]
    fn a_record_is_one_members_until_its_lock_runs_out_and_comes_again_until_it_is_done_with() {
        let mut model = ShareModel::new("t-0".into());
        model.delivered(&got("a", 0, 1, 10)).unwrap();
        model.clone().delivered(&got("b", 0, 2, 10 + LOCK_MS)).unwrap();
        model.clone().delivered(&got("b", 0, 2, 9 + LOCK_MS)).unwrap_err();
        model.clone().delivered(&got("b", 0, 1, 10 + LOCK_MS)).expect_err("it is the second time");
        model.clone().delivered(&got("b", 0, 3, 10 + LOCK_MS)).expect_err("there were not two before");
        let mut lost = model.clone();
        lost.fetch_begins();
        lost.fetch_ended(false);
        lost.delivered(&got("b", 0, 3, 10 + LOCK_MS)).expect("somebody may have had it");
        assert_eq!(model.says("a", 0, ACCEPT), 10 + LOCK_MS);
        model.clone().delivered(&got("b", 0, 2, 20)).expect("nobody was told that it is done with");
        model.acknowledged(0, ACCEPT, 1, 30, 0);
        model.clone().delivered(&got("b", 0, 2, 31)).unwrap_err();
        model.process_ended(None);
        model.delivered(&got("b", 0, 2, 40)).unwrap_err();
    }

    #[test]
    fn a_start_that_nobody_was_told_of_is_found_or_not_and_then_stays() {
        let log = LogModel::new("t-0".into(), Default::default());
        let mut model = ShareModel::new("t-0".into());
        model.delivered(&got("a", 5, 1, 10)).unwrap();
        let ask = model.start_asked(3);
        model.start_answered(ask, None);
        model.clone().shown(Some(0), &log, |_| true).unwrap();
        model.shown(Some(3), &log, |_| true).unwrap();
        model.clone().shown(Some(2), &log, |_| true).unwrap_err();
        model.show_begins();
        model.clone().shown(None, &log, |_| true).unwrap_err();
        let mut before = model.clone();
        before.process_ended(None);
        // In the one state it was never handed out, in the other once.
        for count in [1, 2] {
            before.clone().delivered(&got("a", 5, count, 20)).unwrap();
        }
        before.delivered(&got("a", 5, 3, 20)).unwrap_err();
    }
}
