//! Kafka's identifiers of topics, directories and clusters: 16 bytes, shown as base64 in the URL alphabet.

use std::fmt;
use std::str::FromStr;

use crate::sys::Random;

/// 16 bytes; all zero means none.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uuid(pub [u8; 16]);

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl Uuid {
    pub const ZERO: Uuid = Uuid([0; 16]);

    /// A random one (version 4) that is neither reserved nor shown with a leading dash, which command lines would take
    /// for an option.
    pub fn random(random: &dyn Random) -> Self {
        loop {
            let mut bytes = [0; 16];
            random.fill(&mut bytes);
            bytes[6] = bytes[6] & 0x0f | 0x40;
            bytes[8] = bytes[8] & 0x3f | 0x80;
            let uuid = Uuid(bytes);
            if !uuid.to_string().starts_with('-') {
                return uuid;
            }
        }
    }

    pub fn is_zero(&self) -> bool {
        *self == Uuid::ZERO
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(24);
        for group in self.0.chunks(3) {
            let bits = group.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
            for i in 0..=group.len() {
                text.push(ALPHABET[(bits >> (18 - 6 * i) & 63) as usize] as char);
            }
        }
        f.write_str(&text)
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not 16 bytes in URL base64.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not an id: 22 characters of A-Z, a-z, 0-9, - and _ are expected")]
pub struct ParseUuidError(String);

impl FromStr for Uuid {
    type Err = ParseUuidError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseUuidError(text.to_owned());
        let digits = text.trim_end_matches('=');
        if digits.len() != 22 {
            return Err(error());
        }
        let mut bits = 0u128;
        let mut last = 0;
        for (i, digit) in digits.bytes().enumerate() {
            last = ALPHABET.iter().position(|c| *c == digit).ok_or_else(error)?;
            bits = if i < 21 { bits << 6 | last as u128 } else { bits << 2 | (last >> 4) as u128 };
        }
        if last & 15 != 0 {
            return Err(error());
        }
        Ok(Uuid(bits.to_be_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_as_kafka_shows_it_and_read_back() {
        // What org.apache.kafka.common.Uuid prints for these.
        for (id, text) in [
            (0u128, "AAAAAAAAAAAAAAAAAAAAAA"),
            (1, "AAAAAAAAAAAAAAAAAAAAAQ"),
            (u128::MAX, "_____________________w"),
            (0x000102030405060708090a0b0c0d0e0f, "AAECAwQFBgcICQoLDA0ODw"),
        ] {
            assert_eq!(Uuid(id.to_be_bytes()).to_string(), text);
            assert_eq!(text.parse(), Ok(Uuid(id.to_be_bytes())));
        }
        assert!("AAECAwQFBgcICQoLDA0OD+".parse::<Uuid>().is_err());
        assert!("AAAA".parse::<Uuid>().is_err());
        let id = Uuid(*b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f");
        assert_eq!(id.to_string(), "AAECAwQFBgcICQoLDA0ODw");
        assert_eq!("AAECAwQFBgcICQoLDA0ODw".parse(), Ok(id));
        assert!("AAECAwQFBgcICQoLDA0OD".parse::<Uuid>().is_err());
        assert!("AAECAwQFBgcICQoLDA0OD!".parse::<Uuid>().is_err());
        assert!("AAECAwQFBgcICQoLDA0ODx".parse::<Uuid>().is_err(), "bits beyond the sixteenth byte");
    }
}
