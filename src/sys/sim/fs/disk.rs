//! The state of a disk: contents, names, locks.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

use super::Cut;
use super::content::{Content, DataCut, PAGE};
use super::names::{Names, Node, ROOT};
use super::operation::{History, OpKind};
use crate::sys::OpenMode;
use crate::sys::sim::fault::{FULL_DISK, Faults};
use crate::sys::sim::prng::Prng;

#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    /// Which start of the process is running.
    pub start: u64,
    pub stop_after: Option<u64>,
    pub capacity: Option<u64>,
    pub history: History,
    pub faults: Faults,
    names: Names,
    files: BTreeMap<u64, FileState>,
    /// The last number that a file or directory was given; that of the root is 0.
    last_node: u64,
    /// More files than this are worth a look at which are gone.
    forget_above: usize,
    /// The locked files.
    locks: BTreeMap<u64, u64>,
    last_lock: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct FileState {
    pub content: Content,
    /// When it last changed, as programs see it, and as the medium has it: that is settled with the content.
    pub modified_ms: i64,
    pub durable_modified_ms: i64,
    /// How many handles there are.
    pub handles: usize,
}

/// The path from the root, without `.`, `..` and a leading `/`.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => normal.push(name),
            Component::ParentDir => {
                normal.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
        }
    }
    normal
}

impl FileState {
    /// A flush that works.
    pub fn sync(&mut self) {
        self.content.sync();
        self.durable_modified_ms = self.modified_ms;
    }
}

impl Disk {
    pub fn find(&self, path: &Path) -> io::Result<Node> {
        let mut node = Node::Dir(ROOT);
        for name in normal(path).iter() {
            match node {
                Node::Dir(dir) => node = self.names.get(dir, name).ok_or(Errno::NOENT)?,
                Node::File(_) => return Err(Errno::NOTDIR.into()),
            }
        }
        Ok(node)
    }

    pub fn find_dir(&self, path: &Path) -> io::Result<u64> {
        match self.find(path)? {
            Node::Dir(id) => Ok(id),
            Node::File(_) => Err(Errno::NOTDIR.into()),
        }
    }

    /// The directory that `path` is in, or would be, and its name there.
    fn place(&self, path: &Path) -> io::Result<(u64, std::ffi::OsString)> {
        let path = normal(path);
        let name = path.file_name().ok_or(Errno::BUSY)?.to_owned();
        let parent = path.parent().unwrap_or(Path::new(""));
        Ok((self.find_dir(parent)?, name))
    }

    pub fn file(&mut self, id: u64) -> &mut FileState {
        self.files.entry(id).or_default()
    }

    fn make_node(&mut self, kind: OpKind) -> io::Result<u64> {
        if self.free() < PAGE as u64 {
            self.faults.count(kind, FULL_DISK);
            return Err(Errno::NOSPC.into());
        }
        self.last_node += 1;
        Ok(self.last_node)
    }

    /// The file at `path`, which is made, emptied or refused as `mode` says.
    pub fn open(&mut self, path: &Path, mode: OpenMode, kind: OpKind, number: u64, now_ms: i64) -> io::Result<u64> {
        match self.find(path) {
            Ok(_) if mode == OpenMode::CreateNew => Err(Errno::EXIST.into()),
            Ok(Node::Dir(_)) => Err(Errno::ISDIR.into()),
            Ok(Node::File(id)) => {
                if mode == OpenMode::CreateOrTruncate {
                    let file = self.file(id);
                    file.content.set_len(0, number);
                    file.modified_ms = now_ms;
                }
                Ok(id)
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound && !matches!(mode, OpenMode::Read | OpenMode::ReadWrite) => {
                let (dir, name) = self.place(path)?;
                let id = self.make_node(kind)?;
                self.names.link(dir, &name, Node::File(id));
                let file = self.file(id);
                (file.modified_ms, file.durable_modified_ms) = (now_ms, now_ms);
                Ok(id)
            }
            Err(e) => Err(e),
        }
    }

    pub fn create_dir(&mut self, path: &Path) -> io::Result<()> {
        match self.find(path) {
            Ok(_) => Err(Errno::EXIST.into()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let (dir, name) = self.place(path)?;
                let id = self.make_node(OpKind::CreateDir)?;
                self.names.link(dir, &name, Node::Dir(id));
                Ok(())
            }
            Err(e) => Err(e),
        }
    }

    pub fn list(&self, path: &Path) -> io::Result<Vec<crate::sys::DirEntry>> {
        let dir = self.find_dir(path)?;
        let entries = self.names.list(dir);
        let entry = |(name, node): (&std::ffi::OsString, Node)| crate::sys::DirEntry {
            name: name.clone(),
            is_dir: matches!(node, Node::Dir(_)),
        };
        Ok(entries.map(entry).collect())
    }

    pub fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let node = self.find(from)?;
        let (from_place, to_place) = (self.place(from)?, self.place(to)?);
        if from_place == to_place {
            return Ok(());
        }
        if matches!(node, Node::Dir(_)) && normal(to).starts_with(normal(from)) {
            return Err(Errno::INVAL.into());
        }
        match (node, self.find(to).ok()) {
            (_, None) | (Node::File(_), Some(Node::File(_))) => {}
            (Node::File(_), Some(Node::Dir(_))) => return Err(Errno::ISDIR.into()),
            (Node::Dir(_), Some(Node::File(_))) => return Err(Errno::NOTDIR.into()),
            (Node::Dir(_), Some(Node::Dir(id))) => {
                if self.names.list(id).next().is_some() {
                    return Err(Errno::NOTEMPTY.into());
                }
            }
        }
        self.names.rename((from_place.0, &from_place.1), (to_place.0, &to_place.1));
        Ok(())
    }

    pub fn remove_file(&mut self, path: &Path) -> io::Result<()> {
        match self.find(path)? {
            Node::Dir(_) => Err(Errno::ISDIR.into()),
            Node::File(_) => {
                let (dir, name) = self.place(path)?;
                self.names.unlink(dir, &name);
                Ok(())
            }
        }
    }

    pub fn remove_dir(&mut self, path: &Path) -> io::Result<()> {
        let id = self.find_dir(path)?;
        if self.names.list(id).next().is_some() {
            return Err(Errno::NOTEMPTY.into());
        }
        let (dir, name) = self.place(path)?;
        self.names.unlink(dir, &name);
        Ok(())
    }

    pub fn sync_dir(&mut self, path: &Path) -> io::Result<()> {
        let dir = self.find_dir(path)?;
        self.names.sync(dir);
        // To look at everything costs more than to keep a few files for longer.
        if self.files.len() > self.forget_above {
            self.forget_unreachable();
        }
        Ok(())
    }

    fn forget_unreachable(&mut self) {
        let alive = self.names.alive();
        self.files.retain(|id, file| file.handles > 0 || alive.contains(&Node::File(*id)));
        self.forget_above = self.files.len() * 2 + 32;
    }

    /// Answers the lock's number.
    pub fn lock(&mut self, file: u64) -> io::Result<u64> {
        if self.locks.contains_key(&file) {
            return Err(Errno::WOULDBLOCK.into());
        }
        self.last_lock += 1;
        self.locks.insert(file, self.last_lock);
        Ok(self.last_lock)
    }

    pub fn unlock(&mut self, lock: u64) {
        self.locks.retain(|_, held| *held != lock);
    }

    pub fn used(&self) -> u64 {
        let named = self.names.live_files();
        let open = self.files.iter().filter(|(_, file)| file.handles > 0).map(|(id, _)| *id);
        let ids: std::collections::BTreeSet<u64> = named.chain(open).collect();
        ids.iter().filter_map(|id| self.files.get(id)).map(|file| file.content.live.allocated()).sum()
    }

    fn free(&self) -> u64 {
        self.capacity.map_or(u64::MAX, |capacity| capacity.saturating_sub(self.used()))
    }

    /// How many of `len` bytes at `position` there is space for.
    pub fn space_for(&self, id: u64, position: u64, len: usize) -> usize {
        if self.capacity.is_none() {
            return len;
        }
        let pages = (self.free() / PAGE as u64) as usize;
        let content = self.files.get(&id).map(|file| &file.content);
        content.and_then(|content| content.new_pages(position, len).nth(pages)).unwrap_or(len)
    }

    pub fn end_process(&mut self) {
        self.start += 1;
        self.stop_after = None;
        self.locks.clear();
        self.files.values_mut().for_each(|file| file.handles = 0);
        self.forget_unreachable();
    }

    pub fn power_cut(&mut self, cut: Cut, prng: &mut Prng) {
        self.names = self.names.after_cut(cut.names, prng);
        for file in self.files.values_mut() {
            file.content = file.content.after_cut(cut.data, prng);
            file.modified_ms = match cut.data {
                DataCut::Dropped => file.durable_modified_ms,
                DataCut::Kept => file.modified_ms,
                _ if file.modified_ms == file.durable_modified_ms => file.modified_ms,
                _ => *prng.pick(&[file.modified_ms, file.durable_modified_ms]),
            };
            file.durable_modified_ms = file.modified_ms;
        }
        self.end_process();
    }

    pub fn image(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut image = BTreeMap::new();
        let mut to_visit = vec![(PathBuf::new(), ROOT)];
        while let Some((path, dir)) = to_visit.pop() {
            for (name, node) in self.names.list(dir) {
                let path = path.join(name);
                match node {
                    Node::File(id) => {
                        let bytes = self.files.get(&id).map(|file| file.content.live.to_vec());
                        image.insert(path, Some(bytes.unwrap_or_default()));
                    }
                    Node::Dir(id) => {
                        image.insert(path.clone(), None);
                        to_visit.push((path, id));
                    }
                }
            }
        }
        image
    }

    pub fn flip_bit(&mut self, path: &Path, position: u64, bit: u8) -> bool {
        let Ok(Node::File(id)) = self.find(path) else { return false };
        let content = &mut self.file(id).content;
        content.flip(position, bit);
        position < content.live.len
    }
}
