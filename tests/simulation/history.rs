//! What happened, for the one who has to understand a failure, and its digest, for the proof that a seed is one history.

use std::collections::BTreeMap;

/// The events of a history, and counts of what happened in it.
#[derive(Debug)]
pub struct History {
    events: Vec<String>,
    digest: u64,
    pub counts: Counts,
}

/// How often something happened, by its name.
#[derive(Clone, Debug, Default)]
pub struct Counts(BTreeMap<String, u64>);

impl Counts {
    pub fn add(&mut self, what: &str, n: u64) {
        if n > 0 {
            match self.0.get_mut(what) {
                Some(count) => *count += n,
                None => drop(self.0.insert(what.to_owned(), n)),
            }
        }
    }

    pub fn merge(&mut self, other: &Counts) {
        other.0.iter().for_each(|(what, n)| self.add(what, *n));
    }

    /// The sum of all whose name starts like this.
    pub fn sum(&self, start: &str) -> u64 {
        self.0.iter().filter(|(what, _)| what.starts_with(start)).map(|(_, n)| n).sum()
    }

    pub fn print(&self) {
        self.0.iter().for_each(|(what, n)| println!("    {n:>9}  {what}"));
    }
}

impl Default for History {
    fn default() -> Self {
        History { events: Vec::new(), digest: 0xcbf2_9ce4_8422_2325, counts: Counts::default() }
    }
}

impl History {
    pub fn note(&mut self, event: String) {
        self.mix(event.as_bytes());
        self.events.push(event);
    }

    /// Takes something into the digest that is not worth an event.
    pub fn mix(&mut self, bytes: &[u8]) {
        self.digest =
            bytes.iter().fold(self.digest, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    }

    pub fn digest(&self) -> u64 {
        self.digest
    }

    pub fn events(&self) -> &[String] {
        &self.events
    }
}
