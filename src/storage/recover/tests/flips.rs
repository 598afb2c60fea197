//! Flips by the thousand, from a seed.

use super::*;
use crate::sys::sim::Prng;

const SEED: u64 = 20_261_130;

/// Flips one bit anywhere in a partition and recovers: at most the batch that it hit is lost, nothing panics, and what the repair
/// leaves is served.
#[test]
fn a_flipped_bit_anywhere_costs_at_most_the_batch_that_it_is_in() {
    let mut prng = Prng::new(SEED);
    let scene = Scene::small();
    let image = scene.fs.image();
    let files: Vec<(&PathBuf, &Vec<u8>)> = image
        .iter()
        .filter_map(|(path, bytes)| Some((path, bytes.as_ref()?)))
        .filter(|(path, bytes)| path.starts_with("data/demo-0") && !bytes.is_empty())
        .collect();
    let whole = &scene.whole[&("demo".to_owned(), 0)];
    let (mut found, mut lost_any) = (0, 0);
    let rounds = std::env::var("DOZE_FLIPS").map_or(80, |count| count.parse().unwrap());
    for round in 0..rounds {
        let (path, bytes) = files[prng.below(files.len() as u64) as usize];
        let (at, bit) = (prng.below(bytes.len() as u64), prng.below(8) as u8);
        let context = format!("seed {SEED}, round {round}: bit {bit} of byte {at} of {}", path.display());
        let sim = scene.copy();
        assert!(sim.fs.flip_bit(&Path::new("/").join(path), at, bit));
        let (plan, _) = recover(&sim.env(), true).unwrap_or_else(|error| panic!("{context}: {error}"));
        found += u64::from(!plan.is_empty());
        let left = &served(&sim.env())[&("demo".to_owned(), 0)];
        let is_log = path.extension().is_some_and(|end| end == "log");
        let hit =
            batches_of(bytes).into_iter().find(|(start, end, _)| is_log && (*start..*end).contains(&(at as usize)));
        let lost: Vec<i64> = whole.iter().filter(|batch| !left.contains(batch)).map(|(base, _)| *base).collect();
        lost_any += u64::from(!lost.is_empty());
        match hit {
            Some((.., base)) => assert!(lost.is_empty() || lost == [base], "{context}: lost {lost:?}, {base} was hit"),
            None => assert_eq!(lost, [0; 0], "{context}"),
        }
    }
    println!("{found} of {rounds} flips were found, {lost_any} cost a batch");
    assert!(found * 2 > rounds && lost_any * 5 > rounds, "{found} {lost_any}");
}

/// The same by the thousand, without what is around the logs: of a log in which a bit was flipped every other batch is good, and the
/// one that was hit is a stretch of its own or put right as it was.
#[test]
fn thousands_of_flips_in_a_log_touch_no_other_batch() {
    let mut prng = Prng::new(SEED + 2);
    let scene = Scene::small();
    let dir = Path::new(DATA).join("demo-0");
    let logs: Vec<(PathBuf, Vec<u8>)> =
        scene.logs("demo-0").into_iter().map(|path| (path.clone(), bytes_of(&scene.fs, &path))).collect();
    let (mut mended, mut lost, mut unseen) = (0, 0, 0);
    for round in 0..3000 {
        let (path, bytes) = &logs[prng.below(logs.len() as u64) as usize];
        let (at, bit) = (prng.below(bytes.len() as u64), prng.below(8) as u8);
        let context = format!("seed {}, round {round}: bit {bit} of byte {at} of {}", SEED + 2, path.display());
        assert!(scene.fs.flip_bit(path, at, bit));
        let surveyed = crate::storage::log::repair::survey(&scene.fs, &dir, &mut |_| {}).unwrap();
        assert!(scene.fs.flip_bit(path, at, bit), "it is put back");
        let batches = batches_of(bytes);
        let hit = batches.iter().find(|(start, end, _)| (*start..*end).contains(&(at as usize))).unwrap();
        let stretches: Vec<_> =
            surveyed.iter().flat_map(|file| file.stretches.iter().map(|s| (file.base, s))).collect();
        assert!(surveyed.iter().all(|file| !file.is_misnamed() && file.surplus.is_none()), "{context}");
        match stretches[..] {
            // The leader epoch is in no checksum.
            [] => unseen += 1,
            [(_, stretch)] => {
                assert_eq!((stretch.position, stretch.end()), (hit.0 as u64, hit.1 as u64), "{context}");
                match &stretch.mend {
                    Some(mend) => {
                        assert_eq!(mend.frame[..12], bytes[hit.0..hit.0 + 12], "{context}: it is as it was");
                        mended += 1;
                    }
                    None => lost += 1,
                }
            }
            ref more => panic!("{context}: {more:?}"),
        }
    }
    println!("{mended} batches were put right, {lost} cannot be, {unseen} flips are in no checksum");
    assert!(mended > 150 && lost > 2000 && unseen < 300, "{mended} {lost} {unseen}");
}

/// Overwrites stretches with noise, zeros and bytes from elsewhere, cuts and grows files: nothing panics, and a second run finds
/// nothing to do.
#[test]
fn whatever_is_done_to_the_files_a_second_run_finds_nothing_to_do() {
    let mut prng = Prng::new(SEED + 1);
    let scene = Scene::small();
    let image = scene.fs.image();
    let files: Vec<(&PathBuf, &Vec<u8>)> = image
        .iter()
        .filter_map(|(path, bytes)| Some((path, bytes.as_ref()?)))
        .filter(|(path, _)| path.starts_with("data/demo-0"))
        .collect();
    for round in 0..60 {
        let sim = scene.copy();
        let mut context = format!("seed {}, round {round}:", SEED + 1);
        for _ in 0..1 + prng.below(3) {
            let (path, bytes) = files[prng.below(files.len() as u64) as usize];
            let path = Path::new("/").join(path);
            let mut bytes = bytes.clone();
            let len = bytes.len() as u64;
            let at = prng.below(len.max(1)) as usize;
            let count = (1 + prng.below(200) as usize).min(bytes.len() - at.min(bytes.len()));
            let what = prng.below(6);
            match what {
                0 => bytes[at..at + count].fill(0),
                1 => bytes[at..at + count].iter_mut().for_each(|b| *b = prng.below(256) as u8),
                2 => bytes.truncate(at),
                3 => bytes.extend(std::iter::repeat_n(prng.below(256) as u8, 1 + prng.below(300) as usize)),
                4 => {
                    let from = prng.below(len.max(1)) as usize;
                    let piece = bytes[from..(from + count).min(bytes.len())].to_vec();
                    bytes.splice(at..at, piece);
                }
                _ => {
                    bytes.drain(at..at + count);
                }
            }
            context += &format!(" {what} at {at} of {},", path.display());
            put(&sim.fs, &path, &bytes);
        }
        recover(&sim.env(), true).unwrap_or_else(|error| panic!("{context} {error}"));
        assert_nothing_left(&sim.env(), &context);
        served(&sim.env());
    }
}
