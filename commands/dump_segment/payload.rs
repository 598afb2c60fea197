//! Keys and values, in the form that was asked for. They are written as they come, piece by piece, so that a large one takes
//! no more memory than it has.

use std::io;

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

/// Where text is put together.
pub trait Sink {
    /// The text so far, to be appended to. Where there is much it may have been sent on, and none is left.
    fn text(&mut self) -> io::Result<&mut Vec<u8>>;
}

impl Sink for Vec<u8> {
    fn text(&mut self) -> io::Result<&mut Vec<u8>> {
        Ok(self)
    }
}

/// How many bytes are turned into text before a [`Sink`] may send it on.
const PIECE: usize = 3 * 4096;

/// Writes it for a person. A null one has been dealt with, and [`Payload::None`] too.
pub fn as_text(out: &mut impl Sink, bytes: &[u8], payload: Payload) -> io::Result<()> {
    match payload {
        Payload::Json if is_json(bytes) => one_line(out, bytes),
        Payload::Text | Payload::Json => quoted(out, bytes),
        Payload::Hex => hex(out, bytes),
        Payload::Base64 => base64(out, bytes),
        Payload::Length => {
            let text = out.text()?;
            number(text, bytes.len() as i64);
            text.extend_from_slice(b" bytes");
            Ok(())
        }
        Payload::None => Ok(()),
    }
}

/// Writes the fields `,"<name>":…` of an object for it. `None` is a null one.
pub fn as_fields(out: &mut impl Sink, name: &str, bytes: Option<&[u8]>, payload: Payload) -> io::Result<()> {
    if matches!(payload, Payload::Length | Payload::None) {
        return Ok(());
    }
    let line = out.text()?;
    self::name(line, name);
    let Some(bytes) = bytes else {
        line.extend_from_slice(b"null");
        return Ok(());
    };
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
    line.extend_from_slice(b"null");
    self::name(line, &format!("{name}_base64"));
    in_quotes(out, |out| base64(out, bytes))
}

/// Writes the name of a field that is not the first, which nothing has to be escaped in.
pub fn name(line: &mut Vec<u8>, name: &str) {
    line.extend_from_slice(b",\"");
    line.extend_from_slice(name.as_bytes());
    line.extend_from_slice(b"\":");
}

/// Writes a number in decimal digits.
pub fn number(text: &mut Vec<u8>, number: i64) {
    text.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn in_quotes<S: Sink>(out: &mut S, write: impl FnOnce(&mut S) -> io::Result<()>) -> io::Result<()> {
    out.text()?.push(b'"');
    write(out)?;
    out.text()?.push(b'"');
    Ok(())
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

/// Writes JSON so that it stays on its line: a line break can only be one between two of its tokens.
fn one_line(out: &mut impl Sink, bytes: &[u8]) -> io::Result<()> {
    for piece in bytes.chunks(PIECE) {
        out.text()?.extend(piece.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
    }
    Ok(())
}

/// Writes text in quotes as it would stand in a program: control characters, quotes, backslashes and bytes that are no UTF-8
/// are escaped.
pub fn quoted(out: &mut impl Sink, bytes: &[u8]) -> io::Result<()> {
    in_quotes(out, |out| {
        let mut rest = bytes;
        loop {
            rest = plain(out, rest, |word| control(word) | quote(word) | word.wrapping_add(each(1)) | word)?;
            let Some(&byte) = rest.first() else { return Ok(()) };
            let text = out.text()?;
            match byte {
                b'"' | b'\\' => text.extend_from_slice(&[b'\\', byte]),
                0..0x80 => text.extend(char::from(byte).escape_default().map(|c| c as u8)),
                _ => {
                    let (foreign, others) = rest.split_at(foreign_run(rest));
                    beyond_ascii(text, foreign);
                    rest = others;
                    continue;
                }
            }
            rest = &rest[1..];
        }
    })
}

/// How many bytes from the start on are not ASCII, at most a piece of them, and where that is less no part of a character.
fn foreign_run(bytes: &[u8]) -> usize {
    let run = bytes.iter().take(PIECE).position(u8::is_ascii).unwrap_or(bytes.len().min(PIECE));
    let starts_at = |back: &usize| bytes.get(run - back).is_none_or(|byte| *byte & 0xc0 != 0x80);
    run - (0..4.min(run)).find(starts_at).unwrap_or(0)
}

/// Writes bytes of which none is ASCII.
fn beyond_ascii(text: &mut Vec<u8>, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid();
        // The control characters beyond ASCII.
        if valid.as_bytes().windows(2).any(|pair| pair[0] == 0xc2 && pair[1] < 0xa0) {
            for c in valid.chars() {
                match c.is_control() {
                    true => text.extend(c.escape_default().map(|c| c as u8)),
                    false => text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                }
            }
        } else {
            text.extend_from_slice(valid.as_bytes());
        }
        for byte in chunk.invalid() {
            text.extend_from_slice(b"\\x");
            text.extend(hex_digits(*byte));
        }
    }
}

/// Writes text as a JSON string.
fn json_string(out: &mut impl Sink, text: &str) -> io::Result<()> {
    in_quotes(out, |out| {
        let mut rest = text.as_bytes();
        loop {
            rest = plain(out, rest, |word| (control(word) | quote(word)) & !word)?;
            let text = out.text()?;
            let Some((&byte, others)) = rest.split_first() else { return Ok(()) };
            rest = others;
            match byte {
                b'"' | b'\\' => text.extend_from_slice(&[b'\\', byte]),
                b'\n' => text.extend_from_slice(b"\\n"),
                b'\r' => text.extend_from_slice(b"\\r"),
                b'\t' => text.extend_from_slice(b"\\t"),
                _ => {
                    text.extend_from_slice(b"\\u00");
                    text.extend(hex_digits(byte));
                }
            }
        }
    })
}

const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// Sets the highest bit of the first byte of a word that is a control character of ASCII (but DEL). Other bytes get it if they have
/// it already, or, as they may by a carry, behind such a one.
fn control(word: u64) -> u64 {
    word.wrapping_sub(each(b' '))
}

/// The same for quotes and backslashes.
fn quote(word: u64) -> u64 {
    (word ^ each(b'"')).wrapping_sub(each(1)) | (word ^ each(b'\\')).wrapping_sub(each(1))
}

/// Copies bytes up to the first that has to be replaced, and answers the rest. In what `special` makes of eight bytes the highest
/// bit of the first such byte is set, and of none before it.
fn plain<'a>(out: &mut impl Sink, mut bytes: &'a [u8], special: impl Fn(u64) -> u64) -> io::Result<&'a [u8]> {
    while !bytes.is_empty() {
        let piece = &bytes[..bytes.len().min(PIECE)];
        let copied = copy_plain(out.text()?, piece, &special);
        bytes = &bytes[copied..];
        if copied < piece.len() {
            break;
        }
    }
    Ok(bytes)
}

/// Copies bytes up to the first that is special, and answers how many. Eight at a time, and those that should not have been are
/// taken back.
fn copy_plain(text: &mut Vec<u8>, bytes: &[u8], special: impl Fn(u64) -> u64) -> usize {
    let marks = |word: u64| special(word) & each(0x80);
    text.reserve(bytes.len());
    let mut at = 0;
    while let Some(word) = bytes[at..].first_chunk::<8>() {
        text.extend_from_slice(word);
        let marks = marks(u64::from_le_bytes(*word));
        if marks != 0 {
            let plain = marks.trailing_zeros() as usize / 8;
            text.truncate(text.len() - 8 + plain);
            return at + plain;
        }
        at += 8;
    }
    let end = &bytes[at..];
    let plain = end.iter().position(|byte| marks(each(*byte)) != 0).unwrap_or(end.len());
    text.extend_from_slice(&end[..plain]);
    at + plain
}

const HEX: &[u8; 16] = b"0123456789abcdef";

fn hex_digits(byte: u8) -> [u8; 2] {
    [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]
}

fn hex(out: &mut impl Sink, bytes: &[u8]) -> io::Result<()> {
    for piece in bytes.chunks(PIECE) {
        out.text()?.extend(piece.iter().flat_map(|byte| hex_digits(*byte)));
    }
    Ok(())
}

fn base64(out: &mut impl Sink, bytes: &[u8]) -> io::Result<()> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    // Pieces end where a group of three does.
    for piece in bytes.chunks(PIECE) {
        let text = out.text()?;
        for group in piece.chunks(3) {
            let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            let letter = |shift: u32| LETTERS[(bits >> shift & 63) as usize];
            let third = if group.len() > 1 { letter(6) } else { b'=' };
            let fourth = if group.len() > 2 { letter(0) } else { b'=' };
            text.extend([letter(18), letter(12), third, fourth]);
        }
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
