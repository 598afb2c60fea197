//! SipHash with 128 bits: what the cleaner takes for a key. It is keyed, so that nobody can make keys that collide.

/// SipHash with `C` rounds for each word and `D` at the end (the reference is 2 and 4).
pub(super) fn siphash128<const C: usize, const D: usize>(key: [u64; 2], bytes: &[u8]) -> u128 {
    let mut v = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d ^ 0xee,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        take::<C>(&mut v, u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    last[7] = bytes.len() as u8;
    take::<C>(&mut v, u64::from_le_bytes(last));
    v[2] ^= 0xee;
    rounds::<D>(&mut v);
    let low = v[0] ^ v[1] ^ v[2] ^ v[3];
    v[1] ^= 0xdd;
    rounds::<D>(&mut v);
    let high = v[0] ^ v[1] ^ v[2] ^ v[3];
    u128::from(high) << 64 | u128::from(low)
}

fn take<const C: usize>(v: &mut [u64; 4], word: u64) {
    v[3] ^= word;
    rounds::<C>(v);
    v[0] ^= word;
}

fn rounds<const N: usize>(v: &mut [u64; 4]) {
    for _ in 0..N {
        v[0] = v[0].wrapping_add(v[1]);
        v[1] = v[1].rotate_left(13) ^ v[0];
        v[0] = v[0].rotate_left(32);
        v[2] = v[2].wrapping_add(v[3]);
        v[3] = v[3].rotate_left(16) ^ v[2];
        v[0] = v[0].wrapping_add(v[3]);
        v[3] = v[3].rotate_left(21) ^ v[0];
        v[2] = v[2].wrapping_add(v[1]);
        v[1] = v[1].rotate_left(17) ^ v[2];
        v[2] = v[2].rotate_left(32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the vectors of the reference implementation: the key 00 01 .. 0f, and messages 00 01 ..
    #[test]
    fn it_is_the_reference() {
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let hash = |len: u8| siphash128::<2, 4>(key, &(0..len).collect::<Vec<u8>>()).to_le_bytes();
        let first = [0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02, 0x93];
        assert_eq!(hash(0), first);
        let second = [0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44, 0x34, 0x76, 0x59, 0x11, 0x9b, 0x22, 0xfc, 0x45];
        assert_eq!(hash(1), second);
        let all: std::collections::HashSet<_> = (0..100).map(hash).collect();
        assert_eq!(all.len(), 100);
    }
}
