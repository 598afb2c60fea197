//! The small text files of a partition, and how a small file is replaced.
//!
//! `partition.metadata`, two lines:
//! ```text
//! version: 0
//! topic_id: <22 characters: base64 of the 16 bytes, in the alphabet for URLs, without padding>
//! ```
//! `leader-epoch-checkpoint`: a version, a count, and as many lines:
//! ```text
//! 0
//! <count>
//! <epoch> <start offset>
//! ```

use std::io;
use std::path::Path;

use crate::protocol::Uuid;
use crate::storage::names;
use crate::storage::replace::replace_file;
use crate::sys::{FileSystem, OpenMode};

/// More than any small text file of a partition ever has, in bytes.
const LARGEST: u64 = 1 << 20;

/// Writes `partition.metadata` into a partition's directory. On return its content is on the medium and its name is
/// taken; the name is certain after a power cut once the directory is synced.
pub fn write_partition_metadata(fs: &dyn FileSystem, dir: &Path, topic_id: Uuid) -> io::Result<()> {
    let text = format!("version: 0\ntopic_id: {topic_id}\n");
    replace_file(fs, dir, names::PARTITION_METADATA, text.as_bytes())
}

/// The topic's id in a partition's directory. `None` if there is no `partition.metadata` or it makes no sense.
pub fn read_partition_metadata(fs: &dyn FileSystem, dir: &Path) -> io::Result<Option<Uuid>> {
    let Some(text) = read_text(fs, &dir.join(names::PARTITION_METADATA))? else { return Ok(None) };
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    Ok(if field("version") == Some("0") { field("topic_id").and_then(|text| text.parse().ok()) } else { None })
}

/// Writes `leader-epoch-checkpoint`: pairs of an epoch and its start offset.
pub(super) fn write_leader_epochs(fs: &dyn FileSystem, dir: &Path, epochs: &[(i32, i64)]) -> io::Result<()> {
    let mut text = format!("0\n{}\n", epochs.len());
    for (epoch, start) in epochs {
        text += &format!("{epoch} {start}\n");
    }
    replace_file(fs, dir, names::LEADER_EPOCH_CHECKPOINT, text.as_bytes())
}

/// The pairs in `leader-epoch-checkpoint`. `None` if there is none or it makes no sense.
pub(in crate::storage) fn read_leader_epochs(fs: &dyn FileSystem, dir: &Path) -> io::Result<Option<Vec<(i32, i64)>>> {
    let Some(text) = read_text(fs, &dir.join(names::LEADER_EPOCH_CHECKPOINT))? else { return Ok(None) };
    Ok(parse_leader_epochs(&text))
}

fn parse_leader_epochs(text: &str) -> Option<Vec<(i32, i64)>> {
    let mut lines = text.lines();
    if lines.next()?.trim() != "0" {
        return None;
    }
    let count: usize = lines.next()?.trim().parse().ok()?;
    let pairs: Option<Vec<(i32, i64)>> = lines
        .filter(|line| !line.trim().is_empty())
        .map(|line| {
            let (epoch, start) = line.trim().split_once(' ')?;
            Some((epoch.parse().ok()?, start.trim().parse().ok()?))
        })
        .collect();
    let pairs = pairs?;
    let rising = pairs.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
    (pairs.len() == count && rising).then_some(pairs)
}

/// A small file as text. `None` if there is none, or it is too large or no UTF-8.
fn read_text(fs: &dyn FileSystem, path: &Path) -> io::Result<Option<String>> {
    let file = match fs.open(path, OpenMode::Read) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    let len = file.len()?;
    if len > LARGEST {
        return Ok(None);
    }
    let mut bytes = vec![0; len as usize];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(String::from_utf8(bytes).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::OsFileSystem;

    #[test]
    fn small_files_are_read_as_they_are_written() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read_partition_metadata(&OsFileSystem, dir.path()).unwrap(), None);
        write_partition_metadata(&OsFileSystem, dir.path(), Uuid([7; 16])).unwrap();
        assert_eq!(read_partition_metadata(&OsFileSystem, dir.path()).unwrap(), Some(Uuid([7; 16])));
        let epochs = vec![(0, 0), (3, 17), (4, 17)];
        write_leader_epochs(&OsFileSystem, dir.path(), &epochs).unwrap();
        assert_eq!(read_leader_epochs(&OsFileSystem, dir.path()).unwrap(), Some(epochs));
        for nonsense in ["", "0", "0\n2\n0 0\n", "1\n0\n", "0\n1\nx y\n", "0\n2\n1 0\n0 0\n"] {
            assert_eq!(parse_leader_epochs(nonsense), None, "{nonsense:?}");
        }
    }
}
