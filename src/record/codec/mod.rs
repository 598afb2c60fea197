//! The codecs: an [`Inflate`] that gives the bytes behind a batch's codec piece by piece, and a [`Deflate`] that takes them.
//!
//! What either holds is bounded by the codec's window, never by the size of what is inflated: 32 KiB for gzip, at most 4 MiB
//! (one block) for lz4, at most what the frame's header asks and never more than 128 MiB for zstd, and for snappy what
//! its copies reach back to, which is 64 KiB with every encoder there is.

mod inflate;
mod lz4;
mod snappy;

use std::io::{self, Write};

use flate2::write::GzEncoder;
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use thiserror::Error;

pub(super) use inflate::Inflate;

use super::header::Compression;

/// A codec with what it is to be told: what a topic's `compression.type` and `compression.*.level` come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    None,
    /// Level 1 (fast) to 9 (small), or -1 for the default, 6.
    Gzip {
        level: i32,
    },
    Snappy,
    /// There is one level. Kafka's levels 1 to 17 differ in time and size, not in what can read them.
    Lz4,
    /// Level -131072 (fast) to 22 (small); 3 is the default.
    Zstd {
        level: i32,
    },
}

impl Codec {
    /// The codec at its default level.
    pub fn of(compression: Compression) -> Codec {
        match compression {
            Compression::None => Codec::None,
            Compression::Gzip => Codec::Gzip { level: -1 },
            Compression::Snappy => Codec::Snappy,
            Compression::Lz4 => Codec::Lz4,
            Compression::Zstd => Codec::Zstd { level: 3 },
        }
    }

    pub fn compression(&self) -> Compression {
        match self {
            Codec::None => Compression::None,
            Codec::Gzip { .. } => Compression::Gzip,
            Codec::Snappy => Compression::Snappy,
            Codec::Lz4 => Compression::Lz4,
            Codec::Zstd { .. } => Compression::Zstd,
        }
    }
}

/// Compressed bytes that cannot be inflated.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the {codec} bytes cannot be inflated: {reason}")]
pub struct CodecError {
    pub codec: Compression,
    pub reason: String,
}

impl CodecError {
    fn new(codec: Compression, reason: impl ToString) -> CodecError {
        CodecError { codec, reason: reason.to_string() }
    }
}

/// Compresses what is written to it, behind bytes that are there already.
pub(super) enum Deflate {
    Plain(Vec<u8>),
    Gzip(GzEncoder<Vec<u8>>),
    Snappy(Box<snappy::Writer>),
    Lz4(Box<FrameEncoder<Vec<u8>>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Deflate {
    /// `out` is what the compressed bytes are put behind.
    pub(super) fn new(codec: Codec, out: Vec<u8>) -> io::Result<Deflate> {
        Ok(match codec {
            Codec::None => Deflate::Plain(out),
            Codec::Gzip { level } => {
                let level = u32::try_from(level)
                    .map_or(flate2::Compression::default(), |level| flate2::Compression::new(level.clamp(1, 9)));
                Deflate::Gzip(GzEncoder::new(out, level))
            }
            Codec::Snappy => Deflate::Snappy(Box::new(snappy::Writer::new(out))),
            Codec::Lz4 => {
                // What Kafka's own clients write, and all that its reader takes.
                let frame = FrameInfo::new().block_size(BlockSize::Max64KB).block_mode(BlockMode::Independent);
                Deflate::Lz4(Box::new(FrameEncoder::with_frame_info(frame, out)))
            }
            Codec::Zstd { level } => Deflate::Zstd(zstd::stream::write::Encoder::new(out, level)?),
        })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Deflate::Plain(out) => out.write_all(bytes),
            Deflate::Gzip(encoder) => encoder.write_all(bytes),
            Deflate::Snappy(writer) => writer.write(bytes),
            Deflate::Lz4(encoder) => encoder.write_all(bytes),
            Deflate::Zstd(encoder) => encoder.write_all(bytes),
        }
    }

    /// The bytes that have come out so far; what the codec still holds back is not among them.
    pub(super) fn len(&self) -> usize {
        match self {
            Deflate::Plain(out) => out.len(),
            Deflate::Gzip(encoder) => encoder.get_ref().len(),
            Deflate::Snappy(writer) => writer.len(),
            Deflate::Lz4(encoder) => encoder.get_ref().len(),
            Deflate::Zstd(encoder) => encoder.get_ref().len(),
        }
    }

    pub(super) fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Deflate::Plain(out) => Ok(out),
            Deflate::Gzip(encoder) => encoder.finish(),
            Deflate::Snappy(writer) => writer.finish(),
            Deflate::Lz4(encoder) => encoder.finish().map_err(io::Error::other),
            Deflate::Zstd(encoder) => encoder.finish(),
        }
    }
}

impl std::fmt::Debug for Deflate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Deflate({} bytes)", self.len())
    }
}
