//! Snappy in the two shapes that Kafka's producers write: blocks in the framing of the xerial library (Java), and one raw
//! block (librdkafka and others).
//!
//! | xerial, at | bytes | field |
//! |---:|------:|-------|
//! |  0 | 8 | 0x82 `SNAPPY` 0 |
//! |  8 | 4 | version, 1 |
//! | 12 | 4 | lowest version that can read it, 1 |
//! | 16 | 4 | length of the block that follows, again and again; another header may stand in a length's place |
//!
//! A raw block starts with the inflated length, a varint, and goes on with literals and copies:
//!
//! | low two bits of the tag | what | length | offset |
//! |---:|------|--------|--------|
//! | 0 | literal | tag / 4 + 1, or from 60 on: 1 to 4 bytes follow that hold it less 1 | |
//! | 1 | copy | tag / 4 % 8 + 4 | tag / 32 * 256 + 1 byte |
//! | 2 | copy | tag / 4 + 1 | 2 bytes |
//! | 3 | copy | tag / 4 + 1 | 4 bytes |
//!
//! The block has no window: a copy may reach back to its start. Encoders stay within 64 KiB. So the tags of a large block are
//! walked once without inflating anything, which finds how far its copies reach, and then it is inflated with a window of
//! just that size.

use std::io;

use super::CodecError;
use crate::record::header::Compression;

const XERIAL_MAGIC: [u8; 8] = *b"\x82SNAPPY\0";
const XERIAL_HEADER: [u8; 16] = *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
/// How much is compressed into one block, as the Java library does it.
const BLOCK: usize = 32 * 1024;
/// How much is inflated at a time, besides the window.
const PIECE: usize = 64 * 1024;
/// Short runs are moved in steps of this many bytes, more than they have; what stands behind them is written over later.
const STEP: usize = 16;
/// What a copy, in steps, can write past the end of a piece.
const SLACK: usize = 64 + STEP;

/// Inflates either shape.
pub(in crate::record) struct Reader<S> {
    source: S,
    at: usize,
    framed: bool,
    block: Block,
    /// Up to `made` the window and then what was inflated last, of which the part from `given` on is not consumed yet. Behind
    /// that, room.
    out: Vec<u8>,
    given: usize,
    made: usize,
}

/// The raw block that is being inflated. Nothing is left of it when `at == end` and no literal is open.
#[derive(Default)]
struct Block {
    at: usize,
    end: usize,
    /// The bytes of the current literal that are still to come.
    literal: usize,
    /// How far back its copies reach at most.
    window: usize,
    /// The inflated bytes that are still to come.
    left: usize,
}

const REACH: &str = "a copy reaches back past the start of its block";
const LENGTH: &str = "a block does not inflate to the length it says";

enum Op {
    Literal(usize),
    Copy { offset: usize, len: usize },
}

impl<S: AsRef<[u8]>> Reader<S> {
    pub(super) fn new(source: S) -> Reader<S> {
        let framed = source.as_ref().starts_with(&XERIAL_MAGIC);
        Reader { source, at: 0, framed, block: Block::default(), out: Vec::new(), given: 0, made: 0 }
    }

    pub(super) fn piece(&self) -> &[u8] {
        &self.out[self.given..self.made]
    }

    pub(super) fn consume(&mut self, n: usize) {
        self.given += n;
    }

    pub(super) fn fill(&mut self) -> Result<(), CodecError> {
        while self.given == self.made {
            if self.block.at == self.block.end && self.block.literal == 0 {
                if !self.open_block().map_err(|reason| CodecError::new(Compression::Snappy, reason))? {
                    return Ok(());
                }
            } else {
                self.inflate().map_err(|reason| CodecError::new(Compression::Snappy, reason))?;
            }
        }
        Ok(())
    }

    /// Goes to the next block; false when there is none.
    fn open_block(&mut self) -> Result<bool, &'static str> {
        let source = self.source.as_ref();
        let rest = &source[self.at..];
        if rest.is_empty() {
            return Ok(false);
        }
        let (start, end) = if !self.framed {
            (self.at, source.len())
        } else if rest.starts_with(&XERIAL_MAGIC) {
            self.at += rest.get(..XERIAL_HEADER.len()).ok_or("it ends inside a header")?.len();
            return Ok(true);
        } else {
            let len = u32::from_be_bytes(*rest.first_chunk().ok_or("it ends inside a block's length")?) as usize;
            let start = self.at + 4;
            let end = start.checked_add(len).filter(|&end| end <= source.len()).ok_or("it ends inside a block")?;
            (start, end)
        };
        self.at = end;
        let mut at = start;
        let inflated = inflated_len(&source[..end], &mut at)?;
        if at == end && inflated > 0 {
            return Err(LENGTH);
        }
        let window = if inflated <= 2 * PIECE { inflated } else { longest_reach(&source[at..end], inflated)? };
        self.block = Block { at, end, literal: 0, window, left: inflated };
        let room = inflated.min(window + window.max(PIECE) + PIECE) + SLACK;
        if self.out.len() < room {
            self.out.resize(room, 0);
        }
        (self.given, self.made) = (0, 0);
        Ok(true)
    }

    /// Inflates a piece of the block, at least one byte of it. Everything before was consumed.
    fn inflate(&mut self) -> Result<(), &'static str> {
        let Reader { source, block, out, .. } = self;
        let source = &source.as_ref()[..block.end];
        let keep_from = self.made.saturating_sub(block.window);
        if keep_from >= PIECE.max(block.window) {
            out.copy_within(keep_from..self.made, 0);
            self.made = block.window;
        }
        self.given = self.made;
        // There is room for a whole piece and what a step writes past it, or for all that the block makes.
        let (enough, mut made, mut at, mut literal) = (self.made + PIECE, self.made, block.at, block.literal);
        let most = self.made + block.left;
        while made < enough {
            if literal == 0 {
                if at == block.end {
                    break;
                }
                match next_op(source, &mut at)? {
                    Op::Literal(len) if len <= most - made => literal = len,
                    Op::Copy { offset, len } if len <= most - made => {
                        if offset == 0 || offset > made {
                            return Err(REACH);
                        }
                        copy(out, made, offset, len);
                        made += len;
                        continue;
                    }
                    _ => return Err(LENGTH),
                }
            }
            let n = literal.min(enough - made);
            match source[at..].first_chunk::<STEP>() {
                Some(step) if n <= STEP => out[made..made + STEP].copy_from_slice(step),
                _ => out[made..made + n].copy_from_slice(&source[at..at + n]),
            }
            at += n;
            literal -= n;
            made += n;
        }
        block.left = most - made;
        (self.made, block.at, block.literal) = (made, at, literal);
        if at == block.end && literal == 0 && block.left > 0 { Err(LENGTH) } else { Ok(()) }
    }
}

/// Repeats at `to` the `len` bytes from `offset` back, of which the last may be what the first become. The walk over the
/// caller has seen to it that they are there.
#[inline(always)]
fn copy(out: &mut [u8], to: usize, offset: usize, len: usize) {
    let from = to - offset;
    if offset >= STEP {
        let mut at = 0;
        while at < len {
            let mut step = [0; STEP];
            step.copy_from_slice(&out[from + at..][..STEP]);
            out[to + at..][..STEP].copy_from_slice(&step);
            at += STEP;
        }
    } else {
        for at in 0..len {
            out[to + at] = out[from + at];
        }
    }
}

/// Walks the tags of a block without inflating it. Answers how far back its copies reach; that cannot be farther than all it
/// makes, and it makes no more than it says and no more than its tags can.
fn longest_reach(tags: &[u8], inflated: usize) -> Result<usize, &'static str> {
    let (mut at, mut made, mut window) = (0, 0, 0);
    while at < tags.len() {
        match next_op(tags, &mut at)? {
            Op::Literal(len) => {
                at += len;
                made += len;
            }
            Op::Copy { offset, len } => {
                if offset == 0 || offset > made {
                    return Err(REACH);
                }
                window = window.max(offset);
                made += len;
            }
        }
    }
    if made == inflated { Ok(window) } else { Err(LENGTH) }
}

fn inflated_len(block: &[u8], at: &mut usize) -> Result<usize, &'static str> {
    let mut len = 0;
    for shift in [0, 7, 14, 21, 28] {
        let byte = *block.get(*at).ok_or("it ends inside a block's inflated length")?;
        *at += 1;
        len |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(len);
        }
    }
    Err("a block's inflated length goes on too long")
}

/// What the tags of copies say: the length, the bytes that follow, and the high part of the offset.
const COPIES: [(u8, u8, u16); 256] = {
    let mut copies = [(0, 0, 0); 256];
    let mut tag = 0;
    while tag < 256 {
        copies[tag] = match tag & 3 {
            0 => (0, 0, 0),
            1 => ((tag >> 2 & 7) as u8 + 4, 1, (tag >> 5 << 8) as u16),
            2 => ((tag >> 2) as u8 + 1, 2, 0),
            _ => ((tag >> 2) as u8 + 1, 4, 0),
        };
        tag += 1;
    }
    copies
};

/// Reads the tag at `at`, which is moved past it and its operands, not past a literal's bytes; those are there.
#[inline(always)]
fn next_op(block: &[u8], at: &mut usize) -> Result<Op, &'static str> {
    let tag = *block.get(*at).ok_or("a block ends inside a tag")?;
    *at += 1;
    if tag & 3 != 0 {
        let (len, bytes, high) = COPIES[usize::from(tag)];
        let offset = usize::from(high) + operand(block, at, usize::from(bytes))?;
        return Ok(Op::Copy { offset, len: usize::from(len) });
    }
    let short = usize::from(tag >> 2);
    let len = if short < 60 { short + 1 } else { operand(block, at, short - 59)? + 1 };
    if len > block.len() - *at {
        return Err("a literal goes on past the end of its block");
    }
    Ok(Op::Literal(len))
}

/// A number of 1 to 4 bytes.
#[inline(always)]
fn operand(block: &[u8], at: &mut usize, bytes: usize) -> Result<usize, &'static str> {
    let rest = &block[*at..];
    let value = match rest.first_chunk() {
        Some(&four) => u32::from_le_bytes(four) & (u32::MAX >> (32 - 8 * bytes)),
        None => {
            let last = rest.get(..bytes).ok_or("a block ends inside a tag")?;
            last.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte))
        }
    };
    *at += bytes;
    Ok(value as usize)
}

/// Writes the xerial framing, as Kafka's Java producer does.
pub(in crate::record) struct Writer {
    out: Vec<u8>,
    block: Vec<u8>,
    encoder: snap::raw::Encoder,
}

impl Writer {
    pub(super) fn new(mut out: Vec<u8>) -> Writer {
        out.extend_from_slice(&XERIAL_HEADER);
        Writer { out, block: Vec::new(), encoder: snap::raw::Encoder::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    pub(super) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let n = bytes.len().min(BLOCK - self.block.len());
            self.block.extend_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            if self.block.len() == BLOCK {
                self.write_block()?;
            }
        }
        Ok(())
    }

    fn write_block(&mut self) -> io::Result<()> {
        let length_at = self.out.len();
        let from = length_at + 4;
        self.out.resize(from + snap::raw::max_compress_len(self.block.len()), 0);
        let len = self.encoder.compress(&self.block, &mut self.out[from..]).map_err(io::Error::other)?;
        self.out.truncate(from + len);
        self.out[length_at..from].copy_from_slice(&(len as u32).to_be_bytes());
        self.block.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> io::Result<Vec<u8>> {
        if !self.block.is_empty() {
            self.write_block()?;
        }
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inflate(source: &[u8]) -> Result<(Vec<u8>, usize), CodecError> {
        let mut reader = Reader::new(source);
        let (mut all, mut held) = (Vec::new(), 0);
        loop {
            reader.fill()?;
            if reader.piece().is_empty() {
                return Ok((all, held));
            }
            held = held.max(reader.out.capacity());
            let n = reader.piece().len().min(50_000);
            all.extend_from_slice(&reader.piece()[..n]);
            reader.consume(n);
        }
    }

    fn data(len: usize) -> Vec<u8> {
        let mut state = 7u32;
        (0..len)
            .map(|i| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if i / 1000 % 2 == 0 { (state >> 28) as u8 } else { (i / 50) as u8 }
            })
            .collect()
    }

    #[test]
    fn raw_blocks_and_framed_ones_inflate_within_a_window() {
        for len in [0, 1, 60, 61, 300, BLOCK, BLOCK + 1, 3_000_000] {
            let bytes = data(len);
            let raw = snap::raw::Encoder::new().compress_vec(&bytes).unwrap();
            let (all, held) = inflate(&raw).unwrap();
            assert!(all == bytes, "raw, {len} bytes");
            assert!(held < 600_000, "{held} bytes held for {len}");
            let mut writer = Writer::new(Vec::new());
            for part in bytes.chunks(7_777) {
                writer.write(part).unwrap();
            }
            let mut framed = writer.finish().unwrap();
            assert!(inflate(&framed).unwrap().0 == bytes, "framed, {len} bytes");
            framed.extend_from_slice(&framed.clone());
            assert_eq!(inflate(&framed).unwrap().0.len(), 2 * len, "two streams, one after the other");
        }
    }

    #[test]
    fn a_copy_from_far_back_is_right() {
        // A literal of 200,000 bytes, then a copy of 64 from its very start.
        let literal = data(200_000);
        let mut raw = vec![0xc0 | 0x80, 0x9b, 0x0c];
        raw[0] = (200_064u32 & 0x7f) as u8 | 0x80;
        raw[1] = (200_064u32 >> 7 & 0x7f) as u8 | 0x80;
        raw[2] = (200_064u32 >> 14) as u8;
        raw.push(62 << 2);
        raw.extend_from_slice(&199_999u32.to_le_bytes()[..3]);
        raw.extend_from_slice(&literal);
        raw.push(63 << 2 | 3);
        raw.extend_from_slice(&200_000u32.to_le_bytes());
        let (all, _) = inflate(&raw).unwrap();
        assert!(all[..200_000] == literal && all[200_000..] == literal[..64]);
        assert_eq!(snap::raw::Decoder::new().decompress_vec(&raw).unwrap(), all);
    }

    #[test]
    fn what_the_snap_crate_refuses_is_refused_and_the_rest_is_equal() {
        let good = snap::raw::Encoder::new().compress_vec(&data(3000)).unwrap();
        let mut refused = 0;
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bytes = good.clone();
                bytes[at] ^= 1 << bit;
                // The other decoder reserves what a block claims; a claim past what tags can make is for us alone.
                match (snap::raw::decompress_len(&bytes), inflate(&bytes)) {
                    (Ok(len), ours) if len < 1 << 20 => {
                        match (snap::raw::Decoder::new().decompress_vec(&bytes), ours) {
                            (Ok(theirs), Ok((ours, _))) => assert_eq!(theirs, ours),
                            (Err(_), Err(_)) => refused += 1,
                            (theirs, ours) => panic!("bit {bit} of byte {at}: {theirs:?} and {ours:?}"),
                        }
                    }
                    (_, ours) => assert!(ours.is_err()),
                }
            }
        }
        assert!(refused > 100);
        for cut in 1..good.len() {
            assert!(inflate(&good[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn a_block_that_claims_four_gigabytes_costs_nothing() {
        assert!(inflate(&[0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0]).is_err());
    }
}
