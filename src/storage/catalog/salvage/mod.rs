//! What can still be read of a catalog that is damaged: table by table, entry by entry, and nothing that is not as it was
//! written.

mod pages;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use super::offsets::CommittedOffset;
use super::tables::{self, META_CLUSTER_ID, META_NEXT_PRODUCER_ID};
use super::{ResourceType, Topic, topics};
use crate::protocol::Uuid;
use crate::sys::{Env, OpenMode};
use pages::{Pages, Root, Widths, u32_at};
use redb::TableHandle;

/// What was read. What stands in each table is told in [`super::tables`].
#[derive(Debug, Default)]
pub(in crate::storage) struct Salvaged {
    pub cluster_id: Option<String>,
    pub next_producer_id: Option<i64>,
    pub topics: Vec<Topic>,
    /// Topics that were deleted, with files that may still be there.
    pub deletions: Vec<Topic>,
    /// Type and name of the resource, key, value.
    pub configs: Vec<(ResourceType, String, String, String)>,
    /// Group, topic, partition.
    pub offsets: Vec<(String, String, i32, CommittedOffset)>,
    pub groups: Vec<(String, Vec<u8>)>,
    pub log_starts: Vec<(Uuid, i32, i64)>,
    pub transactional_ids: Vec<(String, Vec<u8>)>,
    /// Space, key, value.
    pub states: Vec<(String, Vec<u8>, Vec<u8>)>,
    /// The tables that are not whole. Which entries are missing cannot be told.
    pub damaged: Vec<String>,
    /// Nothing of it could be read, not even which tables there are.
    pub is_lost: bool,
}

/// Reads what can be read of the catalog at `path`. Nothing is written. Only a file that cannot be opened is an error.
pub(in crate::storage) fn salvage(env: &Env, path: &Path) -> io::Result<Salvaged> {
    let pages = Pages::open(env.fs.open(path, OpenMode::Read)?)?;
    let mut salvaged = Salvaged::default();
    for (nth, root) in pages.roots.iter().enumerate() {
        let mut definitions = BTreeMap::new();
        let lost = pages.each(*root, Widths::default(), &mut |name, definition| {
            if let (Ok(name), Some(definition)) = (std::str::from_utf8(name), table(definition)) {
                definitions.insert(name.to_owned(), definition);
            }
        });
        // The state before the latest commit, if nothing tells where the tables of the latest are.
        if definitions.is_empty() && lost > 0 && nth + 1 < pages.roots.len() {
            continue;
        }
        if lost > 0 {
            salvaged.damaged.push("the list of tables".to_owned());
        }
        salvaged.is_lost = definitions.is_empty();
        salvaged.read(&pages, &definitions);
        return Ok(salvaged);
    }
    salvaged.is_lost = true;
    Ok(salvaged)
}

/// Where a table's tree starts, if it has any entry, and how its pairs are laid out.
fn table(definition: &[u8]) -> Option<(Option<Root>, Widths)> {
    let root = if *definition.get(9)? != 0 { Some(Root::read(definition, 10)?) } else { None };
    let width = |at: usize| {
        let is_fixed = *definition.get(at)? != 0;
        Some(if is_fixed { Some(u32_at(definition, at + 1)?) } else { None })
    };
    Some((root, Widths { key: width(42)?, value: width(47)? }))
}

/// The parts of a key that is a tuple: of all but the last the lengths stand in front, where `fixed` does not tell them.
fn parts<const N: usize>(bytes: &[u8], fixed: [Option<usize>; N]) -> Option<[&[u8]; N]> {
    let mut lens = [0; N];
    let mut at = 0;
    for (n, fixed) in fixed.iter().enumerate().take(N - 1) {
        let Some(fixed) = fixed else {
            let first = *bytes.get(at)?;
            let (len, size) = match first {
                254 => (usize::from(u16::from_le_bytes(bytes.get(at + 1..)?.first_chunk().copied()?)), 3),
                255 => (u32_at(bytes, at + 1)?, 5),
                len => (usize::from(len), 1),
            };
            (lens[n], at) = (len, at + size);
            continue;
        };
        lens[n] = *fixed;
    }
    let mut all = [&[][..]; N];
    for (n, part) in all.iter_mut().enumerate() {
        let to = if n + 1 == N { bytes.len() } else { at.checked_add(lens[n])? };
        *part = bytes.get(at..to)?;
        at = to;
    }
    Some(all)
}

fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

fn number(bytes: &[u8]) -> Option<i32> {
    Some(i32::from_le_bytes(bytes.try_into().ok()?))
}

/// Takes an entry in; `None` if it cannot be read.
type Take<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Option<()>;

impl Salvaged {
    fn read(&mut self, pages: &Pages, definitions: &BTreeMap<String, (Option<Root>, Widths)>) {
        let mut damaged = Vec::new();
        let mut each = |name: &str, take: Take<'_>| {
            let Some((Some(root), widths)) = definitions.get(name) else { return };
            let mut unreadable = 0;
            let lost =
                pages.each(*root, *widths, &mut |key, value| unreadable += u64::from(take(key, value).is_none()));
            if lost > 0 || unreadable > 0 {
                damaged.push(name.to_owned());
            }
        };
        each(tables::META.name(), &mut |key, value| {
            match std::str::from_utf8(key).ok()? {
                META_CLUSTER_ID => self.cluster_id = Some(text(value)?),
                META_NEXT_PRODUCER_ID => self.next_producer_id = Some(i64::from_be_bytes(value.try_into().ok()?)),
                _ => {}
            }
            Some(())
        });
        each(tables::TOPICS.name(), &mut |key, value| {
            self.topics.push(topics::decode(std::str::from_utf8(key).ok()?, value).ok()?);
            Some(())
        });
        each(tables::DELETIONS.name(), &mut |key, value| {
            self.deletions.push(topics::decode_deletion(Uuid(key.try_into().ok()?), value).ok()?);
            Some(())
        });
        each(tables::CONFIGS.name(), &mut |key, value| {
            let [resource, name, config] = parts(key, [Some(1), None, None])?;
            let resource = ResourceType::from_number(*resource.first()?)?;
            self.configs.push((resource, text(name)?, text(config)?, text(value)?));
            Some(())
        });
        each(tables::OFFSETS.name(), &mut |key, value| {
            let [group, topic, partition] = parts(key, [None, None, Some(4)])?;
            let offset = CommittedOffset::decode(value).ok()?;
            self.offsets.push((text(group)?, text(topic)?, number(partition)?, offset));
            Some(())
        });
        each(tables::GROUPS.name(), &mut |key, value| {
            self.groups.push((text(key)?, value.to_vec()));
            Some(())
        });
        each(tables::LOG_STARTS.name(), &mut |key, value| {
            let (id, partition) = key.split_at_checked(16)?;
            let start = i64::from_le_bytes(value.try_into().ok()?);
            self.log_starts.push((Uuid(id.try_into().ok()?), number(partition)?, start));
            Some(())
        });
        each(tables::TRANSACTIONAL_IDS.name(), &mut |key, value| {
            self.transactional_ids.push((text(key)?, value.to_vec()));
            Some(())
        });
        each(tables::STATE.name(), &mut |key, value| {
            let [space, key] = parts(key, [None, None])?;
            self.states.push((text(space)?, key.to_vec(), value.to_vec()));
            Some(())
        });
        self.damaged.extend(damaged);
    }
}
