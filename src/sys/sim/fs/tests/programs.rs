//! The simulation finds what it is there to find: small programs in which one step is left out lose what they promised,
//! and the whole ones never do.

use super::*;
use crate::sys::sim::Prng;

/// A program that appends entries to a log, one promise each, then replaces a file, as one more promise. What it leaves
/// out is a mistake in it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    None,
    NoFsync,
    PromiseBeforeFsync,
    NoFsyncOfTheDirectory,
    NoFsyncBeforeRename,
    NoFsyncOfTheDirectoryAfterRename,
}

const ENTRIES: u8 = 6;

/// Answers how many promises it made before the disk stopped: entry 1, 2, .., then the replaced file.
fn run(fs: &SimFileSystem, mistake: Mistake, promised: &mut u8) -> io::Result<()> {
    let root = Path::new("");
    let log = fs.open(Path::new("log"), OpenMode::CreateNew)?;
    if mistake != Mistake::NoFsyncOfTheDirectory {
        fs.sync_dir(root)?;
    }
    for entry in 1..=ENTRIES {
        write(&*log, &[entry; 700], (u64::from(entry) - 1) * 700)?;
        if mistake == Mistake::PromiseBeforeFsync {
            *promised = entry;
        }
        if mistake != Mistake::NoFsync {
            log.sync()?;
        }
        *promised = entry;
    }
    let new = fs.open(Path::new("state.new"), OpenMode::CreateNew)?;
    write(&*new, &[9; 5000], 0)?;
    if mistake != Mistake::NoFsyncBeforeRename {
        new.sync()?;
    }
    fs.rename(Path::new("state.new"), Path::new("state"))?;
    if mistake != Mistake::NoFsyncOfTheDirectoryAfterRename {
        fs.sync_dir(root)?;
    }
    *promised = ENTRIES + 1;
    Ok(())
}

fn is_kept(fs: &SimFileSystem, promised: u8) -> bool {
    let log = content(fs, "log").unwrap_or_default();
    let entries = (1..=promised.min(ENTRIES)).all(|entry| {
        let at = (usize::from(entry) - 1) * 700;
        log.get(at..at + 700).is_some_and(|bytes| bytes.iter().all(|b| *b == entry))
    });
    entries && (promised <= ENTRIES || content(fs, "state").is_some_and(|state| state == [9; 5000]))
}

/// Cuts the power after each operation. Answers how many cuts of how many broke a promise.
fn sweep(mistake: Mistake) -> (usize, usize) {
    let whole = sim();
    run(&whole, mistake, &mut 0).unwrap();
    let (mut broken, mut cuts) = (0, 0);
    for number in 0..whole.operations() {
        for seed in 0..20 {
            let fs = sim();
            fs.stop_after(number);
            let mut promised = 0;
            let _ = run(&fs, mistake, &mut promised);
            let after = fs.power_cut(Cut::ANY, &mut Prng::new(seed));
            cuts += 1;
            broken += usize::from(!is_kept(&after, promised));
        }
    }
    (broken, cuts)
}

#[test]
fn a_whole_program_keeps_every_promise() {
    let (broken, cuts) = sweep(Mistake::None);
    assert_eq!(broken, 0);
    assert!(cuts > 300, "{cuts}");
}

#[test]
fn a_program_with_a_step_left_out_is_found_out() {
    for mistake in [
        Mistake::NoFsync,
        Mistake::PromiseBeforeFsync,
        Mistake::NoFsyncOfTheDirectory,
        Mistake::NoFsyncBeforeRename,
        Mistake::NoFsyncOfTheDirectoryAfterRename,
    ] {
        let (broken, cuts) = sweep(mistake);
        assert!(broken > 0, "{mistake:?}: {cuts} cuts found nothing");
    }
}
