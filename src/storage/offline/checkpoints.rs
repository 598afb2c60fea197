//! What Apache Kafka keeps beside the partitions of a log directory.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use super::error::OpenDirError;
use crate::protocol::Uuid;
use crate::storage::names;
use crate::storage::replace::replace_file;
use crate::storage::store::DirError;
use crate::sys::{Env, FileSystem, OpenMode};

/// More than a checkpoint file of a million partitions has, in bytes.
const LARGEST: u64 = 256 << 20;
/// The layout of `meta.properties` that a KRaft node writes; version 0 was that of a node with ZooKeeper.
const KNOWN_VERSION: i32 = 1;

/// The version of a checkpoint file, which stands in its first line.
const KNOWN_CHECKPOINT: &str = "0";

/// Offsets of a checkpoint file, by topic and partition.
pub type OffsetMap = HashMap<(String, i32), i64>;

/// A checkpoint file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Checkpoint {
    #[default]
    Missing,
    Read(OffsetMap),
    /// It cannot be read as one.
    Nonsense {
        reason: String,
    },
}

impl Checkpoint {
    /// The offset of a partition, where the file can be read and has one.
    pub fn get(&self, topic: &str, partition: i32) -> Option<i64> {
        match self {
            Checkpoint::Read(offsets) => offsets.get(&(topic.to_owned(), partition)).copied(),
            _ => None,
        }
    }
}

/// What a log directory of Apache Kafka says of itself and its partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KafkaState {
    pub cluster_id: Option<String>,
    pub node_id: Option<i32>,
    /// The directory's own id.
    pub directory_id: Option<Uuid>,
    /// Up to where each log is known to be flushed.
    pub recovery_points: Checkpoint,
    /// Where logs start that do not start with a segment.
    pub log_starts: Checkpoint,
    pub high_watermarks: Checkpoint,
    /// Up to where each log was cleaned.
    pub cleaner_offsets: Checkpoint,
}

impl KafkaState {
    pub(super) fn read(env: &Env, dir: &Path) -> Result<KafkaState, OpenDirError> {
        let path = dir.join(names::KAFKA_META_PROPERTIES);
        let text = read_text(env, &path).map_err(DirError::of("read", &path))?.unwrap_or_default();
        let property = |name: &str| {
            text.lines().find_map(|line| line.trim().strip_prefix(name)?.trim_start().strip_prefix('=')).map(str::trim)
        };
        let version = property("version").and_then(|version| version.parse::<i32>().ok());
        if let Some(version) = version.filter(|version| *version > KNOWN_VERSION) {
            let what = format!("its meta.properties has version {version}, and this doze knows up to {KNOWN_VERSION}");
            return Err(OpenDirError::NewerFormat { path: dir.to_owned(), what });
        }
        let checkpoint = |name: &str| read_checkpoint(env, &dir.join(name));
        Ok(KafkaState {
            cluster_id: property("cluster.id").map(str::to_owned),
            node_id: property("node.id").and_then(|id| id.parse().ok()),
            directory_id: property("directory.id").and_then(|id| id.parse().ok()),
            recovery_points: checkpoint(names::KAFKA_RECOVERY_POINTS)?,
            log_starts: checkpoint(names::KAFKA_LOG_STARTS)?,
            high_watermarks: checkpoint(names::KAFKA_HIGH_WATERMARKS)?,
            cleaner_offsets: checkpoint(names::KAFKA_CLEANER_OFFSETS)?,
        })
    }
}

fn read_checkpoint(env: &Env, path: &Path) -> Result<Checkpoint, OpenDirError> {
    let Some(text) = read_text(env, path).map_err(DirError::of("read", path))? else { return Ok(Checkpoint::Missing) };
    Ok(match parse(&text) {
        Ok(offsets) => Checkpoint::Read(offsets),
        Err(reason) => Checkpoint::Nonsense { reason },
    })
}

pub(super) fn parse(text: &str) -> Result<OffsetMap, String> {
    let mut lines = text.lines();
    match lines.next().map(str::trim) {
        Some(KNOWN_CHECKPOINT) => {}
        Some(version) => return Err(format!("its version is {version:?}, and 0 was expected")),
        // As Kafka makes them, before there is anything to say.
        None => return Ok(OffsetMap::new()),
    }
    let count: usize = lines.next().and_then(|line| line.trim().parse().ok()).ok_or("it has no count")?;
    let mut offsets = OffsetMap::new();
    for line in lines.filter(|line| !line.trim().is_empty()) {
        let entry = || {
            let mut words = line.split_whitespace();
            let (topic, partition, offset) = (words.next()?, words.next()?, words.next()?);
            words.next().is_none().then_some(())?;
            Some(((topic.to_owned(), partition.parse().ok()?), offset.parse().ok()?))
        };
        let (partition, offset) =
            entry().ok_or_else(|| format!("the line {line:?} is no topic, partition and offset"))?;
        offsets.insert(partition, offset);
    }
    if offsets.len() != count {
        return Err(format!("it says that it has {count} lines, and has {}", offsets.len()));
    }
    Ok(offsets)
}

/// Gives the checkpoint file `name` of a log directory these offsets, in one step that is durable on return.
pub(in crate::storage) fn write_checkpoint(
    fs: &dyn FileSystem,
    dir: &Path,
    name: &str,
    offsets: &OffsetMap,
) -> Result<(), DirError> {
    let mut lines: Vec<(&(String, i32), &i64)> = offsets.iter().collect();
    lines.sort_unstable();
    let mut text = format!("{KNOWN_CHECKPOINT}\n{}\n", lines.len());
    for ((topic, partition), offset) in lines {
        text += &format!("{topic} {partition} {offset}\n");
    }
    let written = replace_file(fs, dir, name, text.as_bytes()).and_then(|()| fs.sync_dir(dir));
    written.map_err(DirError::of("write", &dir.join(name)))
}

/// A file as text, whatever of it is none. `None` if there is no file.
fn read_text(env: &Env, path: &Path) -> io::Result<Option<String>> {
    let file = match env.fs.open(path, OpenMode::Read) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    let mut bytes = vec![0; file.len()?.min(LARGEST) as usize];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}
