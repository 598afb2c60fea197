//! The small files of a partition's folder.

use std::path::Path;

use super::finding::{Consequence, Kind, Repair};
use super::layout::Layout;
use super::notes::{Notes, Place};
use super::partition::Facts;
use crate::protocol::Uuid;
use crate::storage::cleaner;
use crate::storage::log::{LeaderEpochs, read_leader_epochs, read_partition_metadata};
use crate::storage::names;
use crate::storage::offline::Origin;
use crate::sys::FileSystem;

/// The topic's id that the folder has.
pub(super) fn metadata(facts: &Facts, fs: &dyn FileSystem, layout: &Layout, notes: &mut Notes) -> Option<Uuid> {
    let dir = &facts.folder.path;
    let found = match read_partition_metadata(fs, dir) {
        Ok(found) => found,
        Err(error) => {
            notes.unreadable(names::PARTITION_METADATA, &error);
            return None;
        }
    };
    let Some(found) = found else {
        let what = if layout.has_metadata { "it makes no sense" } else { "it is missing" };
        let (repair, then) = match facts.origin {
            Origin::Doze if facts.known_id.is_some() => (Repair::Start, "; it is made anew from the catalog"),
            _ => (Repair::Recover, ""),
        };
        // Apache Kafka did not always have it.
        if layout.has_metadata || (facts.origin == Origin::Doze && !facts.is_lone) {
            let meaning = (Consequence::Rebuild, repair);
            notes.add(
                names::PARTITION_METADATA,
                Place::FILE,
                Kind::PartitionMetadata,
                meaning,
                format!("{what}{then}"),
            );
        }
        return None;
    };
    if let Some(known) = facts.known_id.filter(|known| *known != found) {
        let why = format!("the folder is of the topic with id {found}, and the catalog says {known}");
        let unserved = (Consequence::Unserved, Repair::Person);
        notes.add(names::PARTITION_METADATA, Place::FILE, Kind::TopicId, unserved, why);
    }
    Some(found)
}

/// Up to where the log was cleaned, 0 where nothing says that it ever was.
pub(super) fn cleaned(facts: &Facts, fs: &dyn FileSystem, layout: &Layout, dir: &Path, notes: &mut Notes) -> i64 {
    if facts.origin == Origin::Kafka {
        return facts.kafka_cleaned.unwrap_or(0);
    }
    if !layout.has_cleaner_checkpoint {
        return 0;
    }
    match cleaner::Checkpoint::read_if_sound(fs, dir) {
        Ok(Some(checkpoint)) => checkpoint.cleaned,
        Ok(None) => {
            let meaning = (Consequence::Rebuild, Repair::Start);
            let why = "it makes no sense; the next pass of the cleaner goes over the whole log";
            notes.add(names::CLEANER_CHECKPOINT, Place::FILE, Kind::Checkpoint, meaning, why);
            // Nothing says what was taken out by it.
            layout.segments.last().map_or(0, |last| last.base)
        }
        Err(error) => {
            notes.unreadable(names::CLEANER_CHECKPOINT, &error);
            layout.segments.last().map_or(0, |last| last.base)
        }
    }
}

/// The leader epochs that the checkpoint has, if it has any.
pub(super) fn epochs(
    facts: &Facts,
    fs: &dyn FileSystem,
    layout: &Layout,
    dir: &Path,
    notes: &mut Notes,
) -> Option<LeaderEpochs> {
    let name = names::LEADER_EPOCH_CHECKPOINT;
    let rebuild = (Consequence::Rebuild, Repair::Start);
    match read_leader_epochs(fs, dir) {
        Ok(Some(entries)) if entries.is_empty() => None,
        Ok(Some(entries)) => Some(LeaderEpochs::new(entries)),
        Ok(None) => {
            // It is written with the first roll or the first clean stop.
            let due = layout.segments.len() > 1
                || (facts.is_trusted && layout.segments.last().is_some_and(|last| last.log.len > 0));
            if layout.has_epochs {
                notes.add(
                    name,
                    Place::FILE,
                    Kind::EpochCheckpoint,
                    rebuild,
                    "it makes no sense; it is made anew from the log",
                );
            } else if due && facts.origin == Origin::Doze && !facts.is_lone {
                notes.add(
                    name,
                    Place::FILE,
                    Kind::EpochCheckpoint,
                    rebuild,
                    "it is missing; it is made anew from the log",
                );
            }
            None
        }
        Err(error) => {
            notes.unreadable(name, &error);
            None
        }
    }
}
