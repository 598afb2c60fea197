//! A small generator of random numbers for simulations and tests: fast, seeded, the same on every machine.

/// xoshiro256**. Not for secrets. Not shared between threads; each user makes one of its own, with [`Prng::stream`] where
/// they share a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prng([u64; 4]);

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Prng {
    pub fn new(mut seed: u64) -> Self {
        Prng(std::array::from_fn(|_| split_mix(&mut seed)))
    }

    /// The stream called `name` of `seed`. A draw in one stream changes nothing in another.
    pub fn stream(seed: u64, name: &str) -> Self {
        // FNV-1a.
        let hash =
            name.bytes().fold(0xcbf2_9ce4_8422_2325, |h: u64, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
        Prng::new(seed.rotate_left(32) ^ hash)
    }

    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no number below 0");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `low` to `high`, both of them included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        assert!(low <= high, "{low} is above {high}");
        match (high - low).checked_add(1) {
            Some(span) => low + self.below(span),
            None => self.next_u64(),
        }
    }

    /// An index into something of `len` elements, at least 1.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// True `wanted` times out of `of`.
    pub fn chance(&mut self, wanted: u64, of: u64) -> bool {
        self.below(of) < wanted
    }

    /// One of `items`, which are not none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.index(i + 1));
        }
    }

    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_is_one_sequence_and_streams_are_apart() {
        let draw = |mut prng: Prng| (0..20).map(|_| prng.next_u64()).collect::<Vec<_>>();
        assert_eq!(draw(Prng::new(7)), draw(Prng::new(7)));
        assert_ne!(draw(Prng::new(7)), draw(Prng::new(8)));
        assert_ne!(draw(Prng::stream(7, "a")), draw(Prng::stream(7, "b")));
        assert_ne!(draw(Prng::stream(7, "a")), draw(Prng::stream(8, "a")));
    }

    #[test]
    fn draws_are_in_range_and_reach_all_of_it() {
        let mut prng = Prng::new(1);
        let mut seen = [0; 10];
        for _ in 0..10_000 {
            seen[prng.index(10)] += 1;
            assert!((3..=5).contains(&prng.between(3, 5)));
        }
        assert!(seen.iter().all(|n| (800..1200).contains(n)), "{seen:?}");
        assert_eq!(prng.between(u64::MAX, u64::MAX), u64::MAX);
        prng.between(0, u64::MAX);
        let mut items: Vec<u32> = (0..50).collect();
        prng.shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
        let mut bytes = [0; 13];
        prng.fill(&mut bytes);
        assert!(bytes.iter().filter(|b| **b == 0).count() < 5);
    }
}
