//! Where what is removed is kept: a folder with the bytes, and a manifest.
//!
//! ```text
//! recovered-<time>/
//!   manifest.jsonl               a line for each piece, there once every piece is on the medium
//!   <folder>/<file>              a whole file
//!   <folder>/<file>@<position>   the bytes of a file from a position on
//! ```
//!
//! A line of the manifest is an object with these fields:
//!
//! | field | type | what it is |
//! |---|---|---|
//! | `file` | string | where the bytes were, from the data directory |
//! | `position` | number | where in the file they started |
//! | `bytes` | number | how many there are |
//! | `offsets` | `[from, to]` or null | the offsets that are or were in them: from, and the first after |
//! | `why` | string | the name of the step that removes them |
//! | `crc32c` | string | the CRC-32C of the bytes, 8 hexadecimal digits |
//! | `kept` | string | where they are now, from the quarantine folder |
//!
//! Names that are no UTF-8 have the bytes that do not fit replaced by U+FFFD.
//!
//! In doze's data directories the folder is in the directory. Apache Kafka refuses to start where it finds a folder that is no
//! partition's, so for its log directories it is beside the directory.

use std::collections::BTreeSet;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};

use crate::storage::names;
use crate::storage::offline::{DataDir, Origin};
use crate::storage::replace::replace_file;
use crate::storage::store::DirError;
use crate::sys::{FileSystem, OpenMode};

const PIECE: usize = 256 * 1024;

/// A stretch of a file that is to be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// From the data directory; of a catalog that is elsewhere its whole path.
    pub file: PathBuf,
    pub position: u64,
    /// `None`: the whole file.
    pub bytes: Option<u64>,
    pub offsets: Option<(i64, i64)>,
    pub why: &'static str,
}

/// What is in quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The folder.
    pub path: PathBuf,
    pub pieces: u64,
    pub bytes: u64,
}

/// Where the quarantine folder of a directory goes.
fn place(dir: &DataDir) -> (PathBuf, String) {
    match dir.origin() {
        Origin::Doze => (dir.path().to_owned(), String::new()),
        Origin::Kafka => {
            let name = dir.path().file_name().map_or_else(|| "log".into(), |name| name.to_string_lossy().into_owned());
            let parent = dir.path().parent().filter(|parent| !parent.as_os_str().is_empty());
            (parent.unwrap_or(Path::new(".")).to_owned(), format!("{name}-"))
        }
    }
}

/// Copies `pieces` into a new quarantine folder that has `label` in its name. On return all of it is on the medium. Nothing
/// of the directory has changed but for the folder.
pub(super) fn keep(dir: &DataDir, label: &str, pieces: &[Piece]) -> Result<Option<Kept>, DirError> {
    if pieces.is_empty() {
        return Ok(None);
    }
    let fs = &*dir.env().fs;
    let (parent, prefix) = place(dir);
    let folder = make_folder(fs, &parent, &prefix, label)?;
    let mut manifest = String::new();
    let mut kept = Kept { path: folder.clone(), pieces: 0, bytes: 0 };
    let mut folders = BTreeSet::new();
    for piece in pieces {
        let from = dir.path().join(&piece.file);
        let name = piece.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let above = if piece.file.is_absolute() { None } else { piece.file.parent() };
        let to = above.filter(|above| !above.as_os_str().is_empty()).map_or(folder.clone(), |above| folder.join(above));
        if folders.insert(to.clone()) {
            fs.create_dir_all(&to).map_err(DirError::of("create", &to))?;
        }
        let name = if piece.bytes.is_none() { name } else { format!("{name}@{}", piece.position) };
        let target = to.join(&name);
        let copied = match copy_piece(fs, &from, piece, &target) {
            // What is not there any more needs no keeping.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            copied => copied.map_err(DirError::of("keep what is removed of", &from))?,
        };
        let relative = target.strip_prefix(&folder).unwrap_or(&target).to_owned();
        let line = serde_json::json!({
            "file": piece.file.to_string_lossy(),
            "position": piece.position,
            "bytes": copied.0,
            "offsets": piece.offsets.map(|(from, to)| [from, to]),
            "why": piece.why,
            "crc32c": format!("{:08x}", copied.1),
            "kept": relative.to_string_lossy(),
        });
        manifest += &format!("{line}\n");
        kept.pieces += 1;
        kept.bytes += copied.0;
    }
    for folder in &folders {
        fs.sync_dir(folder).map_err(DirError::of("flush", folder))?;
    }
    replace_file(fs, &folder, names::QUARANTINE_MANIFEST, manifest.as_bytes())
        .map_err(DirError::of("write", &folder.join(names::QUARANTINE_MANIFEST)))?;
    fs.sync_dir(&folder).map_err(DirError::of("flush", &folder))?;
    Ok(Some(kept))
}

/// Makes a folder that was not there.
fn make_folder(fs: &dyn FileSystem, parent: &Path, prefix: &str, label: &str) -> Result<PathBuf, DirError> {
    let mut nth = 1;
    loop {
        let again = if nth == 1 { String::new() } else { format!(".{nth}") };
        let path = parent.join(format!("{prefix}{}", names::quarantine_dir(&format!("{label}{again}"))));
        match fs.create_dir(&path) {
            Ok(()) => {
                fs.sync_dir(parent).map_err(DirError::of("flush", parent))?;
                return Ok(path);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => nth += 1,
            Err(error) => return Err(DirError::of("create", &path)(error)),
        }
    }
}

/// Copies a piece. Answers how many bytes it has, and their checksum.
fn copy_piece(fs: &dyn FileSystem, from: &Path, piece: &Piece, to: &Path) -> io::Result<(u64, u32)> {
    let source = fs.open(from, OpenMode::Read)?;
    let len = source.len()?.saturating_sub(piece.position);
    let len = piece.bytes.map_or(len, |bytes| bytes.min(len));
    let target = fs.open(to, OpenMode::CreateNew)?;
    let mut buffer = vec![0; PIECE.min(usize::try_from(len).unwrap_or(PIECE))];
    let (mut done, mut crc) = (0, 0);
    while done < len {
        let n = buffer.len().min(usize::try_from(len - done).unwrap_or(PIECE));
        source.read_exact_at(&mut buffer[..n], piece.position + done)?;
        target.write_all_at(&[IoSlice::new(&buffer[..n])], done)?;
        crc = crc32c::crc32c_append(crc, &buffer[..n]);
        done += n as u64;
    }
    target.sync()?;
    Ok((done, crc))
}
