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
        return json_string(out, text);
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
    // The second byte of a control character of two bytes says whether it is one.
    out.write_all(b"\"")?;
    let mut rest = bytes;
    while !rest.is_empty() {
        // Nearly always all of it is text, and that is found out faster than where the chunks end.
        let (text, invalid) = match std::str::from_utf8(rest) {
            Ok(text) => (text, &[][..]),
            Err(_) => rest.utf8_chunks().next().map_or(("", rest), |chunk| (chunk.valid(), chunk.invalid())),
        };
        rest = &rest[text.len() + invalid.len()..];
        escaped(out, text.as_bytes(), [b'"', b'\\', 0x7f, 0xc2], |line, at| {
            let byte = text.as_bytes()[at];
            if matches!(byte, b'"' | b'\\') {
                line.extend_from_slice(&[b'\\', byte]);
                return 1;
            }
            let c = text[at..].chars().next().expect("a character starts here");
            match c {
                c if c.is_control() => line.extend(c.escape_default().map(|c| c as u8)),
                _ => line.extend_from_slice(&text.as_bytes()[at..at + c.len_utf8()]),
            }
            c.len_utf8()
        })?;
        for byte in invalid {
            write!(out, "\\x{byte:02x}")?;
        }
    }
    out.write_all(b"\"")
}

/// Writes text as a JSON string.
fn json_string(out: &mut impl Write, text: &str) -> io::Result<()> {
    in_quotes(out, |out| {
        escaped(out, text.as_bytes(), [b'"', b'\\'], |line, at| {
            match text.as_bytes()[at] {
                b'"' => line.extend_from_slice(b"\\\""),
                b'\\' => line.extend_from_slice(b"\\\\"),
                b'\n' => line.extend_from_slice(b"\\n"),
                b'\r' => line.extend_from_slice(b"\\r"),
                b'\t' => line.extend_from_slice(b"\\t"),
                byte => line.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            }
            1
        })
    })
}

/// Writes text of which control bytes and those in `special` are replaced. Most bytes are neither, so they are looked at sixteen
/// at a time and copied many at a time. `replace` is told where one is that is, and answers how many bytes it has dealt with.
fn escaped<const N: usize>(
    out: &mut impl Write,
    text: &[u8],
    special: [u8; N],
    replace: impl Fn(&mut Vec<u8>, usize) -> usize,
) -> io::Result<()> {
    let mut line = Vec::with_capacity((text.len() + text.len() / 8 + 16).min(2 * PIECE));
    let mut at = 0;
    while at < text.len() {
        let plain = plain_run(&text[at..], special).min(PIECE);
        line.extend_from_slice(&text[at..at + plain]);
        at += plain;
        if at < text.len() && plain < PIECE {
            at += replace(&mut line, at);
        }
        if line.len() >= PIECE {
            out.write_all(&line)?;
            line.clear();
        }
    }
    out.write_all(&line)
}

/// How many bytes from the start are neither control bytes nor in `special`.
fn plain_run<const N: usize>(text: &[u8], special: [u8; N]) -> usize {
    // Without a jump out of it, so that a compiler makes a few wide instructions of a block.
    let is_found = |byte: u8| special.iter().fold(byte < b' ', |found, special| found | (byte == *special));
    let is_plain = |block: &&[u8; 16]| block.iter().fold(0, |found, byte| found | u8::from(is_found(*byte))) == 0;
    let plain = 16 * text.as_chunks::<16>().0.iter().take_while(is_plain).count();
    text[plain..].iter().position(|byte| is_found(*byte)).map_or(text.len(), |rest| plain + rest)
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
        let all: String = (0..0x300).filter_map(char::from_u32).collect();
        for at in 0..40 {
            let text = format!("{}{all}", "x".repeat(at));
            let shown = fields(Some(text.as_bytes()), Payload::Text);
            let shown: serde_json::Value = serde_json::from_str(shown.strip_prefix(",\"v\":").unwrap()).unwrap();
            assert_eq!(shown, text.as_str());
        }
        for c in ['\u{7f}', '\u{80}', '\u{9f}', '\u{1}'] {
            assert_eq!(text(c.to_string().as_bytes(), Payload::Text), format!("\"{}\"", c.escape_default()));
        }
        assert_eq!(text("\u{a0}é".as_bytes(), Payload::Text), "\"\u{a0}é\"");
        for len in [0, 1, PIECE - 1, PIECE, PIECE + 1] {
            assert_eq!(text(&vec![b'a'; len], Payload::Base64).len(), len.div_ceil(3) * 4);
            assert_eq!(text(&vec![0xab; len], Payload::Hex), "ab".repeat(len));
        }
    }
}
