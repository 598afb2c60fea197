//! The numbers inside records: zigzag, seven bits a byte, the lowest first, the high bit set on all but the last byte.
//! At most 5 bytes for 32 bits and 10 for 64.

/// Why no number could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    /// The bytes end inside the number.
    Short,
    /// It goes on past the bits that the type has.
    TooLong,
}

/// The number at `pos`, which is moved past it.
#[inline(always)]
pub(super) fn read_i32(buf: &[u8], pos: &mut usize) -> Result<i32, Bad> {
    match read_short(buf, pos) {
        Some(value) => Ok(value as i32),
        None => read_long(buf, pos, 32).map(|v| v as i32),
    }
}

/// The number at `pos`, which is moved past it.
#[inline(always)]
pub(super) fn read_i64(buf: &[u8], pos: &mut usize) -> Result<i64, Bad> {
    match read_short(buf, pos) {
        Some(value) => Ok(value),
        None => read_long(buf, pos, 64),
    }
}

/// The number at `pos` if it has one byte or two, as nearly all have.
#[inline(always)]
fn read_short(buf: &[u8], pos: &mut usize) -> Option<i64> {
    let first = u64::from(*buf.get(*pos)?);
    if first < 0x80 {
        *pos += 1;
        return Some(unzigzag(first));
    }
    let second = u64::from(*buf.get(*pos + 1)?);
    if second < 0x80 {
        *pos += 2;
        return Some(unzigzag(first & 0x7f | second << 7));
    }
    None
}

fn read_long(buf: &[u8], pos: &mut usize, bits: u32) -> Result<i64, Bad> {
    let mut number = Partial::default();
    for (i, &byte) in buf[*pos..].iter().enumerate() {
        if let Some(value) = number.push(byte, bits)? {
            *pos += i + 1;
            return Ok(value);
        }
    }
    Err(Bad::Short)
}

/// A number whose bytes come one by one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Partial {
    value: u64,
    shift: u32,
}

impl Partial {
    /// Takes the next byte of a number of `bits` (32 or 64); answers it when this was the last.
    #[inline]
    pub(super) fn push(&mut self, byte: u8, bits: u32) -> Result<Option<i64>, Bad> {
        let part = u64::from(byte & 0x7f);
        let room = bits - self.shift;
        if room < 7 && (byte >= 0x80 || part >> room != 0) {
            return Err(Bad::TooLong);
        }
        self.value |= part << self.shift;
        if byte < 0x80 {
            let value = unzigzag(self.value);
            *self = Partial::default();
            return Ok(Some(value));
        }
        self.shift += 7;
        Ok(None)
    }
}

#[inline(always)]
fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Appends `value`; 32-bit numbers are written the same way.
pub(super) fn write(out: &mut Vec<u8>, value: i64) {
    let mut rest = (value << 1 ^ value >> 63) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// How many bytes [`write`] takes for `value`.
pub(super) fn len(value: i64) -> usize {
    let bits = 64 - ((value << 1 ^ value >> 63) as u64 | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_and_have_the_length_that_was_said() {
        let mut values: Vec<i64> = (0..63).flat_map(|s| [1 << s, -(1 << s), (1 << s) - 1]).collect();
        values.extend([0, i64::MAX, i64::MIN, i64::from(i32::MAX), i64::from(i32::MIN)]);
        for value in values {
            let mut bytes = Vec::new();
            write(&mut bytes, value);
            assert_eq!(bytes.len(), len(value), "{value}");
            let mut pos = 0;
            assert_eq!(read_i64(&bytes, &mut pos), Ok(value));
            assert_eq!(pos, bytes.len());
            for cut in 0..bytes.len() {
                assert_eq!(read_i64(&bytes[..cut], &mut 0), Err(Bad::Short));
            }
            let narrow = read_i32(&bytes, &mut 0);
            assert_eq!(narrow.ok().map(i64::from), i32::try_from(value).ok().map(i64::from), "{value} as 32 bits");
        }
    }

    #[test]
    fn a_number_that_goes_on_is_refused() {
        assert_eq!(read_i32(&[0xff, 0xff, 0xff, 0xff, 0x0f], &mut 0), Ok(i32::MIN));
        assert_eq!(read_i32(&[0xff, 0xff, 0xff, 0xff, 0x1f], &mut 0), Err(Bad::TooLong));
        assert_eq!(read_i32(&[0x80; 6], &mut 0), Err(Bad::TooLong));
        assert_eq!(read_i64(&[0x80; 11], &mut 0), Err(Bad::TooLong));
        // Longer than it needs to be, but it fits: Kafka reads it, so does doze.
        assert_eq!(read_i32(&[0x82, 0x00], &mut 0), Ok(1));
    }
}
