//! How a value of the catalog is laid out in bytes: by hand, so that a file stays readable for as long as doze exists.
//!
//! ```text
//! value      version: u8, then the fields of that version, one after the other
//! integers   big-endian, fixed width
//! bytes      length: u32, then that many bytes
//! string     length: u32, then that many bytes of UTF-8
//! option     0, or 1 and the value
//! id         16 bytes
//! ```
//!
//! A version that is newer than the reader, a length past the end, bytes left over or a string that is not UTF-8 makes
//! the value [`Malformed`]; nothing is reserved for a length before that many bytes are known to be there.

use crate::protocol::Uuid;

/// A value in the catalog that does not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("{what} has version {found}, and this doze knows up to {known}")]
    Version { what: &'static str, found: u8, known: u8 },
    #[error("{what} ends too early")]
    Short { what: &'static str },
    #[error("{what} has {left} bytes too many")]
    Long { what: &'static str, left: usize },
    #[error("{what} has a text that is not UTF-8, or a flag that is neither 0 nor 1")]
    Content { what: &'static str },
}

/// Lays out one value.
#[derive(Debug)]
pub struct Encoder(Vec<u8>);

impl Encoder {
    pub fn new(version: u8) -> Self {
        Encoder(vec![version])
    }

    pub fn i32(mut self, value: i32) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub fn i64(mut self, value: i64) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub fn option_i64(mut self, value: Option<i64>) -> Self {
        self.0.push(value.is_some().into());
        match value {
            Some(value) => self.i64(value),
            None => self,
        }
    }

    pub fn id(mut self, value: Uuid) -> Self {
        self.0.extend(value.0);
        self
    }

    pub fn bytes(mut self, value: &[u8]) -> Self {
        let len = u32::try_from(value.len()).expect("a value of the catalog came in one frame, which is below 2 GiB");
        self.0.extend(len.to_be_bytes());
        self.0.extend(value);
        self
    }

    pub fn string(self, value: &str) -> Self {
        self.bytes(value.as_bytes())
    }

    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reads one value; `what` names it in errors.
#[derive(Debug)]
pub struct Decoder<'a> {
    what: &'static str,
    version: u8,
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// `known` is the newest version that the caller reads.
    pub fn new(what: &'static str, bytes: &'a [u8], known: u8) -> Result<Self, Malformed> {
        let (&version, rest) = bytes.split_first().ok_or(Malformed::Short { what })?;
        if version > known {
            return Err(Malformed::Version { what, found: version, known });
        }
        Ok(Decoder { what, version, rest })
    }

    pub fn version(&self) -> u8 {
        self.version
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(n).ok_or(Malformed::Short { what: self.what })?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        Ok(self.take(N)?.try_into().expect("it has the length that was asked for"))
    }

    pub fn i32(&mut self) -> Result<i32, Malformed> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub fn i64(&mut self) -> Result<i64, Malformed> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    pub fn option_i64(&mut self) -> Result<Option<i64>, Malformed> {
        match self.array::<1>()? {
            [0] => Ok(None),
            [1] => self.i64().map(Some),
            _ => Err(Malformed::Content { what: self.what }),
        }
    }

    pub fn id(&mut self) -> Result<Uuid, Malformed> {
        Ok(Uuid(self.array()?))
    }

    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = u32::from_be_bytes(self.array()?);
        self.take(len as usize)
    }

    pub fn string(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed::Content { what: self.what })
    }

    pub fn finish(self) -> Result<(), Malformed> {
        match self.rest.len() {
            0 => Ok(()),
            left => Err(Malformed::Long { what: self.what, left }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8]) -> Result<(i32, Option<i64>, Uuid, String), Malformed> {
        let mut d = Decoder::new("a test value", bytes, 1)?;
        let value = (d.i32()?, d.option_i64()?, d.id()?, d.string()?.to_owned());
        d.finish()?;
        Ok(value)
    }

    #[test]
    fn a_value_reads_back_and_every_cut_or_addition_is_found() {
        let id = Uuid([7; 16]);
        let bytes = Encoder::new(1).i32(-5).option_i64(Some(i64::MIN)).id(id).string("größe").finish();
        assert_eq!(decode(&bytes), Ok((-5, Some(i64::MIN), id, "größe".into())));
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut]), Err(Malformed::Short { what: "a test value" }), "cut to {cut}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(decode(&longer), Err(Malformed::Long { what: "a test value", left: 1 }));
    }

    #[test]
    fn newer_versions_and_nonsense_are_refused() {
        assert_eq!(decode(&[2]), Err(Malformed::Version { what: "a test value", found: 2, known: 1 }));
        let flag = Encoder::new(1).i32(0).finish().into_iter().chain([9]).collect::<Vec<_>>();
        assert_eq!(decode(&flag), Err(Malformed::Content { what: "a test value" }));
        let mut text = Encoder::new(1).i32(0).option_i64(None).id(Uuid::ZERO).string("ab").finish();
        *text.last_mut().unwrap() = 0xff;
        assert_eq!(decode(&text), Err(Malformed::Content { what: "a test value" }));
        let huge = Encoder::new(1).i32(0).option_i64(None).id(Uuid::ZERO).finish();
        let huge = [&huge[..], &[0xff; 4]].concat();
        assert_eq!(decode(&huge), Err(Malformed::Short { what: "a test value" }));
    }
}
