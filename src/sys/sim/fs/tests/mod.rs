mod contract;
mod cuts;
mod faults;
mod programs;

use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::sys::sim::SimClock;
use crate::sys::{File, FileSystem, OpenMode};

fn sim() -> SimFileSystem {
    SimFileSystem::new(Arc::new(SimClock::new(1000)))
}

fn write(file: &dyn File, bytes: &[u8], position: u64) -> io::Result<()> {
    file.write_all_at(&[IoSlice::new(bytes)], position)
}

/// Makes a file of these bytes, flushed or not.
fn make(fs: &dyn FileSystem, path: &str, bytes: &[u8], flush: bool) -> Arc<dyn File> {
    let file = fs.open(Path::new(path), OpenMode::CreateOrOpen).unwrap();
    write(&*file, bytes, 0).unwrap();
    if flush {
        file.sync().unwrap();
    }
    file
}

fn content(fs: &SimFileSystem, path: &str) -> Option<Vec<u8>> {
    fs.image().remove(Path::new(path)).flatten()
}

fn names(fs: &SimFileSystem) -> Vec<String> {
    fs.image().keys().map(|path| path.display().to_string()).collect()
}
