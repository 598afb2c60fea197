//! What Apache Kafka 4.3 does to the files of a partition before it loads its log, told from its source; `.ci/checks/compact` has
//! Apache Kafka's own code do it.

use std::path::Path;

use crate::storage::log::last_offset;
use crate::storage::names::{self, FileKind, PartitionFile, Stage};
use crate::sys::FileSystem;

struct File {
    base: i64,
    kind: FileKind,
    stage: Stage,
}

impl File {
    fn name(&self) -> String {
        names::staged_file(self.base, self.kind, self.stage)
    }
}

fn files(fs: &dyn FileSystem, folder: &Path) -> Vec<File> {
    let all = fs.list(folder).unwrap();
    all.iter()
        .filter_map(|entry| match names::parse_partition_file(&entry.name) {
            PartitionFile::Segment { base, kind, stage } => Some(File { base, kind, stage }),
            _ => None,
        })
        .collect()
}

pub fn kafka_start(fs: &dyn FileSystem, folder: &Path) {
    let remove = |file: &File| fs.remove_file(&folder.join(file.name())).unwrap();
    let first_cleaned =
        files(fs, folder).iter().filter(|file| file.stage == Stage::Cleaned).map(|file| file.base).min();
    for file in files(fs, folder) {
        let is_cut_off = file.stage == Stage::Swap && first_cleaned.is_some_and(|first| file.base >= first);
        if matches!(file.stage, Stage::Cleaned | Stage::Deleted) || is_cut_off {
            remove(&file);
        }
    }
    let (mut from, mut to) = (i64::MAX, i64::MIN);
    for file in files(fs, folder).iter().filter(|file| file.stage == Stage::Swap && file.kind == FileKind::Log) {
        let last = last_offset(fs, &folder.join(file.name())).unwrap();
        from = from.min(file.base);
        to = to.max(last.map_or(file.base, |last| last + 1));
    }
    for file in files(fs, folder).iter().filter(|file| file.stage != Stage::Swap && (from..to).contains(&file.base)) {
        remove(file);
    }
    for file in files(fs, folder).iter().filter(|file| file.stage == Stage::Swap) {
        let own = names::segment_file(file.base, file.kind);
        fs.rename(&folder.join(file.name()), &folder.join(own)).unwrap();
    }
    let logs: Vec<i64> =
        files(fs, folder).iter().filter(|file| file.kind == FileKind::Log).map(|file| file.base).collect();
    for file in files(fs, folder) {
        match file.kind {
            FileKind::Log => {}
            // The one behind the last segment, at the end of the log, stays.
            FileKind::Snapshot if file.base > *logs.iter().max().unwrap() => {}
            _ if logs.contains(&file.base) => {}
            _ => remove(&file),
        }
    }
    fs.sync_dir(folder).unwrap();
}
