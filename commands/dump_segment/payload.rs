//! Keys and values, in the form that was asked for. They are written as they come, piece by piece, so that a large one takes
//! no more memory than it has.

use std::io::{self, Write};

use clap::ValueEnum;
use serde::de::IgnoredAny;

/// How a key or a value is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Payload {
    /// As text. Bytes that are no UTF-8 are escaped, and with --json the whole is given as base64 in a field of its own
    Text,
    /// As the JSON that it is; where it is none, as text
    Json,
    /// Two digits a byte
    Hex,
    /// Base64, with padding
    Base64,
    /// The number of bytes alone
    Length,
    /// Not at all
    None,
}

/// How many bytes are turned into text at once.
const PIECE: usize = 3 * 4096;

/// Writes it for a person. A null one has been dealt with, and [`Payload::None`] too.
pub fn as_text(out: &mut impl Write, bytes: &[u8], payload: Payload) -> io::Result<()> {
    match payload {
        Payload::Json if is_json(bytes) => one_line(out, bytes),
        Payload::Text | Payload::Json => quoted(out, bytes),
        Payload::Hex => hex(out, bytes),
        Payload::Base64 => base64(out, bytes),
        Payload::Length => write!(out, "{} bytes", bytes.len()),
        Payload::None => Ok(()),
    }
}

/// Writes the fields `,"<name>":…` of an object for it. `None` is a null one.
pub fn as_fields(out: &mut impl Write, name: &str, bytes: Option<&[u8]>, payload: Payload) -> io::Result<()> {
    let (bytes, payload) = match (bytes, payload) {
        (_, Payload::Length | Payload::None) => return Ok(()),
        (None, _) => return write!(out, ",\"{name}\":null"),
        (Some(bytes), payload) => (bytes, payload),
    };
    write!(out, ",\"{name}\":")?;
    match payload {
        Payload::Hex => return in_quotes(out, |out| hex(out, bytes)),
        Payload::Base64 => return in_quotes(out, |out| base64(out, bytes)),
        Payload::Json if is_json(bytes) => return one_line(out, bytes),
        _ => {}
    }
    if payload == Payload::Text
        && let Ok(text) = std::str::from_utf8(bytes)
    {
        return Ok(serde_json::to_writer(out, text)?);
    }
    // What is no text, or no JSON, is told from what is.
    write!(out, "null,\"{name}_base64\":")?;
    in_quotes(out, |out| base64(out, bytes))
}

fn in_quotes<W: Write>(out: &mut W, write: impl FnOnce(&mut W) -> io::Result<()>) -> io::Result<()> {
    out.write_all(b"\"")?;
    write(out)?;
    out.write_all(b"\"")
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

/// Writes JSON so that it stays on its line: a line break can only be one between two of its tokens.
fn one_line(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    for (at, line) in bytes.split(|byte| matches!(byte, b'\n' | b'\r')).enumerate() {
        if at > 0 {
            out.write_all(b" ")?;
        }
        out.write_all(line)?;
    }
    Ok(())
}

/// Writes text in quotes as it would stand in a program: control characters, quotes, backslashes and bytes that are no UTF-8
/// are escaped.
pub fn quoted(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    out.write_all(b"\"")?;
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some(at) = rest.find(|c: char| c.is_control() || c == '"' || c == '\\') {
            out.write_all(&rest.as_bytes()[..at])?;
            let c = rest[at..].chars().next().expect("one was found here");
            write!(out, "{}", c.escape_default())?;
            rest = &rest[at + c.len_utf8()..];
        }
        out.write_all(rest.as_bytes())?;
        for byte in chunk.invalid() {
            write!(out, "\\x{byte:02x}")?;
        }
    }
    out.write_all(b"\"")
}

fn hex(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut digits = Vec::with_capacity(2 * bytes.len().min(PIECE));
    for piece in bytes.chunks(PIECE) {
        digits.clear();
        digits.extend(piece.iter().flat_map(|b| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]]));
        out.write_all(&digits)?;
    }
    Ok(())
}

fn base64(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = Vec::with_capacity(4 * bytes.len().min(PIECE).div_ceil(3));
    // Pieces end where a group of three does.
    for piece in bytes.chunks(PIECE) {
        text.clear();
        for group in piece.chunks(3) {
            let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            let letter = |shift: u32| LETTERS[(bits >> shift & 63) as usize];
            let third = if group.len() > 1 { letter(6) } else { b'=' };
            let fourth = if group.len() > 2 { letter(0) } else { b'=' };
            text.extend([letter(18), letter(12), third, fourth]);
        }
        out.write_all(&text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8], payload: Payload) -> String {
        let mut out = Vec::new();
        as_text(&mut out, bytes, payload).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn fields(bytes: Option<&[u8]>, payload: Payload) -> String {
        let mut out = Vec::new();
        as_fields(&mut out, "v", bytes, payload).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_form() {
        for (bytes, payload, shown) in [
            (&b"a \"b\"\n\x1b\\\xff\xc3\xa9"[..], Payload::Text, r#""a \"b\"\n\u{1b}\\\xffé""#),
            (b"{\n \"a\": 1.50\r\n}", Payload::Json, "{  \"a\": 1.50  }"),
            (b"{", Payload::Json, "\"{\""),
            (b"\x00\xff", Payload::Hex, "00ff"),
            (b"ab", Payload::Base64, "YWI="),
            (b"ab", Payload::Length, "2 bytes"),
            (b"ab", Payload::None, ""),
        ] {
            assert_eq!(text(bytes, payload), shown);
        }
        for (bytes, payload, shown) in [
            (Some(&b"a\"\x00"[..]), Payload::Text, r#","v":"a\"\u0000""#),
            (Some(b"\xff"), Payload::Text, r#","v":null,"v_base64":"/w==""#),
            (Some(b"[1,\n2]"), Payload::Json, ",\"v\":[1, 2]"),
            (Some(b"[1"), Payload::Json, r#","v":null,"v_base64":"WzE=""#),
            (Some(b"\x0a"), Payload::Hex, r#","v":"0a""#),
            (Some(b"abc"), Payload::Base64, r#","v":"YWJj""#),
            (None, Payload::Text, r#","v":null"#),
            (None, Payload::Length, ""),
        ] {
            assert_eq!(fields(bytes, payload), shown);
        }
        for len in [0, 1, PIECE - 1, PIECE, PIECE + 1] {
            assert_eq!(text(&vec![b'a'; len], Payload::Base64).len(), len.div_ceil(3) * 4);
            assert_eq!(text(&vec![0xab; len], Payload::Hex), "ab".repeat(len));
        }
    }
}
