//! How far the scrub is and what it has found: `scrub-checkpoint` in the data directory.
//!
//! ```text
//! version: 0
//! started: <ms>                               when the last pass began, ms since the Unix epoch; -1 if none has
//! finished: <ms>                              when the last one that came to its end did; -1 if none has
//! at: <topic> <n> <segment> <position> <offset>
//! damaged: <id> <topic> <n> <segment> <position> <bytes> <from> <to> <kind> <found>
//! more: <count>
//! ```
//!
//! `at` is there while a pass is under way: what lies before it, in the order of topic names, partitions and offsets, has been
//! looked at. `damaged` is one line a stretch: the topic's id and name, the partition, the segment's base offset, where in its
//! file and how many bytes, the offsets from and up to, and when it was found; `kind` is `checksum`, `frame` or `unreadable`.
//! `more` says how many further stretches there are that the file has no room for.
//!
//! It is written after what it speaks of was read, so a file that is older than that, or lost, costs another look and nothing else.

use std::io;
use std::path::Path;

use super::{Finding, Kind};
use crate::protocol::Uuid;
use crate::storage::log::Damage;
use crate::storage::names;
use crate::storage::replace::replace_file;
use crate::sys::{FileSystem, OpenMode};

/// More than a checkpoint ever has, in bytes.
const LARGEST: u64 = 1 << 20;
/// How many stretches are listed.
pub(super) const MOST_FINDINGS: usize = 1000;

/// Up to where a pass has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    pub topic: String,
    pub partition: i32,
    /// The base offset of the segment that is being read.
    pub segment: i64,
    /// Bytes of its file that were checked.
    pub position: u64,
    /// The offset after the last one that was checked.
    pub offset: i64,
}

/// What is remembered of the scrub. A value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// When the last pass began, ms since the Unix epoch; `None` if none has.
    pub started_ms: Option<i64>,
    /// When the last pass that came to its end did, ms since the Unix epoch.
    pub finished_ms: Option<i64>,
    /// Where the pass is that is under way. `None` between passes.
    pub at: Option<Position>,
    /// What is damaged, as far as is known: by topic, partition and position. At most 1,000 of them.
    pub findings: Vec<Finding>,
    /// How many more there are.
    pub more: u64,
}

impl Checkpoint {
    /// That of a data directory, which may be in use; the default if there is none, or none that makes sense.
    pub fn read(fs: &dyn FileSystem, data_dir: &Path) -> io::Result<Checkpoint> {
        let file = match fs.open(&data_dir.join(names::SCRUB_CHECKPOINT), OpenMode::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Checkpoint::default()),
            Err(error) => return Err(error),
        };
        let len = file.len()?;
        if len > LARGEST {
            return Ok(Checkpoint::default());
        }
        let mut bytes = vec![0; len as usize];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(String::from_utf8(bytes).ok().and_then(|text| Checkpoint::parse(&text)).unwrap_or_default())
    }

    fn parse(text: &str) -> Option<Checkpoint> {
        let mut checkpoint = Checkpoint::default();
        let mut lines = text.strip_suffix('\n')?.lines();
        if lines.next()? != "version: 0" {
            return None;
        }
        let mut is_whole = false;
        for line in lines {
            let (name, value) = line.split_once(": ")?;
            match name {
                "started" => checkpoint.started_ms = time(value)?,
                "finished" => checkpoint.finished_ms = time(value)?,
                "at" => checkpoint.at = Some(parse_position(value)?),
                "damaged" => checkpoint.findings.push(parse_finding(value)?),
                "more" => (checkpoint.more, is_whole) = (value.parse().ok()?, true),
                _ => {}
            }
        }
        is_whole.then_some(checkpoint)
    }

    fn text(&self) -> String {
        let Checkpoint { started_ms, finished_ms, at, findings, more } = self;
        let (started, finished) = (started_ms.unwrap_or(-1), finished_ms.unwrap_or(-1));
        let mut text = format!("version: 0\nstarted: {started}\nfinished: {finished}\n");
        if let Some(Position { topic, partition, segment, position, offset }) = at {
            text += &format!("at: {topic} {partition} {segment} {position} {offset}\n");
        }
        for Finding { topic_id, topic, partition, damage, kind, found_ms } in findings {
            let Damage { segment, position, bytes, offsets: (from, to), .. } = damage;
            let kind = kind.name();
            text += &format!(
                "damaged: {topic_id} {topic} {partition} {segment} {position} {bytes} {from} {to} {kind} {found_ms}\n"
            );
        }
        text + &format!("more: {more}\n")
    }

    /// Gives the data directory this checkpoint in one step: after a power cut it has the old one or this.
    pub(super) fn write(&self, fs: &dyn FileSystem, data_dir: &Path) -> io::Result<()> {
        replace_file(fs, data_dir, names::SCRUB_CHECKPOINT, self.text().as_bytes())
    }
}

fn time(text: &str) -> Option<Option<i64>> {
    let ms: i64 = text.parse().ok()?;
    Some((ms >= 0).then_some(ms))
}

fn parse_position(text: &str) -> Option<Position> {
    let mut words = text.split(' ');
    let position = Position {
        topic: words.next()?.to_owned(),
        partition: words.next()?.parse().ok()?,
        segment: words.next()?.parse().ok()?,
        position: words.next()?.parse().ok()?,
        offset: words.next()?.parse().ok()?,
    };
    words.next().is_none().then_some(position)
}

fn parse_finding(text: &str) -> Option<Finding> {
    let mut words = text.split(' ');
    let topic_id: Uuid = words.next()?.parse().ok()?;
    let topic = words.next()?.to_owned();
    let partition = words.next()?.parse().ok()?;
    let segment = words.next()?.parse().ok()?;
    let position = words.next()?.parse().ok()?;
    let bytes = words.next()?.parse().ok()?;
    let offsets = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let kind = Kind::named(words.next()?)?;
    let found_ms = words.next()?.parse().ok()?;
    let damage = Damage { segment, position, bytes, offsets, served: kind == Kind::Checksum };
    words.next().is_none().then_some(Finding { topic_id, topic, partition, damage, kind, found_ms })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::OsFileSystem;

    #[test]
    fn it_is_read_as_it_was_written_and_only_whole() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Checkpoint::read(&OsFileSystem, dir.path()).unwrap(), Checkpoint::default());
        let finding = |kind| Finding {
            topic_id: Uuid([3; 16]),
            topic: "a.b_c-d".into(),
            partition: 7,
            damage: Damage { segment: 5, position: 61, bytes: 70, offsets: (5, 9), served: kind == Kind::Checksum },
            kind,
            found_ms: 1_700_000_000_000,
        };
        let at = Position { topic: "t".into(), partition: 2, segment: 100, position: 4096, offset: 117 };
        let checkpoint = Checkpoint {
            started_ms: Some(1_700_000_000_000),
            finished_ms: None,
            at: Some(at),
            findings: [Kind::Checksum, Kind::Frame, Kind::Unreadable].map(finding).to_vec(),
            more: 3,
        };
        checkpoint.write(&OsFileSystem, dir.path()).unwrap();
        assert_eq!(Checkpoint::read(&OsFileSystem, dir.path()).unwrap(), checkpoint);
        let text = checkpoint.text();
        for cut in 0..text.len() {
            assert_eq!(Checkpoint::parse(&text[..cut]), None, "{cut}");
        }
    }
}
