//! The LZ4 frames that Kafka takes: one frame, blocks that stand alone.
//!
//! | bytes | field |
//! |------:|-------|
//! | 4 | 0x184D2204, little-endian, like all numbers here |
//! | 1 | flags: bits 6-7 version (1), 5 blocks stand alone, 4 block checksums, 3 content size, 2 content checksum, 0-1 must be 0 |
//! | 1 | bits 4-6 largest block: 4 is 64 KiB, 5 256 KiB, 6 1 MiB, 7 4 MiB; the others must be 0 |
//! | 8 | content size, where flagged; not looked at |
//! | 1 | second byte of the XXH32 of flags to here |
//! | 4 | length of the block that follows; the high bit says that it is not compressed; 0 ends the frame |
//! | n | the block |
//! | 4 | XXH32 of the block as it stands here, where flagged |
//! | 4 | after the end: checksum of the inflated bytes, where flagged; not looked at, as Kafka does not (the batch has its own) |
//!
//! In message sets of version 0 the header's checksum is over the wrong bytes (it has the magic in it), because Kafka's
//! first writer had that so; it is not looked at there.

use super::CodecError;
use crate::record::header::Compression;

const MAGIC: u32 = 0x184D_2204;
const NOT_COMPRESSED: u32 = 1 << 31;
/// The most that one compressed byte can make.
const MAX_RATIO: usize = 255;

/// Whether the frame header's checksum counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::record) enum HeaderChecksum {
    Checked,
    Ignored,
}

pub(in crate::record) struct Reader<S> {
    source: S,
    at: usize,
    checksum: HeaderChecksum,
    frame: Option<Frame>,
    ended: bool,
    /// The inflated block, where it was compressed.
    out: Vec<u8>,
    piece: Piece,
}

#[derive(Clone, Copy)]
struct Frame {
    block_checksums: bool,
    content_checksum: bool,
    max_block: usize,
}

/// What is lent: a range of `out`, or of the source itself.
enum Piece {
    Inflated { at: usize },
    Stored { at: usize, end: usize },
}

impl<S: AsRef<[u8]>> Reader<S> {
    pub(super) fn new(source: S, checksum: HeaderChecksum) -> Reader<S> {
        Reader { source, at: 0, checksum, frame: None, ended: false, out: Vec::new(), piece: Piece::Inflated { at: 0 } }
    }

    pub(super) fn piece(&self) -> &[u8] {
        match self.piece {
            Piece::Inflated { at } => &self.out[at..],
            Piece::Stored { at, end } => &self.source.as_ref()[at..end],
        }
    }

    pub(super) fn consume(&mut self, n: usize) {
        match &mut self.piece {
            Piece::Inflated { at } | Piece::Stored { at, .. } => *at += n,
        }
    }

    pub(super) fn fill(&mut self) -> Result<(), CodecError> {
        while self.piece().is_empty() && !self.ended {
            self.next_block().map_err(|reason| CodecError::new(Compression::Lz4, reason))?;
        }
        Ok(())
    }

    fn next_block(&mut self) -> Result<(), &'static str> {
        let source = self.source.as_ref();
        let mut input = Input { bytes: source, at: self.at };
        let frame = match self.frame {
            Some(frame) => frame,
            // As with the other codecs, no bytes at all inflate to none.
            None if source.is_empty() => {
                self.ended = true;
                return Ok(());
            }
            None => *self.frame.insert(read_header(&mut input, self.checksum)?),
        };
        let word = input.u32("it ends before a block's length")?;
        if word == 0 {
            if frame.content_checksum {
                input.u32("it ends inside the checksum at its end")?;
            }
            if input.at < source.len() {
                return Err("there are bytes after the end of the frame");
            }
            self.ended = true;
            self.at = input.at;
            return Ok(());
        }
        let len = (word & !NOT_COMPRESSED) as usize;
        if len > frame.max_block {
            return Err("a block is larger than the frame allows");
        }
        let from = input.at;
        let block = input.take(len, "it ends inside a block")?;
        if frame.block_checksums && input.u32("it ends inside a block's checksum")? != xxh32(block) {
            return Err("a block's checksum is not that of its bytes");
        }
        self.at = input.at;
        if word & NOT_COMPRESSED != 0 {
            self.piece = Piece::Stored { at: from, end: from + len };
        } else {
            let room = frame.max_block.min(len.saturating_mul(MAX_RATIO));
            self.out.resize(room, 0);
            let n = lz4_flex::block::decompress_into(block, &mut self.out)
                .map_err(|_| "a block does not inflate to at most what the frame allows")?;
            self.out.truncate(n);
            self.piece = Piece::Inflated { at: 0 };
        }
        Ok(())
    }
}

fn read_header(input: &mut Input<'_>, checksum: HeaderChecksum) -> Result<Frame, &'static str> {
    const CUT: &str = "it ends inside the frame's header";
    if input.u32(CUT)? != MAGIC {
        return Err("it does not start as an LZ4 frame does");
    }
    let from = input.at;
    let flags = input.take(1, CUT)?[0];
    let sizes = input.take(1, CUT)?[0];
    if flags >> 6 != 1 || flags & 0b11 != 0 || sizes & 0b1000_1111 != 0 {
        return Err("the frame's header has a version or bits that are not known");
    }
    if flags & 1 << 5 == 0 {
        return Err("its blocks depend on each other, which Kafka does not take");
    }
    let max_block = match sizes >> 4 {
        size @ 4..=7 => 1 << (8 + 2 * size),
        _ => return Err("the frame's header has a block size that is not known"),
    };
    if flags & 1 << 3 != 0 {
        input.take(8, CUT)?;
    }
    let expected = (xxh32(&input.bytes[from..input.at]) >> 8) as u8;
    if input.take(1, CUT)?[0] != expected && checksum == HeaderChecksum::Checked {
        return Err("the frame header's checksum is not that of its bytes");
    }
    Ok(Frame { block_checksums: flags & 1 << 4 != 0, content_checksum: flags & 1 << 2 != 0, max_block })
}

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn take(&mut self, n: usize, or: &'static str) -> Result<&'a [u8], &'static str> {
        let taken = self.bytes[self.at..].get(..n).ok_or(or)?;
        self.at += n;
        Ok(taken)
    }

    fn u32(&mut self, or: &'static str) -> Result<u32, &'static str> {
        let bytes = self.take(4, or)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }
}

/// XXH32 with seed 0.
fn xxh32(bytes: &[u8]) -> u32 {
    const P: [u32; 5] = [0x9E37_79B1, 0x85EB_CA77, 0xC2B2_AE3D, 0x27D4_EB2F, 0x1656_67B1];
    let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let stripes = bytes.chunks_exact(16);
    let tail = stripes.remainder();
    let mut hash = if bytes.len() < 16 {
        P[4]
    } else {
        let mut lanes = [P[0].wrapping_add(P[1]), P[1], 0, 0u32.wrapping_sub(P[0])];
        for stripe in stripes {
            for (lane, part) in lanes.iter_mut().zip(stripe.chunks_exact(4)) {
                *lane = lane.wrapping_add(word(part).wrapping_mul(P[1])).rotate_left(13).wrapping_mul(P[0]);
            }
        }
        let rotations = [1, 7, 12, 18];
        lanes.iter().zip(rotations).fold(0, |sum: u32, (lane, by)| sum.wrapping_add(lane.rotate_left(by)))
    };
    hash = hash.wrapping_add(bytes.len() as u32);
    let words = tail.chunks_exact(4);
    let rest = words.remainder();
    for part in words {
        hash = hash.wrapping_add(word(part).wrapping_mul(P[2])).rotate_left(17).wrapping_mul(P[3]);
    }
    for &byte in rest {
        hash = hash.wrapping_add(u32::from(byte).wrapping_mul(P[4])).rotate_left(11).wrapping_mul(P[0]);
    }
    hash = (hash ^ hash >> 15).wrapping_mul(P[1]);
    hash = (hash ^ hash >> 13).wrapping_mul(P[2]);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};

    use super::*;

    fn inflate(source: &[u8], checksum: HeaderChecksum) -> Result<Vec<u8>, CodecError> {
        let mut reader = Reader::new(source, checksum);
        let mut all = Vec::new();
        loop {
            reader.fill()?;
            let piece = reader.piece();
            if piece.is_empty() {
                return Ok(all);
            }
            all.extend_from_slice(piece);
            let n = piece.len();
            reader.consume(n);
        }
    }

    fn deflate(info: FrameInfo, bytes: &[u8]) -> Vec<u8> {
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn data(len: usize) -> Vec<u8> {
        // Runs that compress, then noise that is stored as it is.
        let mut state = 1u32;
        (0..len)
            .map(|i| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if i / 100_000 % 2 == 0 { (i / 9) as u8 } else { (state >> 24) as u8 }
            })
            .collect()
    }

    #[test]
    fn frames_of_every_kind_that_kafka_takes() {
        for (size, len) in [
            (BlockSize::Max64KB, 300_000),
            (BlockSize::Max256KB, 600_000),
            (BlockSize::Max1MB, 10),
            (BlockSize::Max4MB, 5_000_000),
        ] {
            for checksums in [false, true] {
                let info = FrameInfo::new().block_size(size).block_mode(BlockMode::Independent);
                let info = info.block_checksums(checksums).content_checksum(checksums);
                let info = info.content_size(checksums.then_some(len as u64));
                let frame = deflate(info, &data(len));
                assert!(inflate(&frame, HeaderChecksum::Checked).unwrap() == data(len), "{size:?}");
                let mut longer = frame.clone();
                longer.push(0);
                assert!(inflate(&longer, HeaderChecksum::Checked).is_err(), "a byte after the frame");
                assert!(inflate(&frame[..frame.len() - 1], HeaderChecksum::Checked).is_err(), "a byte missing");
                if checksums {
                    let mut bent = frame.clone();
                    bent[30] ^= 1;
                    assert!(inflate(&bent, HeaderChecksum::Checked).is_err(), "a bit in the first block");
                }
            }
        }
    }

    #[test]
    fn linked_blocks_are_refused_and_a_wrong_header_checksum_only_where_it_counts() {
        let linked = FrameInfo::new().block_size(BlockSize::Max64KB).block_mode(BlockMode::Linked);
        let error = inflate(&deflate(linked, &data(300_000)), HeaderChecksum::Checked).unwrap_err();
        assert!(error.to_string().contains("depend on each other"), "{error}");
        let info = FrameInfo::new().block_size(BlockSize::Max64KB).block_mode(BlockMode::Independent);
        let mut frame = deflate(info, b"hello");
        frame[6] ^= 0x55;
        assert!(inflate(&frame, HeaderChecksum::Checked).is_err());
        assert_eq!(inflate(&frame, HeaderChecksum::Ignored).unwrap(), b"hello");
    }
}
