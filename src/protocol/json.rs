//! Messages as the JSON that Apache Kafka's own converters write, so that the golden messages can compare every field by
//! name and not only that bytes survive a round trip.

use bytes::Bytes;
use serde_json::Value;

use super::uuid::Uuid;
use super::wire::{Records, Version};

pub(super) trait Json {
    /// What the converter adds to the name of a field with this value.
    fn suffix(&self) -> &'static str {
        ""
    }

    fn json(&self, v: Version) -> Value;
}

pub(super) fn camel_case(snake: &str) -> String {
    let mut camel = String::new();
    let mut up = false;
    for c in snake.trim_start_matches("r#").chars() {
        match c {
            '_' => up = true,
            c if up => {
                camel.extend(c.to_uppercase());
                up = false;
            }
            c => camel.push(c),
        }
    }
    camel
}

macro_rules! plain {
    ($($ty:ty)*) => {$(
        impl Json for $ty {
            fn json(&self, _: Version) -> Value {
                self.clone().into()
            }
        }
    )*};
}
plain! { bool i8 i16 u16 i32 u32 i64 f64 String }

impl Json for Uuid {
    fn json(&self, _: Version) -> Value {
        self.to_string().into()
    }
}

impl Json for Bytes {
    fn json(&self, _: Version) -> Value {
        const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for group in self.chunks(3) {
            let bits = group.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
            for i in 0..4 {
                let digit = ALPHABET[(bits >> (18 - 6 * i) & 63) as usize] as char;
                text.push(if i <= group.len() { digit } else { '=' });
            }
        }
        text.into()
    }
}

/// The converter writes how long records are, in place of what they are.
impl Json for Records {
    fn suffix(&self) -> &'static str {
        "SizeInBytes"
    }

    fn json(&self, _: Version) -> Value {
        self.len().into()
    }
}

impl<T: Json> Json for Vec<T> {
    fn json(&self, v: Version) -> Value {
        self.iter().map(|element| element.json(v)).collect()
    }
}

impl<T: Json> Json for Option<T> {
    fn suffix(&self) -> &'static str {
        self.as_ref().map_or("", T::suffix)
    }

    fn json(&self, v: Version) -> Value {
        self.as_ref().map_or(Value::Null, |value| value.json(v))
    }
}
