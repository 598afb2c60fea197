//! The names of files and directories: those that programs see, those on the medium, and what changed in between.
//!
//! Each change since its directory's last flush survives a cut or not, on its own, with what a journal guarantees: of the
//! changes to one file or directory an earlier one is not lost where a later one survives; a rename is in one step, so a
//! file that had a name keeps the old one or has the new one; and no change survives that needs a name to be free which is
//! not, because the change that freed it was lost.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};

use crate::sys::sim::prng::Prng;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Node {
    File(u64),
    Dir(u64),
}

/// The number of the root directory.
pub(super) const ROOT: u64 = 0;

/// By the number of the directory and the name in it.
type Map = BTreeMap<(u64, OsString), Node>;

#[derive(Clone, Debug)]
enum Change {
    Link {
        place: (u64, OsString),
    },
    Unlink {
        place: (u64, OsString),
    },
    /// `replaced`: what had the new name.
    Move {
        from: (u64, OsString),
        to: (u64, OsString),
        replaced: Option<Node>,
    },
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    live: Map,
    durable: Map,
    pending: Vec<(Node, Change)>,
}

/// What becomes of the changes to names that were not flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamesCut {
    /// None survives.
    Old,
    /// All survive.
    New,
    /// Each survives or not.
    Each,
}

impl Names {
    pub fn get(&self, dir: u64, name: &OsStr) -> Option<Node> {
        self.live.get(&(dir, name.to_owned())).copied()
    }

    pub fn list(&self, dir: u64) -> impl Iterator<Item = (&OsString, Node)> {
        self.live.range((dir, OsString::new())..).take_while(move |((of, _), _)| *of == dir).map(|((_, n), v)| (n, *v))
    }

    pub fn link(&mut self, dir: u64, name: &OsStr, node: Node) {
        let place = (dir, name.to_owned());
        self.live.insert(place.clone(), node);
        self.pending.push((node, Change::Link { place }));
    }

    pub fn unlink(&mut self, dir: u64, name: &OsStr) {
        let place = (dir, name.to_owned());
        if let Some(node) = self.live.remove(&place) {
            self.pending.push((node, Change::Unlink { place }));
        }
    }

    pub fn rename(&mut self, from: (u64, &OsStr), to: (u64, &OsStr)) {
        let (from, to) = ((from.0, from.1.to_owned()), (to.0, to.1.to_owned()));
        if let Some(node) = self.live.remove(&from) {
            let replaced = self.live.insert(to.clone(), node);
            self.pending.push((node, Change::Move { from, to, replaced }));
        }
    }

    /// A flush of directory `dir`.
    pub fn sync(&mut self, dir: u64) {
        // Changes elsewhere to what this flush settles are in its past, or it would not be where it is.
        let mut left = Vec::new();
        let mut last: BTreeMap<Node, usize> = BTreeMap::new();
        for (at, (node, change)) in self.pending.iter().enumerate() {
            if change.touches(dir) {
                last.insert(*node, at);
            }
        }
        for (at, (node, change)) in std::mem::take(&mut self.pending).into_iter().enumerate() {
            if last.get(&node).is_some_and(|last| at <= *last) {
                change.apply(&mut self.durable, node);
            } else {
                left.push((node, change));
            }
        }
        self.pending = left;
    }

    /// What a power cut leaves.
    pub fn after_cut(&self, how: NamesCut, prng: &mut Prng) -> Names {
        let mut names = self.durable.clone();
        let mut lost = BTreeSet::new();
        for (node, change) in &self.pending {
            let survives = match how {
                NamesCut::Old => false,
                NamesCut::New => true,
                NamesCut::Each => prng.chance(1, 2),
            };
            if !survives || lost.contains(node) || !change.is_possible(&names, *node) {
                lost.insert(*node);
            } else {
                change.apply(&mut names, *node);
            }
        }
        let reachable = reachable(&[&names]);
        names.retain(|(dir, _), _| reachable.contains(&Node::Dir(*dir)));
        Names { live: names.clone(), durable: names, pending: Vec::new() }
    }

    /// All that a name leads to now or may lead to after a cut.
    pub fn alive(&self) -> BTreeSet<Node> {
        let mut alive = reachable(&[&self.live, &self.durable]);
        alive.extend(self.pending.iter().map(|(node, _)| *node));
        alive
    }

    /// The files that a name leads to now.
    pub fn live_files(&self) -> impl Iterator<Item = u64> {
        self.live.values().filter_map(|node| match node {
            Node::File(id) => Some(*id),
            Node::Dir(_) => None,
        })
    }
}

fn reachable(maps: &[&Map]) -> BTreeSet<Node> {
    let mut found = BTreeSet::from([Node::Dir(ROOT)]);
    let mut to_visit = vec![ROOT];
    while let Some(dir) = to_visit.pop() {
        for map in maps {
            for (_, node) in map.range((dir, OsString::new())..).take_while(|((of, _), _)| *of == dir) {
                if found.insert(*node)
                    && let Node::Dir(id) = node
                {
                    to_visit.push(*id);
                }
            }
        }
    }
    found
}

impl Change {
    fn touches(&self, dir: u64) -> bool {
        match self {
            Change::Link { place } | Change::Unlink { place } => place.0 == dir,
            Change::Move { from, to, .. } => from.0 == dir || to.0 == dir,
        }
    }

    fn is_possible(&self, names: &Map, node: Node) -> bool {
        match self {
            Change::Link { place } => names.get(place).is_none_or(|there| *there == node),
            Change::Unlink { .. } => true,
            Change::Move { to, replaced, .. } => {
                names.get(to).is_none_or(|there| *there == node || Some(*there) == *replaced)
            }
        }
    }

    fn apply(&self, names: &mut Map, node: Node) {
        match self {
            Change::Link { place } => {
                names.insert(place.clone(), node);
            }
            Change::Unlink { place } => {
                if names.get(place) == Some(&node) {
                    names.remove(place);
                }
            }
            Change::Move { to, .. } => {
                names.retain(|_, there| *there != node);
                names.insert(to.clone(), node);
            }
        }
    }
}
