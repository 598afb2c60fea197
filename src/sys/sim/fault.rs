//! What is to go wrong, and when.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use super::fs::OpKind;

/// What a fault does to the operation that it hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It fails, and nothing was done.
    Error(io::ErrorKind),
    /// A write puts down this many of its bytes, all but one at most, and fails.
    ShortWrite { bytes: u64, error: io::ErrorKind },
    /// A flush of a file fails.
    Sync(SyncFailure),
    /// A read answers with this bit flipped, counted from its first byte, modulo what it read. `for_good`: in the file too,
    /// flushed or not.
    FlipBit { bit: u64, for_good: bool },
    /// It answers that it was done, and it was not: a disk that lies, or a step that the program forgot.
    Ignored,
}

/// What became of the pages that a failed flush was to write. In each case none of them is written by a later one, unless
/// it changes again, so a later flush that succeeds says nothing of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncFailure {
    /// The kernel threw them away: reads see what the medium has.
    Dropped,
    /// The kernel has them still, and takes them for clean: reads see them, the medium does not have them.
    MarkedClean,
    /// They did reach the medium; only the answer was an error.
    Written,
}

/// Something that is to go wrong.
#[derive(Clone, Debug)]
pub struct Fault {
    when: When,
    effect: Effect,
    skip: u64,
    /// `None`: until it is taken away.
    times: Option<u64>,
}

#[derive(Clone, Debug)]
enum When {
    Number(u64),
    Matching { kinds: Vec<OpKind>, path: Option<String> },
}

impl Fault {
    /// At the operation with this number.
    pub fn at(number: u64, effect: Effect) -> Self {
        Fault { when: When::Number(number), effect, skip: 0, times: Some(1) }
    }

    /// At the next operation of one of these kinds, or of any where there are none.
    pub fn on(kinds: &[OpKind], effect: Effect) -> Self {
        Fault { when: When::Matching { kinds: kinds.to_vec(), path: None }, effect, skip: 0, times: Some(1) }
    }

    /// Only where the path, seen from the root and without a leading `/`, is like `pattern`, in which `*` stands for any
    /// characters, `/` too. Of a rename the old and the new path are looked at.
    pub fn path(mut self, pattern: impl Into<String>) -> Self {
        if let When::Matching { path, .. } = &mut self.when {
            *path = Some(pattern.into());
        }
        self
    }

    /// Lets this many that match go by.
    pub fn skip(mut self, skip: u64) -> Self {
        self.skip = skip;
        self
    }

    /// Hits this many; 1 unless it is said.
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// Hits every one.
    pub fn forever(mut self) -> Self {
        self.times = None;
        self
    }

    fn matches(&self, number: u64, kind: OpKind, paths: &[&Path]) -> bool {
        match &self.when {
            When::Number(at) => *at == number,
            When::Matching { kinds, path } => {
                (kinds.is_empty() || kinds.contains(&kind))
                    && path.as_ref().is_none_or(|pattern| {
                        paths.iter().any(|path| is_like(pattern.as_bytes(), path.as_os_str().as_encoded_bytes()))
                    })
            }
        }
    }
}

/// What stands in [`Faults::effects`] for an operation that found no room.
pub(super) const FULL_DISK: &str = "full disk";

impl Effect {
    /// What it is called where it is counted.
    fn name(self) -> &'static str {
        match self {
            Effect::Error(_) => "error",
            Effect::ShortWrite { .. } => "short write",
            Effect::Sync(SyncFailure::Dropped) => "failed flush, pages dropped",
            Effect::Sync(SyncFailure::MarkedClean) => "failed flush, pages marked clean",
            Effect::Sync(SyncFailure::Written) => "failed flush, pages written",
            Effect::FlipBit { .. } => "flipped bit",
            Effect::Ignored => "ignored",
        }
    }

    fn applies_to(self, kind: OpKind) -> bool {
        match self {
            Effect::Error(_) => true,
            Effect::ShortWrite { .. } => kind == OpKind::Write,
            Effect::Sync(_) => kind == OpKind::Sync,
            Effect::FlipBit { .. } => kind == OpKind::Read,
            Effect::Ignored => kind.changes() && !matches!(kind, OpKind::Create | OpKind::Lock),
        }
    }
}

fn is_like(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|skipped| is_like(rest, &text[skipped..])),
        Some((byte, rest)) => text.first() == Some(byte) && is_like(rest, &text[1..]),
    }
}

/// The faults that are to come, and those that were.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    planned: Vec<Fault>,
    pub injected: BTreeMap<OpKind, u64>,
    /// The same, by what was done to them.
    pub effects: BTreeMap<&'static str, u64>,
}

impl Faults {
    pub fn add(&mut self, fault: Fault) {
        self.planned.push(fault);
    }

    pub fn clear(&mut self) {
        self.planned.clear();
    }

    /// What is to happen to this operation.
    pub fn hit(&mut self, number: u64, kind: OpKind, paths: &[&Path]) -> Option<Effect> {
        let mut effect = None;
        for fault in &mut self.planned {
            if effect.is_some() || !fault.effect.applies_to(kind) || !fault.matches(number, kind, paths) {
                continue;
            }
            if fault.skip > 0 {
                fault.skip -= 1;
                continue;
            }
            if let Some(times) = &mut fault.times {
                *times = times.saturating_sub(1);
            }
            effect = Some(fault.effect);
        }
        self.planned.retain(|fault| fault.times != Some(0));
        if let Some(effect) = effect {
            self.count(kind, effect.name());
        }
        effect
    }

    pub fn count(&mut self, kind: OpKind, effect: &'static str) {
        *self.injected.entry(kind).or_default() += 1;
        *self.effects.entry(effect).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, like) in [
            ("*", "", true),
            ("*.log", "data/a-0/00.log", true),
            ("*.log", "data/a-0/00.log.deleted", false),
            ("data/*/00*", "data/a-0/00.log", true),
            ("data", "data/a", false),
            ("", "a", false),
        ] {
            assert_eq!(is_like(pattern.as_bytes(), text.as_bytes()), like, "{pattern} {text}");
        }
    }

    #[test]
    fn a_fault_hits_what_it_is_told_to_and_is_counted() {
        let mut faults = Faults::default();
        let hit = |faults: &mut Faults, n, kind, path: &str| faults.hit(n, kind, &[Path::new(path)]);
        let error = Effect::Error(io::ErrorKind::Other);
        faults.add(Fault::on(&[OpKind::Sync], error).path("*.log").skip(1).times(2));
        assert_eq!(hit(&mut faults, 0, OpKind::Sync, "a.log"), None);
        assert_eq!(hit(&mut faults, 1, OpKind::Write, "a.log"), None);
        assert_eq!(hit(&mut faults, 2, OpKind::Sync, "a.index"), None);
        assert_eq!(hit(&mut faults, 3, OpKind::Sync, "a.log"), Some(error));
        assert_eq!(hit(&mut faults, 4, OpKind::Sync, "a.log"), Some(error));
        assert_eq!(hit(&mut faults, 5, OpKind::Sync, "a.log"), None);
        faults.add(Fault::at(7, Effect::ShortWrite { bytes: 1, error: io::ErrorKind::Other }));
        assert_eq!(hit(&mut faults, 7, OpKind::Sync, "a.log"), None, "no short write can befall a flush");
        assert_eq!(
            hit(&mut faults, 7, OpKind::Write, "b"),
            Some(Effect::ShortWrite { bytes: 1, error: io::ErrorKind::Other })
        );
        faults.add(Fault::on(&[], error).forever());
        assert_eq!(hit(&mut faults, 8, OpKind::List, ""), Some(error));
        assert_eq!(hit(&mut faults, 9, OpKind::List, ""), Some(error));
        faults.clear();
        assert_eq!(hit(&mut faults, 10, OpKind::List, ""), None);
        assert_eq!(faults.injected, BTreeMap::from([(OpKind::Sync, 2), (OpKind::Write, 1), (OpKind::List, 2)]));
    }
}
