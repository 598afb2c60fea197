//! The latest offset of each key, in memory that is fixed when the map is made.
//!
//! A key stands as 64 bits of its keyed hash, an offset as its distance from the first one: 12 bytes an entry, in an open
//! addressing table. Where a key belongs in the table is told by other bits of the hash, so that two keys can only be taken for
//! one if they also lie side by side: that would cost a record, and over a pass with four million keys the odds are one in ten
//! billion.

use super::siphash::siphash128;

/// Bytes of an entry.
pub(super) const ENTRY: usize = 12;
/// Fewer slots are not worth a table.
const FEWEST_SLOTS: usize = 1024;

/// An entry: two words of the hash, and the offset's distance from the first offset plus one; all zero where there is none.
type Slot = [u32; 3];

/// The hash of a key: what stands in an entry, and where it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct KeyHash {
    tag: [u32; 2],
    place: u32,
}

/// The map is full: the key was not put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

/// Keys and their latest offsets. Not for use by several threads at once.
pub(super) struct KeyMap {
    seed: [u64; 2],
    slots: Vec<Slot>,
    len: usize,
    most: usize,
    first_offset: i64,
}

impl std::fmt::Debug for KeyMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyMap").field("len", &self.len).field("most", &self.most).finish_non_exhaustive()
    }
}

impl KeyMap {
    /// For at most `offsets` offsets from `first_offset` on. The table takes at most `bytes`, and less if it needs less;
    /// it is full when `load` (0 to 1) of its slots are.
    pub fn new(seed: [u64; 2], bytes: usize, load: f64, first_offset: i64, offsets: i64) -> KeyMap {
        let load = load.clamp(0.01, 0.97);
        let needed = (offsets.max(0) as f64 / load.min(0.7)) as usize;
        let slots = (bytes / ENTRY).min(needed).clamp(FEWEST_SLOTS, u32::MAX as usize);
        let most = (slots as f64 * load) as usize;
        KeyMap { seed, slots: vec![[0; 3]; slots], len: 0, most, first_offset }
    }

    pub fn hash(&self, key: &[u8]) -> KeyHash {
        let hash = siphash128::<1, 3>(self.seed, key);
        KeyHash { tag: [hash as u32, (hash >> 32) as u32], place: (hash >> 64) as u32 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Puts the offset of a key, which is later than any that it has.
    pub fn put(&mut self, key: KeyHash, offset: i64) -> Result<(), Full> {
        let distance = offset.checked_sub(self.first_offset).and_then(|distance| u32::try_from(distance).ok());
        let Some(stored) = distance.and_then(|distance| distance.checked_add(1)) else { return Err(Full) };
        let slot = [key.tag[0], key.tag[1], stored];
        let at = self.find(key);
        if self.slots[at][2] == 0 {
            if self.len >= self.most {
                return Err(Full);
            }
            self.len += 1;
        }
        self.slots[at] = slot;
        Ok(())
    }

    /// The latest offset of a key.
    pub fn get(&self, key: KeyHash) -> Option<i64> {
        match self.slots[self.find(key)][2] {
            0 => None,
            stored => Some(self.first_offset + i64::from(stored) - 1),
        }
    }

    /// Where the key is, or would be put. There is always a slot that is empty.
    fn find(&self, key: KeyHash) -> usize {
        let mut at = ((u64::from(key.place) * self.slots.len() as u64) >> 32) as usize;
        loop {
            let there = &self.slots[at];
            if there[2] == 0 || there[..2] == key.tag {
                return at;
            }
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn it_holds_what_a_hash_map_holds_until_it_is_full() {
        for load in [0.5, 0.9, 0.97] {
            let mut map = KeyMap::new([3, 7], 4096 * ENTRY, load, 1000, i64::MAX);
            let most = (4096.0 * load) as usize;
            let mut model: HashMap<u32, i64> = HashMap::new();
            let mut refused = 0;
            for i in 0..20_000i64 {
                let key = (i as u32).wrapping_mul(2_654_435_761) % 5_000;
                let put = map.put(map.hash(&key.to_be_bytes()), 1000 + i);
                if model.len() < most || model.contains_key(&key) {
                    assert_eq!(put, Ok(()));
                    model.insert(key, 1000 + i);
                } else {
                    assert_eq!(put, Err(Full));
                    refused += 1;
                }
            }
            assert!(refused > 0 && map.len() == most);
            for key in 0..5_000u32 {
                assert_eq!(map.get(map.hash(&key.to_be_bytes())), model.get(&key).copied(), "{load} {key}");
            }
        }
    }

    #[test]
    fn its_size_is_what_it_needs_and_never_more_than_it_may() {
        assert_eq!(KeyMap::new([0, 0], 32 << 20, 0.9, 0, 10).slots.len(), FEWEST_SLOTS);
        assert_eq!(KeyMap::new([0, 0], 1 << 20, 0.9, 0, i64::MAX).slots.len(), (1 << 20) / ENTRY);
        let mut map = KeyMap::new([0, 0], 1 << 20, 0.9, 5, i64::MAX);
        let key = map.hash(b"key");
        assert_eq!(map.put(key, 5 + i64::from(u32::MAX)), Err(Full), "offsets that are too far apart");
        map.put(key, 5 + i64::from(u32::MAX) - 1).unwrap();
        assert_eq!(map.get(key), Some(5 + i64::from(u32::MAX) - 1));
    }
}
