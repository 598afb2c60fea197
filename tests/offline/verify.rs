//! `doze verify`: what it finds of each damage, that it finds nothing else, and that it never writes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use doze::storage::offline::DataDir;
use doze::storage::verify::{Consequence, Finding, Kind, Level, Options, Progress, Report, verify};
use doze::sys::Env;

use crate::corpus::{self, Case, Pristine};
use crate::make::{Data, WRITTEN_MS, batch};

pub fn look(dir: &Path, level: Level) -> Report {
    let opened = DataDir::open(&Env::real(), dir, None).unwrap();
    verify(&opened, &Options { level, jobs: 2, wanted: None }, &Progress::new())
}

/// Every file with its bytes and the time that it says it was changed.
type Tree = BTreeMap<PathBuf, (Option<Vec<u8>>, SystemTime)>;

fn tree(dir: &Path) -> Tree {
    let mut all = Tree::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::metadata(&path).unwrap();
        let content = (!metadata.is_dir()).then(|| fs::read(&path).unwrap());
        if metadata.is_dir() {
            all.extend(tree(&path));
        }
        all.insert(path, (content, metadata.modified().unwrap()));
    }
    all
}

fn is_expected(finding: &Finding, case: &Case) -> bool {
    let expected = &case.expected;
    let partition = match (&finding.topic, finding.partition) {
        (Some(topic), Some(partition)) => Some(format!("{topic}-{partition}")),
        _ => None,
    };
    finding.kind == expected.kind
        && finding.consequence == expected.consequence
        && partition.as_deref() == expected.partition
        && (expected.offsets.is_none() || finding.offsets == expected.offsets)
}

fn check(cases: Vec<Case>, pristine: &Pristine, levels: &[Level]) {
    let mut wrong = Vec::new();
    for case in &cases {
        let copy = pristine.copy();
        (case.damage)(&copy.path());
        let before = tree(&copy.path());
        for &level in levels {
            let report = look(&copy.path(), level);
            if !report.findings.iter().any(|finding| is_expected(finding, case)) {
                let found: Vec<String> = report.findings.iter().map(|f| format!("    {f:?}")).collect();
                wrong.push(format!("{} ({level}): {:?}\n{}", case.name, case.expected, found.join("\n")));
            }
        }
        look(&copy.path(), Level::Quick);
        assert!(tree(&copy.path()) == before, "{}: something was written", case.name);
    }
    println!("{} cases", cases.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn each_damage_is_found_with_its_offsets() {
    let pristine = Pristine::clean();
    check(corpus::cases(&pristine), &pristine, &[Level::Default, Level::Deep]);
}

#[test]
fn each_damage_after_a_kill_is_found() {
    let pristine = Pristine::killed();
    check(corpus::killed_cases(&pristine), &pristine, &[Level::Default, Level::Deep]);
}

#[test]
fn each_damage_inside_of_a_batch_is_found_by_deep() {
    let pristine = Pristine::clean();
    check(corpus::deep_cases(&pristine), &pristine, &[Level::Deep]);
}

#[test]
fn a_record_without_a_key_is_found_where_the_topic_is_compacted() {
    let data = Data::new();
    data.topic("keys", 1, &[("cleanup.policy", "compact")]);
    data.append("keys", 0, batch(&[(Some("k"), Some("v")), (None, Some("v"))]));
    let stopped = data.stop();
    assert_eq!(look(&stopped.dir(), Level::Default).findings, []);
    let report = look(&stopped.dir(), Level::Deep);
    assert_eq!((report.findings.len(), report.findings[0].kind), (1, Kind::MissingKey));
}

#[test]
fn a_batch_that_is_too_large_to_be_held_is_said_not_to_be_looked_into() {
    let data = Data::new();
    data.topic("large", 1, &[("segment.bytes", "100000000")]);
    let value = "x".repeat(20_000_000);
    data.append("large", 0, batch(&[(None, Some(&value))]));
    let stopped = data.stop();
    let report = look(&stopped.dir(), Level::Deep);
    assert_eq!((report.findings.len(), report.totals.records), (0, 1));
    assert!(report.unchecked.iter().any(|left| left.topic.as_deref() == Some("large")), "{:?}", report.unchecked);
    // Its checksum is looked at all the same.
    let log = &stopped.segments("large", 0)[0];
    corpus::flip(log, 15_000_000);
    let report = look(&stopped.dir(), Level::Default);
    assert_eq!((report.findings[0].kind, report.findings.len()), (Kind::BadChecksum, 1), "{:?}", report.findings);
}

/// A message of version 0 or 1.
fn message(magic: u8, offset: i64, attributes: u8, value: &[u8]) -> Vec<u8> {
    let mut body = vec![magic, attributes];
    if magic == 1 {
        body.extend((WRITTEN_MS + offset).to_be_bytes());
    }
    body.extend((-1i32).to_be_bytes());
    body.extend((value.len() as i32).to_be_bytes());
    body.extend(value);
    let mut crc = flate2::Crc::new();
    crc.update(&body);
    let mut all = offset.to_be_bytes().to_vec();
    all.extend((body.len() as i32 + 4).to_be_bytes());
    all.extend(crc.sum().to_be_bytes());
    all.extend(body);
    all
}

#[test]
fn message_sets_of_the_versions_before_2_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("old-0");
    fs::create_dir(&folder).unwrap();
    let inner: Vec<u8> = (0..3).flat_map(|i| message(1, i, 0, b"inside of a wrapper")).collect();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &inner).unwrap();
    let mut messages: Vec<Vec<u8>> = (0..20).map(|i| message(u8::from(i >= 10), i, 0, b"a message")).collect();
    messages.push(message(1, 22, 1, &gzip.finish().unwrap()));
    messages.push(message(1, 23, 0, b"the last"));
    let log = folder.join("00000000000000000000.log");
    fs::write(&log, messages.concat()).unwrap();
    let report = look(&folder, Level::Deep);
    assert_eq!(
        report.findings.iter().filter(|finding| finding.kind != Kind::StaleIndex).count(),
        0,
        "{:?}",
        report.findings
    );
    assert_eq!((report.partitions[0].end, report.totals.records), (24, 24));
    // A bit in the sixth, and all that follow are still good.
    let start: usize = messages[..5].iter().map(Vec::len).sum();
    for (byte, kind) in [(25, Kind::BadChecksum), (16, Kind::BadFrame), (9, Kind::BadFrame), (1, Kind::BadOffset)] {
        let mut damaged = messages.concat();
        damaged[start + byte] ^= 0x40;
        fs::write(&log, damaged).unwrap();
        let report = look(&folder, Level::Default);
        let lost: Vec<&Finding> = report.of(Consequence::Lost).collect();
        assert_eq!(
            (lost.len(), lost[0].kind, lost[0].offsets),
            (1, kind, Some((5, 6))),
            "{byte}: {:?}",
            report.findings
        );
        assert_eq!(report.partitions[0].end, 24);
    }
}

#[test]
fn nothing_is_found_where_nothing_is_damaged() {
    for pristine in [Pristine::clean(), Pristine::killed()] {
        for level in [Level::Quick, Level::Default, Level::Deep] {
            let report = look(&pristine.path(), level);
            assert_eq!(report.findings, [], "{level}");
            assert_eq!((report.totals.partitions, report.cancelled), (5, false));
        }
    }
}

#[test]
fn a_look_that_is_stopped_says_so() {
    let pristine = Pristine::clean();
    let opened = DataDir::open(&Env::real(), &pristine.path(), None).unwrap();
    let progress: Arc<Progress> = Progress::new();
    progress.cancel();
    let report = verify(&opened, &Options { level: Level::Default, jobs: 2, wanted: None }, &progress);
    assert!(report.cancelled && report.partitions.is_empty());
    assert!(report.unchecked.iter().any(|left| left.what.starts_with("5 of 5 partitions")), "{:?}", report.unchecked);
}
