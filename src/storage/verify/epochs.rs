//! Leader epochs: those in the batches' headers, which no checksum covers, against the checkpoint and each other.

use std::sync::Arc;

use super::finding::{Consequence, Kind, Repair};
use super::notes::{Notes, Place};
use crate::storage::log::{BatchAt, LeaderEpochs};

/// Goes over the leader epochs of a segment.
#[derive(Debug)]
pub(super) struct EpochCheck {
    checkpoint: Option<Arc<LeaderEpochs>>,
    /// The epoch of the last batch, -1 before the first.
    pub last: i32,
    /// That of the first, and its offset.
    pub first: Option<(i32, i64)>,
    /// Batches in a row of an epoch that is later than all in the checkpoint: the epoch, offsets, place and count.
    pub beyond: Option<Beyond>,
    /// Offsets from and to for which the checkpoint says the same: a shortcut.
    known: (i32, i64, i64),
}

/// Batches of an epoch that the checkpoint does not have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beyond {
    pub epoch: i32,
    pub from: i64,
    pub to: i64,
    pub position: u64,
    pub bytes: u64,
    pub batches: u64,
}

impl EpochCheck {
    pub fn new(checkpoint: Option<Arc<LeaderEpochs>>) -> EpochCheck {
        EpochCheck { checkpoint, last: -1, first: None, beyond: None, known: (-1, 0, 0) }
    }

    pub fn batch(&mut self, log: &str, epoch: i32, batch: &BatchAt, notes: &mut Notes) {
        let offset = batch.base_offset;
        if epoch == self.known.0 && (self.known.1..self.known.2).contains(&offset) {
            self.last = epoch;
            return;
        }
        self.first.get_or_insert((epoch, offset));
        let wrong = |notes: &mut Notes, why: String| {
            let place =
                Place::bytes(batch.position, batch.size).with_offsets(offset, batch.last_offset.saturating_add(1));
            notes.add(log, place, Kind::BadEpoch, (Consequence::Suspect, Repair::Recover), why);
        };
        let Some(checkpoint) = &self.checkpoint else {
            if epoch < self.last {
                return wrong(notes, format!("its leader epoch goes back from {} to {epoch}", self.last));
            }
            self.last = epoch;
            return;
        };
        let Some(latest) = checkpoint.latest() else { return };
        if epoch > latest {
            match &mut self.beyond {
                Some(beyond) if beyond.epoch == epoch => {
                    beyond.to = batch.last_offset.saturating_add(1);
                    beyond.bytes = batch.end() - beyond.position;
                    beyond.batches += 1;
                }
                Some(beyond) => {
                    if beyond.epoch > epoch {
                        return wrong(notes, format!("its leader epoch goes back from {} to {epoch}", beyond.epoch));
                    }
                    *beyond = Beyond {
                        epoch,
                        to: batch.last_offset.saturating_add(1),
                        batches: beyond.batches + 1,
                        ..*beyond
                    };
                }
                None => {
                    let (position, bytes) = (batch.position, batch.size);
                    let to = batch.last_offset.saturating_add(1);
                    self.beyond = Some(Beyond { epoch, from: offset, to, position, bytes, batches: 1 });
                }
            }
            self.last = epoch;
            return;
        }
        let said = checkpoint.of_offset(offset);
        if let Some(beyond) = self.beyond.take() {
            // A later epoch does not end.
            let place = Place::bytes(beyond.position, beyond.bytes).with_offsets(beyond.from, beyond.to);
            let why = format!("its leader epoch is {}, and that of what follows {epoch}", beyond.epoch);
            notes.add(log, place, Kind::BadEpoch, (Consequence::Suspect, Repair::Recover), why);
        }
        match said {
            Some(said) if said != epoch => {
                wrong(notes, format!("its leader epoch is {epoch}, and {said} wrote its offset"))
            }
            // Before all that is known; or a batch of a version that had none.
            None if epoch >= 0 && checkpoint.entries().first().is_some_and(|first| epoch >= first.0) => {
                wrong(notes, format!("its leader epoch {epoch} began later, as the checkpoint has it"));
            }
            said => {
                self.last = epoch;
                let next = checkpoint.entries().iter().map(|entry| entry.1).find(|start| *start > offset);
                let known = (epoch, offset, next.unwrap_or(i64::MAX));
                self.known = if said == Some(epoch) { known } else { (-1, 0, 0) };
            }
        }
    }
}
