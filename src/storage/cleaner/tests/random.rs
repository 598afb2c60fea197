//! Random logs: appends of all kinds, transactions, rolls, restarts and passes, checked after each pass and each restart.

use std::sync::atomic::Ordering;

use super::model::*;
use crate::record::Codec;
use crate::storage::cleaner::CleanerSettings;
use crate::storage::log::tests::support::{NOW, World};

fn run(seed: u64, rounds: usize, codec: Codec) {
    let mut world = World::with(config);
    world.config.compaction_codec = Some(codec);
    let mut dice = Dice(seed);
    let mut model = Model::default();
    let mut log = world.open(true);
    let mut now_ms = NOW;
    let (mut passes, mut records_gone) = (0, 0);
    for round in 0..rounds {
        let context = format!("seed {seed}, round {round}");
        match dice.roll(100) {
            0..60 => model.append(&log, &mut dice, now_ms),
            60..80 => model.end_transaction(&log, &mut dice),
            80..84 => {
                now_ms += 1 + dice.roll(RETENTION_MS as u64) as i64;
                world.clock.0.store(now_ms, Ordering::SeqCst);
            }
            84..86 => {
                // Its time is over: an active segment is sealed though nothing comes.
                let mut short = world.config.clone();
                short.segment_ms = 0;
                log.update_config(short);
                now_ms += 1;
                world.clock.0.store(now_ms, Ordering::SeqCst);
                log.roll_if_due().unwrap();
                log.update_config(world.config.clone());
            }
            86..90 => {
                let clean = dice.one_in(2);
                if clean {
                    log.close().unwrap();
                }
                if dice.one_in(3) {
                    // The producers have to be found in the log itself.
                    world.files(".snapshot").iter().for_each(|path| std::fs::remove_file(path).unwrap());
                }
                log = world.open(clean);
                model.check(&log, cleaned_to(&log), now_ms, &context);
                model.check_committed(&log, &context);
                model.check_duplicates(&log, &context);
            }
            _ => {
                let settings = if dice.one_in(2) { few_keys() } else { CleanerSettings::default() };
                for stats in clean(&log, &settings) {
                    passes += 1;
                    records_gone += stats.records_read - stats.records_kept;
                }
                model.check(&log, cleaned_to(&log), now_ms, &context);
                model.check_committed(&log, &context);
                model.check_duplicates(&log, &context);
            }
        }
    }
    let context = format!("seed {seed}, at the end");
    assert!(passes > 5 && records_gone > 100, "{context}: {passes} passes, {records_gone} records gone");
    assert!(world.files(".cleaned").is_empty() && world.files(".swap").is_empty(), "{context}");
}

#[test]
fn a_reader_finds_what_the_model_holds_after_every_pass() {
    let seed = std::env::var("DOZE_SEED").ok().and_then(|seed| seed.parse().ok());
    match seed {
        Some(seed) => run(seed, 600, Codec::None),
        None => (0..6).for_each(|seed| run(seed, 400, Codec::None)),
    }
}

#[test]
fn the_same_in_every_codec() {
    for (seed, codec) in
        [Codec::Gzip { level: 1 }, Codec::Snappy, Codec::Lz4, Codec::Zstd { level: 1 }].into_iter().enumerate()
    {
        run(100 + seed as u64, 300, codec);
    }
}
