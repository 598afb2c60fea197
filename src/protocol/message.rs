//! `message!`: the notation that messages are declared in.
//!
//! ```text
//! message! {
//!     FetchRequest {
//!         cluster_id: Option<String>, in 12.., tag 0, null 12.., default None;
//!         max_wait_ms: i32;
//!     }
//! }
//! ```
//!
//! A field has a name (Kafka's, in snake case) and a type, and then, each where it is needed and in this order: `in`, the
//! versions that carry it; `tag`, its number where it is a tagged field; `null`, the versions in which it may be null;
//! `default`, what it is when a version lacks it, where that is not zero or empty. Each struct gets `Default`, and
//! [`Wire`](super::wire::Wire) for both directions.

macro_rules! message {
    ($(
        $(#[$meta:meta])*
        $name:ident {
            $(
                $field:ident: $ty:ty
                $(, in $in:expr)? $(, tag $tag:literal)? $(, null $null:expr)? $(, default $default:expr)?;
            )*
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $(pub $field: $ty,)*
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $($field: message!(@default $($default)?),)* }
            }
        }

        #[allow(unused_variables, unused_mut)]
        impl $crate::protocol::wire::Wire for $name {
            fn read(
                r: &mut $crate::protocol::wire::Reader,
                v: $crate::protocol::wire::Version,
            ) -> Result<Self, $crate::protocol::wire::DecodeError> {
                let mut message = $name::default();
                $(
                    if message!(@untagged $($tag)?) && message!(@in v $($in)?) {
                        message.$field = message!(@read r v $($null)?);
                    }
                )*
                r.tagged_fields(v, |tag, r| {
                    $(message!(@read_tagged message r v tag $field, $($tag)?, $($in)?, $($null)?);)*
                    Ok(false)
                })?;
                Ok(message)
            }

            fn write(&self, w: &mut $crate::protocol::wire::Writer, v: $crate::protocol::wire::Version) {
                $(
                    if message!(@untagged $($tag)?) && message!(@in v $($in)?) {
                        message!(@write w v self.$field, $($null)?);
                    }
                )*
                if v.flexible {
                    let mut tagged = $crate::protocol::wire::TaggedFields::default();
                    $(message!(@write_tagged tagged v self $field, $($tag)?, $($in)?, $($null)?, $($default)?);)*
                    tagged.write(w, v);
                }
            }

            fn throttle_time_ms(&self) -> i32 {
                $(message!(@throttle self $field);)*
                0
            }

            fn set_throttle_time_ms(&mut self, ms: i32) {
                $(message!(@set_throttle self ms $field);)*
            }
        }

        #[cfg(test)]
        #[allow(unused_variables)]
        impl $crate::protocol::json::Json for $name {
            fn json(&self, v: $crate::protocol::wire::Version) -> serde_json::Value {
                let mut object = serde_json::Map::new();
                $(
                    if message!(@in v $($in)?) && !message!(@absent self $field, $($tag)?, $($default)?) {
                        let name = $crate::protocol::json::camel_case(stringify!($field))
                            + $crate::protocol::json::Json::suffix(&self.$field);
                        object.insert(name, $crate::protocol::json::Json::json(&self.$field, v));
                    }
                )*
                object.into()
            }
        }
    )*};

    (@throttle $self:ident throttle_time_ms) => {
        if true {
            return $self.throttle_time_ms;
        }
    };
    (@throttle $self:ident $other:ident) => {};
    (@set_throttle $self:ident $ms:ident throttle_time_ms) => { $self.throttle_time_ms = $ms };
    (@set_throttle $self:ident $ms:ident $other:ident) => {};
    (@default) => { Default::default() };
    (@default $default:expr) => { $default };
    (@untagged) => { true };
    (@untagged $tag:literal) => { false };
    (@in $v:ident) => { true };
    (@in $v:ident $in:expr) => { std::ops::RangeBounds::contains(&($in), &$v.number) };
    (@read $r:ident $v:ident) => { $crate::protocol::wire::Wire::read($r, $v)? };
    (@read $r:ident $v:ident $null:expr) => {
        $crate::protocol::wire::read_option($r, $v, message!(@in $v $null))?
    };
    (@write $w:ident $v:ident $field:expr,) => { $crate::protocol::wire::Wire::write(&$field, $w, $v) };
    (@write $w:ident $v:ident $field:expr, $null:expr) => {
        $crate::protocol::wire::write_option(&$field, $w, $v, message!(@in $v $null))
    };
    (@read_tagged $m:ident $r:ident $v:ident $t:ident $field:ident, , $($in:expr)?, $($null:expr)?) => {};
    (@read_tagged $m:ident $r:ident $v:ident $t:ident $field:ident, $tag:literal, $($in:expr)?, $($null:expr)?) => {
        if $t == $tag && message!(@in $v $($in)?) {
            $m.$field = message!(@read $r $v $($null)?);
            return Ok(true);
        }
    };
    (@write_tagged $ts:ident $v:ident $self:ident $field:ident, , $($in:expr)?, $($null:expr)?, $($d:expr)?) => {};
    (@write_tagged $ts:ident $v:ident $self:ident $field:ident, $tag:literal, $($in:expr)?, $($null:expr)?, $($d:expr)?) => {
        if message!(@in $v $($in)?) && !message!(@absent $self $field, $tag, $($d)?) {
            $ts.add($tag, |w| message!(@write w $v $self.$field, $($null)?));
        }
    };
    // A tagged field that has its default value is left out.
    (@absent $self:ident $field:ident, , $($d:expr)?) => { false };
    (@absent $self:ident $field:ident, $tag:literal, $($d:expr)?) => {{
        fn is<T: PartialEq>(value: &T, default: T) -> bool {
            *value == default
        }
        is(&$self.$field, message!(@default $($d)?))
    }};
}

pub(super) use message;
