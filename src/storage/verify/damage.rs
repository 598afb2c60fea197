//! What is wrong with bytes of a log that are no good batch.

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::finding::Kind;
use crate::record::{HEADER_LEN, peek};
use crate::storage::log::Walker;
use crate::sys::File;

const STEP: usize = 64 * 1024;

/// Bytes that are no good batch, and why.
#[derive(Clone, Debug)]
pub(super) struct Described {
    pub position: u64,
    pub bytes: u64,
    pub kind: Kind,
    pub why: String,
    /// The offsets of whole batches that are in it: from, and the first after them. Empty if there are none.
    pub offsets: (i64, i64),
}

/// Looks at the bytes of `file` from `position` to `end`, which the checker passed over. `due`: the offset that was to come
/// next. `possible`: the offsets that can be there.
pub(super) fn describe(
    file: &Arc<dyn File>,
    due: i64,
    possible: RangeInclusive<i64>,
    position: u64,
    end: u64,
) -> io::Result<Described> {
    let bytes = end - position;
    let described = |kind, why| Described { position, bytes, kind, why, offsets: (due, due) };
    if are_zeros(&**file, position, end)? {
        return Ok(described(Kind::Zeros, format!("{bytes} bytes are zeros")));
    }
    let len = file.len()?;
    let mut walker = Walker::new(file.clone(), position, len, STEP);
    let Some(batch) = walker.next()? else {
        let mut head = vec![0; HEADER_LEN.min(usize::try_from(len - position).unwrap_or(HEADER_LEN))];
        file.read_exact_at(&mut head, position)?;
        let why = match peek(&head) {
            Err(error) => error.to_string(),
            Ok(frame) if position + frame.size as u64 > len => {
                format!("the batch says it has {} bytes, but only {} are left", frame.size, len - position)
            }
            Ok(_) => crate::record::BatchHeader::parse(&head).err().map_or_else(String::new, |e| e.to_string()),
        };
        return Ok(described(Kind::BadFrame, why));
    };
    if !walker.verify(&batch)? {
        return Ok(described(Kind::BadChecksum, "the checksum is not that of the bytes".to_owned()));
    }
    // The batch is whole, so it is its offset that does not fit. Those that follow it may be like it.
    let (first, mut last) = (batch.base_offset, batch.last_offset);
    let mut walked = batch.end();
    while walked < end
        && let Some(next) = walker.next()?
    {
        (last, walked) = (last.max(next.last_offset), next.end());
    }
    let (low, high) = (*possible.start(), *possible.end());
    let all = walked >= end && walked > batch.end();
    let (kind, why) = if first > high && first == due {
        (Kind::Overlap, format!("offset {first} is that of the next segment, which starts with {}", high + 1))
    } else if all && position == 0 {
        (Kind::WrongFile, format!("its batches are of offsets {first} to {last}, and belong under another name"))
    } else if first < low {
        (Kind::BadOffset, format!("a batch has offset {first}, and {low} was due"))
    } else {
        (
            Kind::BadOffset,
            format!("a batch has offsets {first} to {}, which do not fit what follows", batch.last_offset),
        )
    };
    Ok(Described { offsets: (first, last.saturating_add(1)), ..described(kind, why) })
}

fn are_zeros(file: &dyn File, mut position: u64, end: u64) -> io::Result<bool> {
    let mut buffer = vec![0; STEP];
    while position < end {
        let size = usize::try_from(end - position).unwrap_or(STEP).min(STEP);
        file.read_exact_at(&mut buffer[..size], position)?;
        if buffer[..size].iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        position += size as u64;
    }
    Ok(true)
}
