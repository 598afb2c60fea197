//! What a cut, or a kill, leaves.

use std::collections::BTreeSet;

use super::*;
use crate::sys::sim::Prng;

/// All that many cuts leave of `fs`.
fn after_cuts(fs: &SimFileSystem, cut: Cut) -> Vec<SimFileSystem> {
    (0..300).map(|seed| fs.fork().power_cut(cut, &mut Prng::new(seed))).collect()
}

fn with_synced_names(bytes: &[u8]) -> (SimFileSystem, Arc<dyn File>) {
    let fs = sim();
    let file = make(&fs, "f", bytes, true);
    fs.sync_dir(Path::new("/")).unwrap();
    (fs, file)
}

#[test]
fn what_was_flushed_is_there_after_any_cut() {
    let (fs, file) = with_synced_names(&[7; 10_000]);
    file.set_len(9000).unwrap();
    file.sync().unwrap();
    for cut in Cut::all() {
        for after in after_cuts(&fs, cut).into_iter().take(5) {
            assert_eq!(content(&after, "f").unwrap(), [7; 9000], "{cut:?}");
        }
    }
}

#[test]
fn the_unflushed_end_of_a_file_may_be_anything_that_a_disk_leaves() {
    let (fs, file) = with_synced_names(&[1; 3000]);
    write(&*file, &[2; 9000], 3000).unwrap();
    let left = |data| -> BTreeSet<Vec<u8>> {
        let cuts = after_cuts(&fs, Cut { data, names: NamesCut::New });
        cuts.iter().map(|after| content(after, "f").unwrap()).collect()
    };
    let all = [[1; 3000].as_slice(), &[2; 9000]].concat();
    assert_eq!(left(DataCut::Dropped), [vec![1; 3000]].into());
    assert_eq!(left(DataCut::Kept), [all.clone()].into());
    assert_eq!(left(DataCut::Zeroed), [[[1; 3000].as_slice(), &[0; 9000]].concat()].into());
    let prefixes = left(DataCut::Prefix);
    assert!(prefixes.iter().any(|bytes| bytes.len() < 12_000 && bytes.len() % 512 != 0), "torn in a sector");
    let pages = left(DataCut::Pages);
    assert!(pages.iter().any(|bytes| bytes.len() > 8192 && bytes[4000] == 0 && bytes[8000] == 2), "pages in any order");
    for bytes in prefixes.iter().chain(&pages) {
        assert_eq!(bytes[..3000], all[..3000]);
        assert!(bytes[3000..].iter().all(|b| [0, 2].contains(b)));
    }
    let any = left(DataCut::Any);
    assert!(any.contains(&all) && any.contains(&vec![1; 3000]) && any.len() > 30, "{}", any.len());
}

#[test]
fn a_page_is_left_as_it_was_at_any_moment() {
    let (fs, file) = with_synced_names(&[1; 100]);
    for byte in 2..5 {
        write(&*file, &[byte; 100], 0).unwrap();
    }
    let cuts = after_cuts(&fs, Cut::ANY);
    let left: BTreeSet<_> = cuts.iter().map(|after| content(after, "f").unwrap()).collect();
    for byte in 1..5 {
        assert!(left.contains(&vec![byte; 100]), "{byte}");
    }
    assert!(left.iter().all(|bytes| bytes.len() == 100));
}

#[test]
fn what_a_truncation_took_does_not_come_back_behind_a_later_length() {
    let (fs, file) = with_synced_names(&[1; 6000]);
    write(&*file, &[2; 6000], 0).unwrap();
    file.set_len(1000).unwrap();
    file.set_len(7000).unwrap();
    for after in after_cuts(&fs, Cut::ANY) {
        let bytes = content(&after, "f").unwrap();
        match bytes.len() {
            6000 => assert!(bytes.iter().all(|b| [1, 2].contains(b)), "as before the truncation"),
            1000 => {}
            len => {
                assert!((1000..=7000).contains(&len), "{len}");
                assert!(bytes[1000..].iter().all(|b| *b == 0));
            }
        }
    }
    file.sync().unwrap();
    let after = fs.power_cut(Cut::NOTHING_KEPT, &mut Prng::new(1));
    assert_eq!(content(&after, "f").unwrap(), [[2; 1000].as_slice(), &[0; 6000]].concat());
}

#[test]
fn a_name_is_only_sure_once_its_directory_was_flushed() {
    let fs = sim();
    fs.create_dir(Path::new("d")).unwrap();
    make(&fs, "d/f", b"x", true);
    fs.sync_dir(Path::new("d")).unwrap();
    let left: BTreeSet<_> = after_cuts(&fs, Cut::ANY).iter().map(names).collect();
    assert_eq!(left, [vec![], vec!["d".into(), "d/f".into()]].into(), "the name of the directory itself");
    fs.sync_dir(Path::new("")).unwrap();
    fs.remove_file(Path::new("d/f")).unwrap();
    make(&fs, "d/g", b"y", true);
    let left: BTreeSet<_> = after_cuts(&fs, Cut::ANY).iter().map(|after| names(after)[1..].to_vec()).collect();
    let both = vec!["d/f".to_owned(), "d/g".to_owned()];
    assert_eq!(left, [vec![], both[..1].to_vec(), both[1..].to_vec(), both].into());
}

#[test]
fn a_rename_is_in_one_step_and_loses_nothing() {
    let (fs, _) = with_synced_names(b"old");
    make(&fs, "f.new", b"new", true);
    fs.rename(Path::new("f.new"), Path::new("f")).unwrap();
    let mut seen = BTreeSet::new();
    for after in after_cuts(&fs, Cut::ANY) {
        let f = content(&after, "f").unwrap();
        let new = content(&after, "f.new");
        assert!((f == b"new" && new.is_none()) || (f == b"old" && new.is_none_or(|new| new == b"new")));
        seen.insert(f);
    }
    assert_eq!(seen.len(), 2);
    fs.sync_dir(Path::new("")).unwrap();
    // Again and again without a flush of the directory.
    for i in 0..3 {
        make(&fs, "f.new", &[i], true);
        fs.rename(Path::new("f.new"), Path::new("f")).unwrap();
    }
    fs.rename(Path::new("f"), Path::new("g")).unwrap();
    make(&fs, "f", b"last", true);
    for after in after_cuts(&fs, Cut::ANY) {
        assert!(content(&after, "f").is_some() || content(&after, "g").is_some(), "{:?}", names(&after));
    }
}

#[test]
fn a_directory_is_renamed_with_all_in_it() {
    let fs = sim();
    fs.create_dir_all(Path::new("a/t-0")).unwrap();
    make(&fs, "a/t-0/log", b"x", true);
    fs.sync_dir(Path::new("a/t-0")).unwrap();
    fs.rename(Path::new("a/t-0"), Path::new("a/t-0.delete")).unwrap();
    let left: BTreeSet<_> = after_cuts(&fs, Cut::ANY).iter().map(|after| names(after)[2].clone()).collect();
    assert_eq!(left, ["a/t-0/log".to_owned(), "a/t-0.delete/log".to_owned()].into());
}

#[test]
fn a_kill_keeps_the_page_cache_and_ends_the_locks() {
    let fs = sim();
    let file = make(&fs, "f", b"abc", false);
    let lock = fs.lock(Path::new("lock")).unwrap();
    let next = fs.kill();
    assert!(write(&*file, b"x", 0).is_err() && fs.list(Path::new("")).is_err() && file.len().is_err());
    assert_eq!(content(&next, "f").unwrap(), b"abc");
    let again = next.lock(Path::new("lock")).unwrap();
    drop(lock);
    assert!(next.lock(Path::new("lock")).is_err(), "the lock of a process that ended frees nobody else's");
    drop(again);
    let after = next.power_cut(Cut::NOTHING_KEPT, &mut Prng::new(1));
    assert_eq!(names(&after), Vec::<String>::new(), "a kill flushes nothing");
    assert!(next.list(Path::new("")).is_err());
    assert_eq!(after.operations(), fs.operations());
}

#[test]
fn a_fork_is_another_disk() {
    let (fs, file) = with_synced_names(b"abc");
    let fork = fs.fork();
    write(&*file, b"x", 0).unwrap();
    make(&fork, "g", b"", false);
    assert_eq!(content(&fs, "f").unwrap(), b"xbc");
    assert_eq!(content(&fork, "f").unwrap(), b"abc");
    assert_eq!(names(&fs), ["f"]);
}

#[test]
fn one_seed_is_one_image() {
    let run = |seed| {
        let fs = sim();
        let mut prng = Prng::new(seed);
        fs.create_dir(Path::new("d")).unwrap();
        for i in 0..40 {
            let path = format!("d/{}", prng.below(10));
            let file = make(&fs, &path, &[i; 5000], prng.chance(1, 3));
            match prng.below(5) {
                0 => fs.sync_dir(Path::new("d")).unwrap(),
                1 => fs.rename(Path::new(&path), Path::new("d/x")).unwrap(),
                2 => fs.sync_dir(Path::new("")).unwrap(),
                3 => file.set_len(prng.below(6000)).unwrap(),
                _ => {}
            }
        }
        let after = fs.power_cut(Cut::ANY, &mut prng);
        (after.image(), after.log())
    };
    let images: Vec<_> = (0..20).map(run).collect();
    assert_eq!(images, (0..20).map(run).collect::<Vec<_>>());
    assert!(images.windows(2).all(|two| two[0].0 != two[1].0 || two[0].0.is_empty()));
}

/// The age that a program gives a file is on the medium once the file is flushed, and not sooner.
#[test]
fn an_age_that_was_set_is_durable_with_a_flush() {
    for (flushed, cut, expected) in [
        (false, DataCut::Dropped, 1000),
        (false, DataCut::Kept, 77),
        (true, DataCut::Dropped, 77),
        (true, DataCut::Pages, 77),
    ] {
        let fs = sim();
        let file = make(&fs, "f", b"abc", true);
        fs.sync_dir(Path::new("/")).unwrap();
        file.set_modified(77).unwrap();
        assert_eq!(fs.metadata(Path::new("f")).unwrap().modified_ms, 77);
        if flushed {
            file.sync().unwrap();
        }
        let fs = fs.power_cut(Cut { data: cut, names: NamesCut::Old }, &mut Prng::new(1));
        assert_eq!(fs.metadata(Path::new("f")).unwrap().modified_ms, expected, "{flushed} {cut:?}");
    }
    let fs = sim();
    make(&fs, "f", b"abc", true);
    let reader = fs.open(Path::new("f"), OpenMode::Read).unwrap();
    fs.inject(Fault::on(&[OpKind::SetModified], Effect::Error(io::ErrorKind::Other)));
    assert!(reader.set_modified(1).is_err());
}
