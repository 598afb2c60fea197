//! A recovery each of whose file operations fails, or is the last before the power is cut.

use std::io::ErrorKind;

use super::damages::assert_kept;
use super::*;
use crate::sys::sim::{Cut, Effect, Fault, Prng};

/// A directory that was stopped uncleanly, with a damaged batch in a sealed segment, one that can be put right, a torn tail, a wrong
/// index and two files under each other's names. Answers it with what is left when all of that is repaired.
fn damaged(lose_catalog: bool) -> (SimFileSystem, Batchwise) {
    let scene = Scene::small();
    let sim = scene.copy();
    let logs = scene.logs("demo-0");
    assert!(logs.len() > 4, "{}", logs.len());
    let mut left = scene.whole.clone();
    let bytes = bytes_of(&sim.fs, &logs[0]);
    let (start, _, lost) = batches_of(&bytes)[1];
    assert!(sim.fs.flip_bit(&logs[0], start as u64 + 80, 1));
    left.get_mut(&("demo".to_owned(), 0)).unwrap().retain(|(base, _)| *base != lost);
    let (start, ..) = batches_of(&bytes_of(&sim.fs, &logs[3]))[1];
    assert!(sim.fs.flip_bit(&logs[3], start as u64 + 10, 1));
    let (one, two) = (bytes_of(&sim.fs, &logs[1]), bytes_of(&sim.fs, &logs[2]));
    put(&sim.fs, &logs[1], &two);
    put(&sim.fs, &logs[2], &one);
    let last = logs.last().unwrap();
    let torn = [&bytes_of(&sim.fs, last)[..], &[7; 90]].concat();
    put(&sim.fs, last, &torn);
    if lose_catalog {
        put(&sim.fs, &Path::new(DATA).join("meta.db"), b"not a catalog");
    }
    (sim.fs, left)
}

fn around(fs: &SimFileSystem) -> SimEnv {
    SimEnv::around(7, fs.fork()).1
}

/// Another recovery ends well, no good batch is lost, and all that was removed is kept.
fn ends_well(
    env: &Env,
    fs: &SimFileSystem,
    before: &BTreeMap<PathBuf, Option<Vec<u8>>>,
    left: &Batchwise,
    context: &str,
) {
    recover(env, true).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert_nothing_left(env, context);
    assert_kept(fs, before, context);
    let served = served(env);
    for (partition, batches) in left {
        let bases = |batches: &[(i64, Vec<u8>)]| batches.iter().map(|(base, _)| *base).collect::<Vec<_>>();
        assert_eq!(bases(&served[partition]), bases(batches), "{context}: {partition:?}");
    }
    assert!(served == *left, "{context}: other batches than were to be expected");
}

/// `every`: which operations are tried; `DOZE_EVERY` has another say, 1 for all.
fn sweep(lose_catalog: bool, every: u64) {
    let every = std::env::var("DOZE_EVERY").map_or(every, |every| every.parse().unwrap());
    let (disk, left) = damaged(lose_catalog);
    let before = disk.image();
    let sim = around(&disk);
    let from = sim.fs.operations();
    ends_well(&sim.env(), &sim.fs, &before, &left, "undisturbed");
    let sim = around(&disk);
    recover(&sim.env(), true).unwrap();
    let to = sim.fs.operations();
    let cuts: Vec<Cut> = Cut::all().collect();
    let (mut failed, mut injected, mut unfinished) = (0, 0, 0);
    for number in (from..to).step_by(every as usize) {
        // That operation fails.
        let sim = around(&disk);
        sim.fs.inject(Fault::at(number, Effect::Error(ErrorKind::Other)));
        failed += u64::from(recover_quietly(&sim.env()).is_err());
        injected += sim.fs.total_injected();
        sim.fs.clear_faults();
        let fs = sim.fs.kill();
        let again = SimEnv::around(8, fs).1;
        ends_well(&again.env(), &again.fs, &before, &left, &format!("operation {number} fails"));
        // The power is cut after it.
        let sim = around(&disk);
        sim.fs.stop_after(number);
        unfinished += u64::from(recover_quietly(&sim.env()).is_err());
        let cut = cuts[(number as usize / every as usize) % cuts.len()];
        let context = format!("the power is cut after operation {number}, {cut:?}");
        let fs = sim.fs.power_cut(cut, &mut Prng::new(number));
        let again = SimEnv::around(9, fs).1;
        ends_well(&again.env(), &again.fs, &before, &left, &context);
    }
    println!("{} operations, {injected} faults, {failed} recoveries failed, {unfinished} were cut off", to - from);
    assert!(to - from > 200 && injected * every * 2 >= to - from, "{injected} of {} operations failed", to - from);
    assert!(failed * every > 100 && unfinished * every > 100, "{failed} {unfinished}");
}

/// Of one whose verification could not read everything there is no telling what is left: that is an error here.
fn recover_quietly(env: &Env) -> Result<(), String> {
    let dir = DataDir::open_to_write(env, Path::new(DATA), None).map_err(|error| error.to_string())?;
    let report = look(&dir);
    let plan = plan(&dir, &report, &mut |_| {}).map_err(|error| error.to_string())?;
    apply(&dir, &plan, &options("first", true), &mut |_| {}).map_err(|error| error.to_string())?;
    Ok(())
}

#[test]
fn whatever_cuts_a_recovery_off_another_one_goes_on_from_there() {
    sweep(false, 13);
}

#[test]
fn whatever_cuts_the_making_of_a_catalog_off_another_one_goes_on_from_there() {
    sweep(true, 29);
}
