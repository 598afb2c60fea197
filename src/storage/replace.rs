//! Small files that get new content in one step.

use std::io::{self, IoSlice};
use std::path::Path;

use super::names;
use crate::sys::{FileSystem, OpenMode};

/// Gives the file `name` in `dir` new content: after a power cut it has the old or the new, and is sure to have the new once
/// the directory is flushed. Until it has its name the content goes by that name with `.tmp` behind it.
pub(in crate::storage) fn replace_file(fs: &dyn FileSystem, dir: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    replace_by(fs, &dir.join(format!("{name}{}", names::TEMPORARY)), &dir.join(name), content)
}

/// The same for a file whose new content goes by another name first.
pub(in crate::storage) fn replace_by(
    fs: &dyn FileSystem,
    temporary: &Path,
    path: &Path,
    content: &[u8],
) -> io::Result<()> {
    let file = fs.open(temporary, OpenMode::CreateOrTruncate)?;
    file.write_all_at(&[IoSlice::new(content)], 0)?;
    file.sync()?;
    fs.rename(temporary, path)
}
