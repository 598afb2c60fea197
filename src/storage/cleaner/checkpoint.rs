//! Up to where a log was cleaned: `cleaner-checkpoint` in the partition's directory.
//!
//! ```text
//! version: 0
//! cleaned: <offset>           everything below has gone through the cleaner
//! horizon: <ms>               when the first tombstone or marker of it may go, ms since the Unix epoch; -1 for none
//! failures: <count>           how often cleaning has failed since it last worked
//! error: <text>               why, on one line; not there if it did not fail
//! ```
//!
//! It is written after what it speaks of is durable. One that is lost or makes no sense costs another pass over the whole log
//! and nothing else.

use std::io;
use std::path::Path;

use crate::storage::names;
use crate::storage::replace::replace_file;
use crate::sys::{FileSystem, OpenMode};

/// More than a checkpoint ever has, in bytes.
const LARGEST: u64 = 64 * 1024;

/// What is remembered of the cleaning of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Everything below this offset has gone through the cleaner.
    pub cleaned: i64,
    /// When the first tombstone or marker of it may go, ms since the Unix epoch.
    pub horizon_ms: Option<i64>,
    /// How often cleaning has failed since it last worked.
    pub failures: u32,
    /// Why.
    pub error: Option<String>,
}

impl Checkpoint {
    /// The checkpoint of the log in `dir`; the default if there is none, or none that makes sense.
    pub fn read(fs: &dyn FileSystem, dir: &Path) -> io::Result<Checkpoint> {
        Ok(Self::read_if_sound(fs, dir)?.unwrap_or_default())
    }

    /// The checkpoint of the log in `dir`, the default if there is none. `None` if there is one that makes no sense.
    pub fn read_if_sound(fs: &dyn FileSystem, dir: &Path) -> io::Result<Option<Checkpoint>> {
        let file = match fs.open(&dir.join(names::CLEANER_CHECKPOINT), OpenMode::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(Checkpoint::default())),
            Err(error) => return Err(error),
        };
        let len = file.len()?;
        if len > LARGEST {
            return Ok(None);
        }
        let mut bytes = vec![0; len as usize];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(String::from_utf8(bytes).ok().and_then(|text| Checkpoint::parse(&text)))
    }

    fn parse(text: &str) -> Option<Checkpoint> {
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        if field("version")? != "0" || !text.ends_with('\n') {
            return None;
        }
        let cleaned: i64 = field("cleaned")?.parse().ok()?;
        let horizon: i64 = field("horizon")?.parse().ok()?;
        Some(Checkpoint {
            cleaned: cleaned.max(0),
            horizon_ms: (horizon >= 0).then_some(horizon),
            failures: field("failures")?.parse().ok()?,
            error: field("error").map(str::to_owned),
        })
    }

    fn text(&self) -> String {
        let Checkpoint { cleaned, horizon_ms, failures, error } = self;
        let horizon = horizon_ms.unwrap_or(-1);
        let mut text = format!("version: 0\ncleaned: {cleaned}\nhorizon: {horizon}\nfailures: {failures}\n");
        if let Some(error) = error {
            text += &format!("error: {}\n", error.replace(['\n', '\r'], " "));
        }
        text
    }

    /// Gives `dir` this checkpoint in one step: after a power cut it has the old one or this.
    pub fn write(&self, fs: &dyn FileSystem, dir: &Path) -> io::Result<()> {
        replace_file(fs, dir, names::CLEANER_CHECKPOINT, self.text().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::OsFileSystem;

    #[test]
    fn it_is_read_as_it_was_written_and_only_whole() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Checkpoint::read(&OsFileSystem, dir.path()).unwrap(), Checkpoint::default());
        for (horizon_ms, error) in [(None, None), (Some(1_700_000_000_000), Some("no\nroom".to_owned()))] {
            let checkpoint = Checkpoint { cleaned: 77, horizon_ms, failures: 3, error };
            checkpoint.write(&OsFileSystem, dir.path()).unwrap();
            let read = Checkpoint::read(&OsFileSystem, dir.path()).unwrap();
            assert_eq!(read.error, checkpoint.error.as_ref().map(|error| error.replace('\n', " ")));
            assert_eq!(Checkpoint { error: None, ..read }, Checkpoint { error: None, ..checkpoint.clone() });
            let text = checkpoint.text();
            for cut in 0..text.len() {
                let cut = Checkpoint::parse(&text[..cut]);
                assert!(cut.is_none_or(
                    |cut| Checkpoint { error: None, ..cut } == Checkpoint { error: None, ..checkpoint.clone() }
                ));
            }
        }
    }
}
