//! Which topics a consumer subscribes to, out of the metadata it sends when it joins a classic group.
//!
//! | bytes | what |
//! |---|---|
//! | 2 | version, not negative; later versions only append |
//! | 4 | how many topics |
//! | 2, n | each topic: length, name in UTF-8 |
//! | | whatever follows is not of interest |

use std::collections::BTreeSet;

/// The topics, or `None` if the metadata is not a consumer's subscription.
pub(super) fn topics(metadata: &[u8]) -> Option<BTreeSet<String>> {
    let (version, rest) = metadata.split_first_chunk::<2>()?;
    if i16::from_be_bytes(*version) < 0 {
        return None;
    }
    let (count, mut rest) = rest.split_first_chunk::<4>()?;
    let count = usize::try_from(i32::from_be_bytes(*count)).ok()?;
    // A topic takes two bytes at least, so a count that cannot be true ends the loop early and reserves nothing.
    let mut topics = BTreeSet::new();
    for _ in 0..count {
        let (length, after) = rest.split_first_chunk::<2>()?;
        let length = usize::try_from(i16::from_be_bytes(*length)).ok()?;
        let name = after.get(..length)?;
        topics.insert(std::str::from_utf8(name).ok()?.to_owned());
        rest = &after[length..];
    }
    Some(topics)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A subscription as a consumer sends it, user data and all.
    pub fn subscription(names: &[&str]) -> Vec<u8> {
        let mut bytes = vec![0, 3];
        bytes.extend_from_slice(&(names.len() as i32).to_be_bytes());
        for name in names {
            bytes.extend_from_slice(&(name.len() as i16).to_be_bytes());
            bytes.extend_from_slice(name.as_bytes());
        }
        bytes.extend_from_slice(&(-1i32).to_be_bytes());
        bytes
    }

    #[test]
    fn topics_are_read_and_anything_else_is_refused() {
        let bytes = subscription(&["b", "a", "b"]);
        assert_eq!(topics(&bytes), Some(BTreeSet::from(["a".to_owned(), "b".to_owned()])));
        assert_eq!(topics(&subscription(&[])), Some(BTreeSet::new()));
        for cut in 0..bytes.len() - 4 {
            assert_eq!(topics(&bytes[..cut]), None, "cut at {cut}");
        }
        assert_eq!(topics(&[0, 0, 0x7f, 0xff, 0xff, 0xff]), None);
        assert_eq!(topics(&[0, 0, 0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(topics(&[0xff, 0xff, 0, 0, 0, 0]), None);
        assert_eq!(topics(&[0, 0, 0, 0, 0, 1, 0, 1, 0xff]), None);
    }
}
