//! The inflated bytes behind any codec, lent piece by piece.

use std::io::{Cursor, Read};

use flate2::bufread::MultiGzDecoder;

use super::{CodecError, lz4, snappy};
use crate::record::header::Compression;

/// How much gzip and zstd inflate at a time.
const PIECE: usize = 32 * 1024;

/// Lends the inflated bytes of `S` piece by piece. Bytes after the end of the compressed stream are an error.
pub(in crate::record) enum Inflate<S: AsRef<[u8]>> {
    Plain { source: S, at: usize },
    Gzip(Box<Buffered<MultiGzDecoder<Cursor<S>>>>),
    Snappy(Box<snappy::Reader<S>>),
    Lz4(Box<lz4::Reader<S>>),
    Zstd(Box<Buffered<zstd::stream::read::Decoder<'static, Cursor<S>>>>),
}

impl<S: AsRef<[u8]>> Inflate<S> {
    pub(in crate::record) fn new(compression: Compression, source: S) -> Result<Inflate<S>, CodecError> {
        Ok(match compression {
            Compression::None => Inflate::Plain { source, at: 0 },
            Compression::Gzip => Inflate::Gzip(Box::new(Buffered::new(
                Compression::Gzip,
                // A gzip stream may be several, one after the other, as Java's reader takes it.
                MultiGzDecoder::new(Cursor::new(source)),
            ))),
            Compression::Snappy => Inflate::Snappy(Box::new(snappy::Reader::new(source))),
            Compression::Lz4 => Inflate::Lz4(Box::new(lz4::Reader::new(source, lz4::HeaderChecksum::Checked))),
            Compression::Zstd => {
                let decoder = zstd::stream::read::Decoder::with_buffer(Cursor::new(source))
                    .map_err(|e| CodecError::new(Compression::Zstd, e))?;
                Inflate::Zstd(Box::new(Buffered::new(Compression::Zstd, decoder)))
            }
        })
    }

    /// For message sets of version 0, whose lz4 frames Kafka wrote with a checksum over the wrong bytes.
    pub(in crate::record) fn with_wrong_lz4_checksum(source: S) -> Inflate<S> {
        Inflate::Lz4(Box::new(lz4::Reader::new(source, lz4::HeaderChecksum::Ignored)))
    }

    /// The bytes that were not consumed yet, inflating some if there are none. Empty only at the end.
    pub(in crate::record) fn fill(&mut self) -> Result<&[u8], CodecError> {
        match self {
            Inflate::Plain { .. } => {}
            Inflate::Gzip(buffered) => buffered.fill()?,
            Inflate::Snappy(reader) => reader.fill()?,
            Inflate::Lz4(reader) => reader.fill()?,
            Inflate::Zstd(buffered) => buffered.fill()?,
        }
        Ok(self.piece())
    }

    /// What the last [`Inflate::fill`] answered, less what was consumed since.
    pub(in crate::record) fn piece(&self) -> &[u8] {
        match self {
            Inflate::Plain { source, at } => &source.as_ref()[*at..],
            Inflate::Gzip(buffered) => &buffered.buf[buffered.at..buffered.end],
            Inflate::Snappy(reader) => reader.piece(),
            Inflate::Lz4(reader) => reader.piece(),
            Inflate::Zstd(buffered) => &buffered.buf[buffered.at..buffered.end],
        }
    }

    /// Takes the first `n` bytes of the piece.
    pub(in crate::record) fn consume(&mut self, n: usize) {
        match self {
            Inflate::Plain { at, .. } => *at += n,
            Inflate::Gzip(buffered) => buffered.at += n,
            Inflate::Snappy(reader) => reader.consume(n),
            Inflate::Lz4(reader) => reader.consume(n),
            Inflate::Zstd(buffered) => buffered.at += n,
        }
    }
}

impl<S: AsRef<[u8]>> std::fmt::Debug for Inflate<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self {
            Inflate::Plain { .. } => "none",
            Inflate::Gzip(_) => "gzip",
            Inflate::Snappy(_) => "snappy",
            Inflate::Lz4(_) => "lz4",
            Inflate::Zstd(_) => "zstd",
        };
        write!(f, "Inflate({name})")
    }
}

/// A decoder and the piece that it inflated last.
pub(in crate::record) struct Buffered<R> {
    codec: Compression,
    decoder: R,
    buf: Box<[u8]>,
    at: usize,
    end: usize,
}

impl<R: Read> Buffered<R> {
    fn new(codec: Compression, decoder: R) -> Buffered<R> {
        Buffered { codec, decoder, buf: vec![0; PIECE].into_boxed_slice(), at: 0, end: 0 }
    }

    fn fill(&mut self) -> Result<(), CodecError> {
        if self.at == self.end {
            (self.at, self.end) = (0, 0);
            self.end = self.decoder.read(&mut self.buf).map_err(|e| CodecError::new(self.codec, e))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inflate(compression: Compression, source: &[u8]) -> Result<Vec<u8>, CodecError> {
        let mut inflate = Inflate::new(compression, source)?;
        let mut all = Vec::new();
        while !inflate.fill()?.is_empty() {
            // Not always the whole piece, as a record that ends inside it would have it.
            let n = inflate.piece().len().div_ceil(2);
            all.extend_from_slice(&inflate.piece()[..n]);
            inflate.consume(n);
        }
        Ok(all)
    }

    /// A zstd frame with one stored block of five bytes, which says that it needs a window of this size.
    fn zstd_frame(window_log: u8) -> Vec<u8> {
        let last_stored_block = 5 << 3 | 1;
        [&[0x28, 0xb5, 0x2f, 0xfd, 0, (window_log - 10) << 3, last_stored_block, 0, 0], &b"hello"[..]].concat()
    }

    #[test]
    fn zstd_windows_as_large_as_kafka_takes_them_and_no_larger() {
        assert_eq!(inflate(Compression::Zstd, &zstd_frame(27)).unwrap(), b"hello");
        assert!(inflate(Compression::Zstd, &zstd_frame(28)).is_err());
        let twice = [zstd_frame(17), zstd_frame(20)].concat();
        assert_eq!(inflate(Compression::Zstd, &twice).unwrap(), b"hellohello", "two frames, one after the other");
    }

    #[test]
    fn gzip_members_one_after_the_other() {
        let member = |bytes: &[u8]| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut encoder, bytes).unwrap();
            encoder.finish().unwrap()
        };
        let large = vec![7; 3 * PIECE];
        let all = [member(b"hello"), member(b""), member(&large)].concat();
        assert_eq!(inflate(Compression::Gzip, &all).unwrap(), [&b"hello"[..], &large].concat());
        assert!(inflate(Compression::Gzip, &[&all[..], b"junk"].concat()).is_err());
    }
}
