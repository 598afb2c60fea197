//! A pass of the cleaner over a large log. Beside Apache Kafka's, on the same files: `benches/cleaner`.
//!
//! ```text
//! cleaner make DIR RECORDS KEYS    writes a partition with as many records, of keys in no order, to DIR (named <topic>-<n>)
//! cleaner clean DIR                cleans it, and prints what that took
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use doze::record::{BatchBuilder, BatchOptions, CheckedBatch};
use doze::storage::cleaner::{CleanerSettings, clean_now};
use doze::storage::log::{LogConfig, PartitionLog};
use doze::sys::{Env, peak_resident_bytes, resident_bytes};

const RECORDS_A_BATCH: u64 = 120;
const START_MS: i64 = 1_700_000_000_000;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["make", dir, records, keys] => make(dir.into(), number(records), number(keys)),
        ["clean", dir] => clean(dir.into()),
        _ => eprintln!("cleaner make DIR RECORDS KEYS | cleaner clean DIR"),
    }
}

fn number(text: &str) -> u64 {
    text.replace('_', "").parse().expect("a number")
}

fn config() -> LogConfig {
    LogConfig {
        segment_bytes: 128 << 20,
        compact: true,
        delete: false,
        min_cleanable_dirty_ratio: 0.0,
        ..LogConfig::default()
    }
}

fn open(dir: &Path) -> Arc<PartitionLog> {
    PartitionLog::open(Env::real(), dir.to_owned(), config(), true, 0).expect("the log opens")
}

/// Numbers that look like chance and are the same every time.
fn mix(mut n: u64) -> u64 {
    n = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

fn make(dir: PathBuf, records: u64, keys: u64) {
    std::fs::create_dir_all(&dir).expect("the directory can be made");
    let log = open(&dir);
    let mut at = 0;
    while at < records {
        let mut builder = BatchBuilder::new(BatchOptions::default()).expect("no codec");
        let timestamp = START_MS + at as i64 / 100;
        for i in at..(at + RECORDS_A_BATCH).min(records) {
            let key = format!("key-{:012}", mix(i) % keys);
            let value = format!("{:0100}", mix(i.wrapping_mul(31)));
            builder.append(timestamp, Some(key.as_bytes()), Some(value.as_bytes()), &[]).expect("it fits");
        }
        let batch = builder.finish(None).expect("it fits");
        log.append(CheckedBatch::of_own(batch).expect("it was just made"), 0).expect("it is appended");
        at += RECORDS_A_BATCH;
    }
    // So that the last of it is sealed as well.
    log.update_config(LogConfig { segment_ms: 0, ..config() });
    std::thread::sleep(std::time::Duration::from_millis(5));
    log.roll_if_due().expect("it is sealed");
    println!("{records} records of {keys} keys: {} bytes in {} segments", log.size_bytes(), log.segment_count());
    log.close().expect("it closes");
}

fn clean(dir: PathBuf) {
    let log = open(&dir);
    let before = log.size_bytes();
    let idle = resident_bytes().unwrap_or(0);
    let started = Instant::now();
    let passes = clean_now(&log, &CleanerSettings::default()).expect("the log can be cleaned");
    let took = started.elapsed().as_secs_f64();
    let read: u64 = passes.iter().map(|pass| pass.map_bytes + pass.read_bytes).sum();
    let written: u64 = passes.iter().map(|pass| pass.written_bytes).sum();
    let keys: u64 = passes.iter().map(|pass| pass.keys).sum();
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!(
        "{:.1} MiB became {:.1} MiB in {took:.2} s and {} passes ({keys} keys): {:.1} MiB/s of the log; \
         read {:.1} MiB, {:.1} MiB/s; wrote {:.1} MiB; memory {:.1} MiB idle, {:.1} MiB at most",
        mib(before),
        mib(log.size_bytes()),
        passes.len(),
        mib(before) / took,
        mib(read),
        mib(read) / took,
        mib(written),
        mib(idle),
        mib(peak_resident_bytes().unwrap_or(0)),
    );
    log.close().expect("it closes");
}
