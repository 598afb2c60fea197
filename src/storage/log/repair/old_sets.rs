//! Finding the next message set of a version before 2 behind damage, in the logs of an old Apache Kafka.

use std::io;
use std::ops::RangeInclusive;

use crate::record::legacy::Entry;
use crate::storage::log::scan::{BatchAt, LONG_WALK, Walker};
use crate::sys::File;

/// The least bytes of an entry.
const SMALLEST: u64 = 26;
/// The largest entry that is looked for, in bytes: Kafka's own limit is a megabyte unless it was raised.
const LARGEST: u64 = 16 << 20;

/// The first entry from `from` up to `end` that is whole (its fields fill it and its checksum holds) with an offset in
/// `offsets`. `None` if there is none.
pub(super) fn find_next(
    file: &std::sync::Arc<dyn File>,
    from: u64,
    end: u64,
    offsets: RangeInclusive<i64>,
) -> io::Result<Option<BatchAt>> {
    let mut window = Vec::new();
    let mut window_at = from;
    let mut at = from;
    while at + SMALLEST <= end {
        if at + SMALLEST > window_at + window.len() as u64 {
            let want = (LONG_WALK as u64).min(end - at) as usize;
            window.resize(want, 0);
            file.read_exact_at(&mut window, at)?;
            window_at = at;
        }
        let bytes = &window[(at - window_at) as usize..];
        let offset = i64::from_be_bytes(bytes[..8].try_into().expect("eight bytes"));
        let length = i64::from(i32::from_be_bytes(bytes[8..12].try_into().expect("four bytes")));
        let size = u64::try_from(length + 12).unwrap_or(0);
        let may_be = matches!(bytes[16], 0 | 1)
            && offsets.contains(&offset)
            && (SMALLEST..=LARGEST.min(end - at)).contains(&size);
        if may_be {
            let mut whole = vec![0; size as usize];
            file.read_exact_at(&mut whole, at)?;
            if Entry::parse(&whole).is_ok() {
                let mut walker = Walker::new(file.clone(), at, end, LONG_WALK);
                if let Some(batch) = walker.next()?
                    && walker.verify(&batch)?
                {
                    return Ok(Some(batch));
                }
            }
        }
        at += 1;
    }
    Ok(None)
}
