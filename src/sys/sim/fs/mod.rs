//! A disk in memory, with what is on its medium beside what programs see.

mod content;
mod disk;
mod files;
mod names;
mod operation;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

pub use content::DataCut;
pub use names::NamesCut;
pub use operation::{OpKind, Operation};

use super::fault::{Effect, Fault, Faults};
use super::prng::Prng;
use crate::sys::Clock;
use disk::Disk;

/// What a power cut does to what was not flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    pub data: DataCut,
    pub names: NamesCut,
}

impl Cut {
    /// Everything that was not flushed is gone.
    pub const NOTHING_KEPT: Cut = Cut { data: DataCut::Dropped, names: NamesCut::Old };
    /// Each file and each name as the seed has it.
    pub const ANY: Cut = Cut { data: DataCut::Any, names: NamesCut::Each };

    /// Every kind of cut, the simple ones first.
    pub fn all() -> impl Iterator<Item = Cut> {
        use DataCut::{Any, Dropped, Kept, Pages, Prefix, Zeroed};
        let data = [Dropped, Kept, Zeroed, Prefix, Pages, Any];
        data.into_iter()
            .flat_map(|data| [NamesCut::Old, NamesCut::New, NamesCut::Each].map(|names| Cut { data, names }))
    }
}

type Hook = Arc<dyn Fn(&SimFileSystem, &Operation) + Send + Sync>;

/// A simulated file system, as one process sees it: it works until that process is killed or the power is cut; the file
/// system that [`SimFileSystem::kill`] or [`SimFileSystem::power_cut`] answers is the next process's, on the same disk.
/// Clones share it. Shared between threads.
///
/// Paths start at the root, with or without `/`. There are no links and no permissions.
#[derive(Clone)]
pub struct SimFileSystem {
    shared: Arc<Shared>,
    /// Which start of the process this is.
    start: u64,
}

struct Shared {
    clock: Arc<dyn Clock>,
    disk: Mutex<Disk>,
    hook: Mutex<Option<Hook>>,
}

impl fmt::Debug for SimFileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimFileSystem").field("start", &self.start).finish_non_exhaustive()
    }
}

fn stopped() -> io::Error {
    io::Error::other("the simulated process has ended")
}

impl SimFileSystem {
    /// An empty disk. `clock` is asked when a file is changed.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::of(clock, Disk::default(), 0)
    }

    fn of(clock: Arc<dyn Clock>, disk: Disk, start: u64) -> Self {
        SimFileSystem { shared: Arc::new(Shared { clock, disk: Mutex::new(disk), hook: Mutex::default() }), start }
    }

    fn disk<T>(&self, f: impl FnOnce(&mut Disk) -> T) -> T {
        f(&mut self.shared.disk.lock())
    }

    /// Ends the process: all that it holds fails from now on, and its locks are gone. What it wrote is there.
    pub fn kill(&self) -> SimFileSystem {
        self.disk(Disk::end_process);
        self.next_start()
    }

    /// Cuts the power, which ends the process as well: of what was not flushed the disk has what `cut` and `prng` say.
    pub fn power_cut(&self, cut: Cut, prng: &mut Prng) -> SimFileSystem {
        self.disk(|disk| disk.power_cut(cut, prng));
        self.next_start()
    }

    fn next_start(&self) -> SimFileSystem {
        SimFileSystem { shared: self.shared.clone(), start: self.disk(|disk| disk.start) }
    }

    /// A copy of the disk, as a process sees it that starts on it after this one was killed. Nothing that is done to one is
    /// seen in the other; operations go on with the same numbers; no fault is to come
    /// or was. Cheap, so a
    /// test can look at what would be after a cut at any moment, without an end to the run.
    pub fn fork(&self) -> SimFileSystem {
        let mut disk = self.disk(|disk| disk.clone());
        disk.end_process();
        disk.faults = Faults::default();
        let start = disk.start;
        Self::of(self.shared.clock.clone(), disk, start)
    }

    /// Has something go wrong.
    pub fn inject(&self, fault: Fault) {
        self.disk(|disk| disk.faults.add(fault));
    }

    /// Nothing that was injected goes wrong any more.
    pub fn clear_faults(&self) {
        self.disk(|disk| disk.faults.clear());
    }

    /// Ends the process once the operation with this number is done, whatever comes of it: all that follow fail.
    pub fn stop_after(&self, number: u64) {
        self.disk(|disk| disk.stop_after = Some(number));
    }

    /// Whether this process has ended.
    pub fn has_stopped(&self) -> bool {
        self.disk(|disk| disk.start != self.start || disk.stop_after.is_some_and(|last| disk.history.next > last))
    }

    /// Limits the disk to this many bytes, counted in whole pages of 4 KiB; `None` takes the limit away. Where no page is
    /// left nothing new can be made either.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.disk(|disk| disk.capacity = bytes);
    }

    /// Bytes that files take up, in whole pages.
    pub fn used_bytes(&self) -> u64 {
        self.disk(|disk| disk.used())
    }

    /// Has `hook` called after each operation, with none of the file system's locks held.
    pub fn on_operation(&self, hook: impl Fn(&SimFileSystem, &Operation) + Send + Sync + 'static) {
        *self.shared.hook.lock() = Some(Arc::new(hook));
    }

    /// Ends that.
    pub fn clear_hook(&self) {
        *self.shared.hook.lock() = None;
    }

    /// How many operations there were, which is the number of the next one.
    pub fn operations(&self) -> u64 {
        self.disk(|disk| disk.history.next)
    }

    /// How many operations of each kind there were.
    pub fn counts(&self) -> BTreeMap<OpKind, u64> {
        self.disk(|disk| disk.history.counts.clone())
    }

    /// How many operations of `kind` there were.
    pub fn count(&self, kind: OpKind) -> u64 {
        self.disk(|disk| disk.history.counts.get(&kind).copied().unwrap_or(0))
    }

    /// How many operations of each kind a fault hit, a full disk among them.
    pub fn injected(&self) -> BTreeMap<OpKind, u64> {
        self.disk(|disk| disk.faults.injected.clone())
    }

    /// How many operations were hit, by what was done to them; "full disk" are those that found no room.
    pub fn injected_effects(&self) -> BTreeMap<&'static str, u64> {
        self.disk(|disk| disk.faults.effects.clone())
    }

    /// The sum of [`SimFileSystem::injected`].
    pub fn total_injected(&self) -> u64 {
        self.injected().values().sum()
    }

    /// The operations in order, the last 100,000 of them. To be printed when a run fails.
    pub fn log(&self) -> Vec<Operation> {
        self.disk(|disk| disk.history.log())
    }

    /// Every file and directory that programs see, and the files' bytes. No operation is counted.
    pub fn image(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        self.disk(|disk| disk.image())
    }

    /// Flips a bit in a file, for good: on the medium and in the page cache. `false` where there is no such bit.
    pub fn flip_bit(&self, path: &Path, position: u64, bit: u8) -> bool {
        self.disk(|disk| disk.flip_bit(path, position, bit))
    }

    /// Runs one operation: numbers it, has a fault hit it, notes it, and calls the hook.
    fn step<T>(
        &self,
        kind: OpKind,
        noted: Noted<'_>,
        f: impl FnOnce(&mut Disk, u64, Option<Effect>) -> io::Result<T>,
    ) -> io::Result<T> {
        let (result, operation) = self.disk(|disk| {
            let number = disk.history.next;
            if disk.start != self.start || disk.stop_after.is_some_and(|last| number > last) {
                return Err(stopped());
            }
            disk.history.next += 1;
            let path = disk::normal(noted.path);
            let to = noted.to.map(disk::normal);
            let paths = [&*path, to.as_deref().unwrap_or(&path)];
            let effect = disk.faults.hit(number, kind, &paths);
            let before = disk.faults.injected.get(&kind).copied();
            let result = match effect {
                Some(Effect::Error(error)) => Err(io::Error::new(error, format!("a fault was injected at {kind:?}"))),
                effect => f(disk, number, effect),
            };
            let injected = effect.is_some() || disk.faults.injected.get(&kind).copied() != before;
            let error = result.as_ref().err().map(io::Error::to_string);
            let Noted { position, len, .. } = noted;
            let operation = Operation { number, kind, path, to, position, len, injected, error };
            disk.history.push(operation.clone());
            Ok((result, operation))
        })?;
        let hook = self.shared.hook.lock().clone();
        if let Some(hook) = hook {
            hook(self, &operation);
        }
        result
    }
}

/// What is noted of an operation.
#[derive(Clone, Copy)]
struct Noted<'a> {
    path: &'a Path,
    to: Option<&'a Path>,
    position: Option<u64>,
    len: Option<usize>,
}

impl<'a> Noted<'a> {
    fn path(path: &'a Path) -> Self {
        Noted { path, to: None, position: None, len: None }
    }
}
