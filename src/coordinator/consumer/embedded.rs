//! What consumers of the classic protocol say to each other inside JoinGroup and SyncGroup. In a group that is moving from
//! one protocol to the other the coordinator has to read and write it itself.
//!
//! A subscription:
//!
//! | bytes | what |
//! |---|---|
//! | 2 | version, not negative; later versions only append |
//! | 4, each string | topics |
//! | 4, n | user data, or -1 |
//! | 4, each string and 4, each 4 | from version 1: topics with the partitions that the member has |
//! | 4 | from version 2: the generation in which it had them |
//! | 2, n | from version 3: the rack, or -1 |
//!
//! An assignment:
//!
//! | bytes | what |
//! |---|---|
//! | 2 | version |
//! | 4, each string and 4, each 4 | topics with partitions |
//! | 4, n | user data, or -1 |
//!
//! A string is two bytes of length and UTF-8.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::{Owned, Partitions};
use crate::coordinator::topics::Topics;

/// The newest version of either; what is said is the same in all of them.
const NEWEST: i16 = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subscription {
    pub topics: BTreeSet<String>,
    pub owned: Vec<(String, Vec<i32>)>,
    pub rack: Option<String>,
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn i16(&mut self) -> Option<i16> {
        Some(i16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn i32(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn version(&mut self) -> Option<i16> {
        self.i16().filter(|version| *version >= 0)
    }

    fn text(&mut self, length: i16) -> Option<String> {
        let bytes = self.take(usize::try_from(length).ok()?)?;
        Some(std::str::from_utf8(bytes).ok()?.to_owned())
    }

    fn string(&mut self) -> Option<String> {
        let length = self.i16()?;
        self.text(length)
    }

    /// As many things as a count says. None takes less than two bytes, so that a count which cannot be true ends early,
    /// and nothing is reserved for it.
    fn many<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.i32()?;
        let mut all = Vec::new();
        for _ in 0..usize::try_from(count).ok()? {
            all.push(read(self)?);
        }
        Some(all)
    }

    fn partitions(&mut self) -> Option<Vec<(String, Vec<i32>)>> {
        self.many(|cursor| Some((cursor.string()?, cursor.many(Cursor::i32)?)))
    }

    fn user_data(&mut self) -> Option<&'a [u8]> {
        match self.i32()? {
            -1 => Some(&[]),
            length => self.take(usize::try_from(length).ok()?),
        }
    }
}

pub(super) fn subscription(bytes: &[u8]) -> Option<Subscription> {
    let mut cursor = Cursor(bytes);
    let version = cursor.version()?;
    let topics = cursor.many(Cursor::string)?.into_iter().collect();
    cursor.user_data()?;
    let owned = if version >= 1 { cursor.partitions()? } else { Vec::new() };
    if version >= 2 {
        cursor.i32()?;
    }
    let rack = match version {
        3.. => match cursor.i16()? {
            -1 => None,
            length => Some(cursor.text(length)?),
        },
        _ => None,
    };
    Some(Subscription { topics, owned, rack })
}

/// What an assignor of the clients has assigned.
pub(super) struct Assignment {
    pub partitions: Vec<(String, Vec<i32>)>,
    /// Whether there is something in it that only that assignor understands.
    pub has_user_data: bool,
}

/// Empty bytes are an empty assignment.
pub(super) fn assignment(bytes: &[u8]) -> Option<Assignment> {
    if bytes.is_empty() {
        return Some(Assignment { partitions: Vec::new(), has_user_data: false });
    }
    let mut cursor = Cursor(bytes);
    cursor.version()?;
    let partitions = cursor.partitions()?;
    Some(Assignment { partitions, has_user_data: !cursor.user_data()?.is_empty() })
}

/// An assignment in the version that the member's subscription came in. Topics that are gone are left out.
pub(super) fn write_assignment<'a>(
    subscription: &[u8],
    partitions: impl Iterator<Item = (crate::protocol::Uuid, Vec<i32>)>,
    topics: &'a Topics,
) -> Bytes {
    let version = Cursor(subscription).version().unwrap_or(0).min(NEWEST);
    let named: Vec<(&'a str, Vec<i32>)> =
        partitions.filter_map(|(id, partitions)| Some((&**topics.name(id)?, partitions))).collect();
    let mut bytes = version.to_be_bytes().to_vec();
    let count = |n: usize| i32::try_from(n).expect("there are fewer partitions than that").to_be_bytes();
    bytes.extend_from_slice(&count(named.len()));
    for (name, partitions) in named {
        let length = i16::try_from(name.len()).expect("names of topics are shorter than 250 bytes");
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(&count(partitions.len()));
        for partition in partitions {
            bytes.extend_from_slice(&partition.to_be_bytes());
        }
    }
    bytes.extend_from_slice(&(-1i32).to_be_bytes());
    bytes.into()
}

pub(super) fn by_id(named: &[(String, Vec<i32>)], topics: &Topics) -> Partitions {
    let mut all = Partitions::new();
    for (name, partitions) in named {
        if let Some((id, _)) = topics.by_name(name).filter(|_| !partitions.is_empty()) {
            all.entry(id).or_default().extend(partitions);
        }
    }
    all
}

pub(super) fn listed(owned: &Owned) -> impl Iterator<Item = (crate::protocol::Uuid, Vec<i32>)> {
    owned.iter().map(|(topic, partitions)| (*topic, partitions.keys().copied().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::TopicMetadata;
    use crate::protocol::Uuid;

    /// `t` and `u`, has `t` 1 and 2 from generation 5, in rack `r`.
    const SUBSCRIPTION: &[u8] = b"\0\x03\0\0\0\x02\0\x01t\0\x01u\xff\xff\xff\xff\0\0\0\x01\0\x01t\0\0\0\x02\0\0\0\x01\0\0\0\x02\0\0\0\x05\0\x01r";

    #[test]
    fn subscriptions_are_read_whole_or_refused() {
        let read = subscription(SUBSCRIPTION).unwrap();
        assert_eq!(read.topics, BTreeSet::from(["t".to_owned(), "u".to_owned()]));
        assert_eq!((read.owned, read.rack), (vec![("t".to_owned(), vec![1, 2])], Some("r".to_owned())));
        for cut in 0..SUBSCRIPTION.len() {
            assert_eq!(subscription(&SUBSCRIPTION[..cut]), None, "cut at {cut}");
        }
        assert_eq!(subscription(b"\0\0\0\0\0\0\0\0\0\0").unwrap().topics, BTreeSet::new());
        assert_eq!(subscription(b"\0\0\x7f\xff\xff\xff\0\0\0\0"), None);
    }

    #[test]
    fn assignments_come_back_with_the_topics_that_are_there() {
        let topics: Topics =
            [TopicMetadata { name: "t".into(), id: Uuid([1; 16]), partitions: 3 }].into_iter().collect();
        let partitions = [(Uuid([1; 16]), vec![0, 2]), (Uuid([9; 16]), vec![0])];
        let bytes = write_assignment(SUBSCRIPTION, partitions.into_iter(), &topics);
        assert_eq!(bytes[..2], [0, 3]);
        let read = assignment(&bytes).unwrap();
        assert_eq!((&read.partitions, read.has_user_data), (&vec![("t".to_owned(), vec![0, 2])], false));
        assert_eq!(by_id(&read.partitions, &topics), Partitions::from([(Uuid([1; 16]), BTreeSet::from([0, 2]))]));
        assert!(assignment(b"\0\0\0\0\0\0\0\0\0\x01x").unwrap().has_user_data);
        assert!(assignment(b"\0\0\0\0\0\x01").is_none());
    }
}
