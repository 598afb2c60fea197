//! What the machine's file system and the simulated one have in common where nothing fails.

use std::io::ErrorKind;
use std::path::PathBuf;

use super::*;
use crate::sys::sim::Prng;
use crate::sys::{DirEntry, OsFileSystem};

/// Runs `test` on both, in an empty directory.
fn on_both(test: impl Fn(&dyn FileSystem, &Path)) {
    let dir = tempfile::tempdir().unwrap();
    test(&OsFileSystem, dir.path());
    let fs = sim();
    fs.create_dir_all(Path::new("/some/where")).unwrap();
    test(&fs, Path::new("/some/where"));
}

fn kind<T>(result: io::Result<T>) -> ErrorKind {
    result.err().expect("it is refused").kind()
}

fn listed(fs: &dyn FileSystem, path: &Path) -> Vec<(String, bool)> {
    let mut all: Vec<DirEntry> = fs.list(path).unwrap();
    all.sort();
    all.into_iter().map(|entry| (entry.name.into_string().unwrap(), entry.is_dir)).collect()
}

#[test]
fn opening() {
    on_both(|fs, dir| {
        let path = dir.join("f");
        assert_eq!(kind(fs.open(&path, OpenMode::Read)), ErrorKind::NotFound);
        assert_eq!(kind(fs.open(&path, OpenMode::ReadWrite)), ErrorKind::NotFound);
        assert_eq!(kind(fs.open(&dir.join("no/f"), OpenMode::CreateNew)), ErrorKind::NotFound);
        let file = fs.open(&path, OpenMode::CreateNew).unwrap();
        write(&*file, b"abc", 0).unwrap();
        assert_eq!(kind(fs.open(&path, OpenMode::CreateNew)), ErrorKind::AlreadyExists);
        assert_eq!(fs.open(&path, OpenMode::CreateOrOpen).unwrap().len().unwrap(), 3);
        let reader = fs.open(&path, OpenMode::Read).unwrap();
        assert!(write(&*reader, b"x", 0).is_err());
        assert!(reader.set_len(1).is_err());
        assert_eq!(kind(fs.open(&path.join("below"), OpenMode::CreateNew)), ErrorKind::NotADirectory);
        assert_eq!(kind(fs.open(dir, OpenMode::ReadWrite)), ErrorKind::IsADirectory);
        fs.open(&path, OpenMode::CreateOrTruncate).unwrap();
        assert!(reader.is_empty().unwrap(), "the same file, emptied");
        reader.sync().unwrap();
    });
}

#[test]
fn reading_and_writing() {
    on_both(|fs, dir| {
        let file = fs.open(&dir.join("f"), OpenMode::CreateNew).unwrap();
        let mut model: Vec<u8> = Vec::new();
        let mut prng = Prng::new(5);
        for _ in 0..300 {
            match prng.below(10) {
                0 => {
                    let len = prng.index(20_000);
                    file.set_len(len as u64).unwrap();
                    model.resize(len, 0);
                }
                1..=5 => {
                    let at = prng.index(20_000);
                    let mut bytes = vec![0; prng.index(9000)];
                    prng.fill(&mut bytes);
                    let middle = prng.index(bytes.len() + 1);
                    let parts = [IoSlice::new(&bytes[..middle]), IoSlice::new(&[]), IoSlice::new(&bytes[middle..])];
                    file.write_all_at(&parts, at as u64).unwrap();
                    if !bytes.is_empty() {
                        model.resize(model.len().max(at + bytes.len()), 0);
                        model[at..at + bytes.len()].copy_from_slice(&bytes);
                    }
                }
                6 => file.sync().unwrap(),
                _ => {
                    let at = prng.index(30_000);
                    let mut buf = vec![1; prng.index(9000) + 1];
                    let n = file.read_at(&mut buf, at as u64).unwrap();
                    let there = &model[at.min(model.len())..];
                    assert_eq!(&buf[..n], &there[..there.len().min(buf.len())]);
                }
            }
            assert_eq!(file.len().unwrap(), model.len() as u64);
        }
        let mut all = vec![0; model.len()];
        file.read_exact_at(&mut all, 0).unwrap();
        assert_eq!(all, model);
        assert_eq!(kind(file.read_exact_at(&mut all, 1)), ErrorKind::UnexpectedEof);
        let metadata = fs.metadata(&dir.join("f")).unwrap();
        assert_eq!((metadata.len, metadata.is_dir), (model.len() as u64, false));
        assert!(metadata.modified_ms > 0);
    });
}

#[test]
fn directories() {
    on_both(|fs, dir| {
        let at = |path: &str| dir.join(path);
        assert_eq!(kind(fs.create_dir(&at("a/b"))), ErrorKind::NotFound);
        fs.create_dir(&at("a")).unwrap();
        assert_eq!(kind(fs.create_dir(&at("a"))), ErrorKind::AlreadyExists);
        fs.create_dir_all(&at("a/b/c")).unwrap();
        fs.open(&at("a/f"), OpenMode::CreateNew).unwrap();
        assert_eq!(kind(fs.create_dir(&at("a/f"))), ErrorKind::AlreadyExists);
        assert_eq!(listed(fs, &at("a")), [("b".into(), true), ("f".into(), false)]);
        assert_eq!(kind(fs.list(&at("no"))), ErrorKind::NotFound);
        assert_eq!(kind(fs.list(&at("a/f"))), ErrorKind::NotADirectory);
        assert_eq!(kind(fs.sync_dir(&at("no"))), ErrorKind::NotFound);
        assert!(fs.metadata(&at("a")).unwrap().is_dir);
        assert!(!fs.exists(&at("no")).unwrap());
        assert_eq!(kind(fs.remove_dir(&at("a"))), ErrorKind::DirectoryNotEmpty);
        assert_eq!(kind(fs.remove_dir(&at("a/f"))), ErrorKind::NotADirectory);
        assert_eq!(kind(fs.remove_dir(&at("no"))), ErrorKind::NotFound);
        assert_eq!(kind(fs.remove_file(&at("no"))), ErrorKind::NotFound);
        assert!(fs.remove_file(&at("a/b")).is_err());
        fs.sync_dir(&at("a")).unwrap();
        fs.remove_dir_all(&at("a")).unwrap();
        assert_eq!(listed(fs, dir), []);
    });
}

#[test]
fn renaming() {
    on_both(|fs, dir| {
        let at = |path: &str| -> PathBuf { dir.join(path) };
        let file = fs.open(&at("f"), OpenMode::CreateNew).unwrap();
        write(&*file, b"one", 0).unwrap();
        let other = fs.open(&at("g"), OpenMode::CreateNew).unwrap();
        write(&*other, b"other", 0).unwrap();
        assert_eq!(kind(fs.rename(&at("no"), &at("f"))), ErrorKind::NotFound);
        assert_eq!(kind(fs.rename(&at("f"), &at("no/f"))), ErrorKind::NotFound);
        fs.rename(&at("f"), &at("g")).unwrap();
        assert_eq!(listed(fs, dir), [("g".into(), false)]);
        assert_eq!(fs.metadata(&at("g")).unwrap().len, 3);
        let mut buf = [0; 5];
        other.read_exact_at(&mut buf, 0).unwrap();
        assert_eq!(&buf, b"other", "what was replaced is there for those who have it open");
        fs.rename(&at("g"), &at("g")).unwrap();
        fs.create_dir(&at("d")).unwrap();
        fs.create_dir(&at("e")).unwrap();
        assert_eq!(kind(fs.rename(&at("g"), &at("d"))), ErrorKind::IsADirectory);
        assert_eq!(kind(fs.rename(&at("d"), &at("g"))), ErrorKind::NotADirectory);
        fs.rename(&at("g"), &at("d/h")).unwrap();
        assert_eq!(kind(fs.rename(&at("e"), &at("d"))), ErrorKind::DirectoryNotEmpty);
        assert_eq!(kind(fs.rename(&at("d"), &at("d/below"))), ErrorKind::InvalidInput);
        fs.rename(&at("d"), &at("e")).unwrap();
        assert_eq!(listed(fs, &at("e")), [("h".into(), false)]);
        file.read_exact_at(&mut buf[..3], 0).unwrap();
        assert_eq!(&buf[..3], b"one", "a handle follows the file");
        fs.remove_file(&at("e/h")).unwrap();
        file.read_exact_at(&mut buf[..3], 0).unwrap();
        assert_eq!(file.len().unwrap(), 3);
    });
}

#[test]
fn locking() {
    on_both(|fs, dir| {
        let path = dir.join("lock");
        let held = fs.lock(&path).unwrap();
        assert_eq!(kind(fs.lock(&path)), ErrorKind::WouldBlock);
        assert!(fs.lock(&dir.join("other")).is_ok());
        drop(held);
        drop(fs.lock(&path).unwrap());
        assert!(fs.exists(&path).unwrap());
    });
}
