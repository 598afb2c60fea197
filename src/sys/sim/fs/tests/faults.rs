//! Faults hit what they are told to, and nothing else.

use std::io::ErrorKind;

use super::*;
use crate::sys::sim::{Prng, SyncFailure};

#[test]
fn any_operation_fails_by_its_number() {
    let workload = |fs: &SimFileSystem| -> io::Result<()> {
        fs.create_dir(Path::new("d"))?;
        let file = fs.open(Path::new("d/f"), OpenMode::CreateNew)?;
        write(&*file, b"abc", 0)?;
        file.set_len(2)?;
        file.sync()?;
        file.read_at(&mut [0; 2], 0)?;
        file.len()?;
        fs.open(Path::new("d/f"), OpenMode::Read)?;
        fs.rename(Path::new("d/f"), Path::new("d/g"))?;
        fs.sync_dir(Path::new("d"))?;
        fs.list(Path::new("d"))?;
        fs.remove_file(Path::new("d/g"))?;
        fs.remove_dir(Path::new("d"))?;
        fs.lock(Path::new("l")).map(|_| ())
    };
    let whole = sim();
    workload(&whole).unwrap();
    assert_eq!((whole.operations(), whole.counts().len()), (14, 14), "{:?}", whole.counts());
    assert_eq!(whole.total_injected(), 0);
    for number in 0..14 {
        let fs = sim();
        fs.inject(Fault::at(number, Effect::Error(ErrorKind::Other)));
        workload(&fs).unwrap_err();
        let log = fs.log();
        assert_eq!((fs.operations(), fs.total_injected()), (number + 1, 1));
        assert!(log[number as usize].injected && log[number as usize].to_string().contains("FAULT"));
        assert_eq!(log[number as usize].kind, whole.log()[number as usize].kind);
        let fs = sim();
        fs.stop_after(number);
        assert_eq!(workload(&fs).is_ok(), number == 13);
        assert_eq!(fs.operations(), number + 1);
        fs.kill().list(Path::new("")).unwrap();
    }
}

#[test]
fn a_short_write_leaves_a_part() {
    let fs = sim();
    let file = make(&fs, "f", b"", true);
    for (bytes, left) in [(0, 0), (3, 3), (100, 4)] {
        fs.inject(Fault::on(&[OpKind::Write], Effect::ShortWrite { bytes, error: ErrorKind::StorageFull }).path("f"));
        file.set_len(0).unwrap();
        assert_eq!(write(&*file, b"abcde", 0).unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(file.len().unwrap(), left);
    }
    write(&*file, b"abcde", 0).unwrap();
}

#[test]
fn what_a_failed_flush_lost_no_later_one_brings() {
    for (how, seen, kept) in
        [(SyncFailure::Dropped, b'a', b'a'), (SyncFailure::MarkedClean, b'b', b'a'), (SyncFailure::Written, b'b', b'b')]
    {
        let fs = sim();
        let file = make(&fs, "f", &[b'a'; 5000], true);
        fs.sync_dir(Path::new("")).unwrap();
        write(&*file, &[b'b'; 6000], 0).unwrap();
        fs.inject(Fault::on(&[OpKind::Sync], Effect::Sync(how)));
        file.sync().unwrap_err();
        let bytes = content(&fs, "f").unwrap();
        assert_eq!((bytes[0], bytes.len()), (seen, 6000), "{how:?}");
        file.sync().unwrap();
        let after = fs.fork().power_cut(Cut { data: DataCut::Kept, names: NamesCut::New }, &mut Prng::new(1));
        assert_eq!(content(&after, "f").unwrap()[0], kept, "{how:?}");
        let killed = fs.fork();
        assert_eq!(content(&killed, "f").unwrap()[0], seen, "a kill leaves what reads see");
        // To write a page again is what makes it dirty again.
        write(&*file, b"c", 1).unwrap();
        file.sync().unwrap();
        let after = fs.power_cut(Cut::NOTHING_KEPT, &mut Prng::new(1));
        assert_eq!(content(&after, "f").unwrap()[..3], [seen, b'c', seen], "{how:?}");
    }
}

#[test]
fn a_full_disk_refuses_what_takes_space_until_there_is_some() {
    let fs = sim();
    let file = make(&fs, "f", &[1; 4096], true);
    fs.set_capacity(Some(3 * 4096));
    make(&fs, "g", &[1; 10], true);
    assert_eq!(fs.used_bytes(), 2 * 4096);
    assert_eq!(write(&*file, &[2; 10_000], 100).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(file.len().unwrap(), 8192, "a part was written");
    write(&*file, &[3; 8192], 0).unwrap();
    assert_eq!(fs.open(Path::new("h"), OpenMode::CreateNew).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(fs.create_dir(Path::new("h")).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(fs.total_injected(), 3);
    fs.remove_file(Path::new("g")).unwrap();
    fs.open(Path::new("h"), OpenMode::CreateNew).unwrap();
    write(&*file, &[3; 4096], 8192).unwrap();
    assert!(write(&*file, &[3; 1], 3 * 4096).is_err());
    fs.set_capacity(None);
    write(&*file, &[3; 1], 3 * 4096).unwrap();
}

#[test]
fn a_bit_flips_in_one_read_or_for_good() {
    let fs = sim();
    let file = make(&fs, "f", &[0; 4], true);
    let read = || {
        let mut buf = [0; 4];
        file.read_exact_at(&mut buf, 0).unwrap();
        buf
    };
    fs.inject(Fault::on(&[OpKind::Read], Effect::FlipBit { bit: 9, for_good: false }));
    assert_eq!((read(), read()), ([0, 2, 0, 0], [0; 4]));
    fs.inject(Fault::on(&[OpKind::Read], Effect::FlipBit { bit: 9, for_good: true }));
    assert_eq!((read(), read()), ([0, 2, 0, 0], [0, 2, 0, 0]));
    assert!(fs.flip_bit(Path::new("/f"), 3, 7) && !fs.flip_bit(Path::new("/f"), 4, 7));
    assert_eq!(read(), [0, 2, 0, 128]);
}

#[test]
fn a_disk_that_lies_is_found_out_by_a_cut() {
    let fs = sim();
    fs.inject(Fault::on(&[OpKind::Sync, OpKind::SyncDir], Effect::Ignored).forever());
    make(&fs, "f", b"abc", true);
    fs.sync_dir(Path::new("")).unwrap();
    assert_eq!(fs.total_injected(), 2);
    assert_eq!(names(&fs.power_cut(Cut::NOTHING_KEPT, &mut Prng::new(1))), Vec::<String>::new());
}

#[test]
fn the_hook_sees_each_operation_and_may_use_the_disk() {
    let fs = sim();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let into = seen.clone();
    fs.on_operation(move |fs, operation| into.lock().push((operation.kind, fs.fork().image().len())));
    make(&fs, "f", b"abc", true);
    fs.clear_hook();
    fs.sync_dir(Path::new("")).unwrap();
    assert_eq!(*seen.lock(), [(OpKind::Create, 1), (OpKind::Write, 1), (OpKind::Sync, 1)]);
}
