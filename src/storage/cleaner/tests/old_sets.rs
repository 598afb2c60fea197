//! Message sets of versions 0 and 1 among what is cleaned: they are read and never written.

use std::io::Write;

use flate2::{Crc, write::GzEncoder};

use super::model::{clean, config};
use crate::record::{BatchBuilder, BatchOptions, Batches, legacy};
use crate::storage::cleaner::CleanerSettings;
use crate::storage::log::Isolation;
use crate::storage::log::tests::support::{NOW, World, bytes_of};

const GZIP: u8 = 1;

/// A message of version 1, or a wrapper around some.
fn message(offset: i64, codec: u8, key: Option<&[u8]>, value: Option<&[u8]>) -> Vec<u8> {
    let mut body = vec![1, codec];
    body.extend((NOW - 1000).to_be_bytes());
    for field in [key, value] {
        body.extend(field.map_or(-1, |field| field.len() as i32).to_be_bytes());
        body.extend(field.unwrap_or_default());
    }
    let mut crc = Crc::new();
    crc.update(&body);
    let mut bytes = offset.to_be_bytes().to_vec();
    bytes.extend((body.len() as i32 + 4).to_be_bytes());
    bytes.extend(crc.sum().to_be_bytes());
    bytes.extend(body);
    bytes
}

fn wrapper(first: i64, messages: &[(&str, Option<&str>)]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for (at, (key, value)) in messages.iter().enumerate() {
        packed.write_all(&message(at as i64, 0, Some(key.as_bytes()), value.map(str::as_bytes))).unwrap();
    }
    message(first + messages.len() as i64 - 1, GZIP, None, Some(&packed.finish().unwrap()))
}

fn batch(offset: i64, key: &str, value: Option<&str>, horizon: Option<i64>) -> Vec<u8> {
    let options = BatchOptions { base_offset: offset, delete_horizon: horizon, ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options).unwrap();
    builder.append(NOW, Some(key.as_bytes()), value.map(str::as_bytes), &[]).unwrap();
    builder.finish(None).unwrap().to_vec()
}

/// A log with these bytes in a sealed segment, cleaned. Answers what is in that segment then.
fn cleaned(sealed: &[Vec<u8>], end: i64) -> Vec<u8> {
    let world = World::with(config);
    std::fs::write(world.dir().join(format!("{:020}.log", 0)), sealed.concat()).unwrap();
    std::fs::write(world.dir().join(format!("{end:020}.log")), batch(end, "last", Some("x"), None)).unwrap();
    let log = world.open(true);
    clean(&log, &CleanerSettings::default());
    assert_eq!(log.offsets().end, end + 1);
    log.close().unwrap();
    std::fs::read(world.dir().join(format!("{:020}.log", 0))).unwrap()
}

#[test]
fn an_entry_goes_once_all_of_its_records_were_superseded_and_stays_byte_for_byte_before() {
    let old = [
        message(0, 0, Some(b"a"), Some(b"1")),
        message(1, 0, Some(b"b"), Some(b"1")),
        wrapper(2, &[("a", Some("2")), ("c", Some("1"))]),
        wrapper(4, &[("d", Some("1")), ("b", Some("2"))]),
        message(6, 0, None, Some(b"no key")),
    ];
    let new = [batch(7, "a", Some("3"), None), batch(8, "d", Some("2"), None), batch(9, "b", Some("3"), None)];
    let left = cleaned(&[&old[..], &new[..]].concat(), 10);
    // Of the third entry "c" is the latest; the fourth has nothing that is.
    assert!(left == [&old[2][..], &old[4], &new[0], &new[1], &new[2]].concat());
    // Newer ones of version 1 supersede older ones of version 2.
    let left = cleaned(&[new[0].clone(), message(8, 0, Some(b"a"), Some(b"4")), batch(9, "z", Some("1"), None)], 10);
    let first = legacy::Entry::parse(&left).unwrap();
    assert_eq!((first.offset, first.value), (8, Some(&b"4"[..])));
}

#[test]
fn a_tombstone_stays_while_an_entry_keeps_what_it_deletes() {
    let wrapped = wrapper(0, &[("gone", Some("1")), ("here", Some("1"))]);
    let tombstone = |key: &str, offset| batch(offset, key, None, Some(NOW - 1));
    let sealed = [wrapped.clone(), tombstone("gone", 2), tombstone("other", 3), batch(4, "z", Some("1"), None)];
    let left = cleaned(&sealed, 5);
    assert!(left.starts_with(&wrapped), "\"here\" is the latest of its key");
    let after: Vec<(i64, i32)> = Batches::new(&left[wrapped.len()..])
        .map(|batch| (batch.header().base_offset, batch.header().records_count))
        .collect();
    assert_eq!(after, [(2, 1), (4, 1)], "without the tombstone the record that it deletes would be back");

    // Where it cannot be read nobody knows which keys it has.
    let mut unreadable = wrapped.clone();
    *unreadable.last_mut().unwrap() ^= 1;
    let left = cleaned(&[unreadable.clone(), sealed[1].clone(), sealed[2].clone(), sealed[3].clone()], 5);
    assert!(left == [&unreadable[..], &sealed[1], &sealed[2], &sealed[3]].concat());
}

#[test]
fn the_last_entry_of_all_stays() {
    let sealed =
        [message(0, 0, Some(b"a"), Some(b"1")), batch(1, "b", Some("1"), None), message(2, 0, Some(b"a"), None)];
    let left = cleaned(&sealed, 3);
    assert!(left == [&sealed[1][..], &sealed[2]].concat(), "and a tombstone that has no horizon");
    let world = World::with(config);
    std::fs::write(world.dir().join(format!("{:020}.log", 0)), sealed.concat()).unwrap();
    let log = world.open(true);
    let read = log.read(0, 1 << 20, true, Isolation::ReadUncommitted).unwrap();
    assert!(bytes_of(&read.range.unwrap()) == sealed.concat(), "they are served as they are");
}
