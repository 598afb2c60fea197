//! Numbers, times and names as people read them.

use std::path::Path;

/// Bytes with the unit that leaves three or four digits: `512 B`, `12.3 KiB`, `1.50 GiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64;
    let mut unit = "B";
    for larger in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    let digits = if value < 10.0 {
        2
    } else if value < 100.0 {
        1
    } else {
        0
    };
    format!("{value:.digits$} {unit}")
}

/// So many of something: `1 batch`, `2 batches`.
pub fn count(number: impl TryInto<u64>, one: &str, many: &str) -> String {
    match number.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {one}"),
        number => format!("{number} {many}"),
    }
}

/// A time in milliseconds since the Unix epoch, as RFC 3339 has it, in UTC: `2026-11-30T02:06:00.000Z`. Years beyond 9999 have
/// more digits than it allows.
pub fn timestamp(ms: i64) -> String {
    let mut text = Vec::with_capacity(24);
    append_timestamp(&mut text, ms);
    String::from_utf8_lossy(&text).into_owned()
}

/// Appends what [`timestamp`] answers.
pub fn append_timestamp(text: &mut Vec<u8>, ms: i64) {
    const DAY: i64 = 24 * 60 * 60 * 1000;
    let (days, of_day) = (ms.div_euclid(DAY), ms.rem_euclid(DAY));
    let (year, month, day) = civil(days);
    let (hours, minutes, seconds) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1000 % 60);
    // By hand, since there may be millions.
    match year {
        0..=9999 => {
            two_digits(text, year / 100);
            two_digits(text, year % 100);
        }
        _ => {
            text.extend_from_slice(format!("{}{:04}", if year < 0 { "-" } else { "" }, year.unsigned_abs()).as_bytes())
        }
    }
    for (before, number) in [(b'-', month), (b'-', day), (b'T', hours), (b':', minutes), (b':', seconds)] {
        text.push(before);
        two_digits(text, number);
    }
    let ms = of_day % 1000;
    text.push(b'.');
    text.push(b'0' + (ms / 100) as u8);
    two_digits(text, ms % 100);
    text.push(b'Z');
}

fn two_digits(text: &mut Vec<u8>, number: i64) {
    text.extend_from_slice(&[b'0' + (number / 10) as u8, b'0' + (number % 10) as u8]);
}

/// The date of a day counted from 1970-01-01, in the Gregorian calendar. Counts in eras of 400 years from a 1st of March, so
/// that the leap day is the last of its year.
fn civil(days: i64) -> (i64, i64, i64) {
    const DAYS_OF_ERA: i64 = 146_097;
    let from_march_of_0 = days + 719_468;
    let era = from_march_of_0.div_euclid(DAYS_OF_ERA);
    let of_era = from_march_of_0.rem_euclid(DAYS_OF_ERA);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// The milliseconds since the Unix epoch that a text means: a number of them, or a date in UTC as RFC 3339 has it, of which
/// the end may be left out: `2026-11-30`, `2026-11-30T02:06Z`, `2026-11-30T02:06:00.5Z`.
pub fn parse_timestamp(text: &str) -> Option<i64> {
    if let Ok(ms) = text.parse() {
        return Some(ms);
    }
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, time.strip_suffix(['Z', 'z']).unwrap_or(time)),
        None => (text, "00:00"),
    };
    let digits = |text: &str, len: usize| -> Option<i64> {
        (text.len() == len && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
    };
    let mut parts = date.split('-');
    let (year, month, day) = (digits(parts.next()?, 4)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let mut clock = time.split(':');
    let (hours, minutes, seconds) =
        (digits(clock.next()?, 2)?, digits(clock.next()?, 2)?, clock.next().unwrap_or("00"));
    if parts.next().is_some() || clock.next().is_some() || hours > 23 || minutes > 59 {
        return None;
    }
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let (seconds, ms) = (digits(seconds, 2)?, digits(&format!("{fraction:0<3}"), 3)?);
    let days = days_from_civil(year, month, day);
    let real = civil(days) == (year, month, day) && seconds < 60;
    real.then_some(((days * 24 + hours) * 60 + minutes) * 60_000 + seconds * 1000 + ms)
}

/// The inverse of [`civil`].
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - 719_468
}

/// Text that moves no cursor: control characters as Rust escapes them.
pub fn printable(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

/// A path for a person. Bytes that are no UTF-8 are replaced.
pub fn path(path: &Path) -> String {
    printable(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_a_fitting_unit() {
        for (count, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (12_595, "12.3 KiB"),
            (1 << 30, "1.00 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(bytes(count), text);
        }
    }

    #[test]
    fn times_are_written_and_read() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_796_004_360_123, "2026-11-30T02:06:00.123Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(timestamp(ms), text);
            assert_eq!(parse_timestamp(text), Some(ms));
        }
        for ms in [i64::MIN, i64::MAX] {
            assert!(timestamp(ms).ends_with('Z'));
        }
        for (text, ms) in [
            ("1700000000000", Some(1_700_000_000_000)),
            ("-1", Some(-1)),
            ("1970-01-02", Some(86_400_000)),
            ("1970-01-01T01:00", Some(3_600_000)),
            ("1970-01-01 00:00:01.5Z", Some(1500)),
            ("1970-02-30", None),
            ("1970-01-01T24:00", None),
            ("1970-01-01T00:00:00+02:00", None),
            ("yesterday", None),
            ("1970-1-1", None),
        ] {
            assert_eq!(parse_timestamp(text), ms, "{text}");
        }
    }
}
